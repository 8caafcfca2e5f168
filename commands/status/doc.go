// Package status shows the state of a landscape to people: the tree of its owners with their
// conditions, and above it the Landscape object's word.
//
// What does not live here: reading that state from clusters, and its JSON (controllers/landscape).
package status
