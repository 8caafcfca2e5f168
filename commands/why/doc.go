// Package why answers where a field of an object comes from: the template and the overlay that
// write it, the fields of the declarations in Git that it follows from, the commits that wrote
// those, and who owns it in the cluster now.
//
// Read explain.go first. What is written down literally is found by reading (template.go,
// overlay.go). What is computed has no line: then the component is rendered again and again with
// one field of its declarations changed, and those that make a difference are named (influence.go).
// That is exact about this state and says nothing about others.
//
// It only reads: Git, the catalogue, and clusters by GET (clusters.go). What does not live here:
// the access to clusters (cmd/pergola), following lines through Git's history (source/blame).
package why
