// SPDX-License-Identifier: Apache-2.0

// Package process starts a program that is measured and reads its resource usage from /proc (Linux
// only). Commands that run to their end are measured in hack/bench.
package process
