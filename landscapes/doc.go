// SPDX-License-Identifier: Apache-2.0

// Package landscapes loads a landscape: a folder with landscape.yaml, declarations in YAML and CUE
// files, layers to build on, overlays of components and SOPS-encrypted Secrets.
//
// Each fault of the files is a schemas.Violation with its place, and one run reports all of them.
// An error means that the folder cannot be read at all. Nothing is read outside the repository: all
// access goes through an fs.FS (os.Root for a folder, or the tree of a Git commit).
//
// Package schemas validates objects, and package render uses them. The folders local and examples
// are landscapes, not Go packages.
package landscapes
