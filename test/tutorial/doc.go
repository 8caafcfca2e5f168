// SPDX-License-Identifier: Apache-2.0

// Package tutorial has one test, which follows docs/tutorial.
package tutorial
