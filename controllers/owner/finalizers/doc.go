// SPDX-License-Identifier: Apache-2.0

// Package finalizers changes the finalizers of an object without lost updates of other writers.
package finalizers
