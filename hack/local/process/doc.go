// SPDX-License-Identifier: Apache-2.0

// Package process starts, recognises and stops the processes of local clusters.
//
// A process outlives the command that started it. Its record file has its id, its start time (so
// that a reused id is never mistaken for it) and a digest of its Spec. Package cluster decides
// which processes exist and their order.
package process
