// SPDX-License-Identifier: Apache-2.0

// Package status prints the state of a landscape: the tree of its owners with their conditions, and
// above it the state of the Landscape object. controllers/landscape reads it from clusters and has
// its JSON form.
package status
