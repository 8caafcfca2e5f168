// SPDX-License-Identifier: Apache-2.0

// Package commands implements the commands of pergola that a person runs once. Flags are in
// cmd/pergola; status and why also print their results. Permanent roles are in package controllers,
// which does not import these packages. Finding is the error of a command with a finding.
//
//   - adoption: landscapes that upstream's controllers run, and how these are stopped
//   - comparison: the effect of a change of revision on a landscape's clusters
//   - manifest: objects in files, checked without a landscape
//   - preview: the consequences of a change besides the difference of rendered objects
//   - record: rendered files in folders, compared with new ones
//   - recovery: backup and restore of data that is not in Git
//   - revisions: landscapes read from the work tree or a revision, and their findings
//   - status: the state of a landscape as a tree
//   - synced: a Landscape object, checked before an operator gets it
//   - why: where a field of an object comes from
package commands
