// Package landscapes loads a landscape: a folder with landscape.yaml, declarations in YAML and CUE
// files, layers to build on, overlays of components and SOPS-encrypted Secrets.
//
// Everything that is wrong with the files is a schemas.Violation with its place, and all of them
// are reported in one run; an error means that the folder could not be read at all. Nothing is read
// outside the repository: files are reached through an fs.FS only (os.Root for a folder on disk, or
// the tree of a Git commit).
//
// What an object may hold is not decided here but in package schemas; what becomes of it, in
// package render. The folders local and examples are landscapes themselves: data, not Go.
package landscapes
