// Package revisions reads landscapes as they are in the work tree or were in a revision of Git, and
// finds what is wrong with them. A Reader does so with the keys and limits of a command.
//
// Read reader.go first. Folders of landscapes in a repository, and which one became which, are in
// folders.go.
//
// What does not live here: rules (schemas), files of a landscape (landscapes), Git (source), what
// two revisions differ in (commands/comparison).
package revisions
