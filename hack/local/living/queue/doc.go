// SPDX-License-Identifier: Apache-2.0

// Package queue processes the keys of changed objects, one at a time, and retries failures.
package queue
