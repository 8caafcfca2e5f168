// SPDX-License-Identifier: Apache-2.0

// Package blame finds the commit that wrote a line of a file, and its subject.
//
// It follows one line back through the history, across commits that move the line or the file. At a
// merge it follows the side that the line came from. It reads a tree for each commit and a text for
// the few that change the file. Blaming a whole file would compare all of its lines. The result can
// differ from git blame where equal lines are moved.
//
// Package source reads landscapes from commits; package landscapes knows which line declares a
// value.
package blame
