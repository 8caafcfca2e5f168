// SPDX-License-Identifier: Apache-2.0

// Package why explains a field of an object: the template and overlay that write it, and the
// declared fields that determine it. It also shows their commits and the field's current owner in
// the cluster.
//
// Read explain.go first. Literal values are found by reading (template.go, overlay.go). Computed
// values have no line: influence.go renders the component repeatedly with one changed field of its
// declarations and reports the fields that make a difference. The result holds only for this state.
//
// It only reads: Git, the catalogue, and clusters by GET (clusters.go). cmd/pergola configures the
// access to clusters, source/blame follows lines through Git's history.
package why
