// SPDX-License-Identifier: Apache-2.0

// Package revisions reads landscapes from the work tree or a revision of Git and returns their
// findings. A Reader has the keys and limits of a command.
//
// Read reader.go first. folders.go finds landscapes in a repository and detects renames.
//
// Other packages have the rules (schemas), the files of a landscape (landscapes), Git (source) and
// the difference of two revisions (commands/comparison).
package revisions
