// Package images says which container images this machine has as native executables, so that pods
// of them can run for real: a table of repositories and the versions that an executable stands for.
//
// Images are never fetched. What an image has besides its executable (a shell, certificates, other
// files) is not there. Who runs the executables is package cri; which executables there are is
// package binaries.
package images
