// Package schemas validates Gardener declarations. It knows objects, not files and folders: package
// landscapes reads those and says where a field stands.
//
// Three things give findings, all of them as Violation values:
//
//   - base/*.cue, generated from the definitions in api/crds: closed structure. CUE decides,
//     package structure finds the words.
//   - rules/KIND/*.cue, written by hand: rules over several fields, each a named value that yields
//     violations.
//   - gorules.go: the listed exceptions that CUE cannot say, such as overlapping networks.
//
// README.md shows how to add a rule.
package schemas
