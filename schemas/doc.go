// SPDX-License-Identifier: Apache-2.0

// Package schemas validates Gardener declarations. It knows objects, not files and folders: package
// landscapes reads them and provides the position of a field.
//
// Three sources produce findings, all as Violation values:
//
//   - base/*.cue, generated from the definitions in api/crds: closed structure. CUE decides,
//     package structure makes the messages.
//   - rules/KIND/*.cue, written manually: rules over several fields, each a named value that yields
//     violations.
//   - gorules.go: the listed exceptions that CUE cannot express, such as overlapping networks.
//
// README.md shows how to add a rule.
package schemas
