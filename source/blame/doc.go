// Package blame says which commit wrote a line of a file, and what its author said about it.
//
// It follows one line back through the history: past commits that leave the file alone, through
// those that move the line or the file, on the side of a merge that the line came from. That reads
// a tree for each commit and a text for the few that change the file, where blaming a whole file
// compares all of its lines. What Git itself would say can differ where equal lines are moved.
//
// What does not live here: reading landscapes from commits (source), or knowing which line says
// what (landscapes).
package blame
