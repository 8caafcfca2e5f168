// Package process starts, recognises and stops the processes of local clusters.
//
// A process outlives the command that started it, so all that is known about it later is a record
// file: its id, when it started (so that a reused id is never mistaken for it), and a digest of how
// it was started. Which processes there are and in which order they start is package cluster's
// business.
package process
