// Package flux exists to give the module a package: go.mod names kustomize-controller, the peer of
// the benchmark of the engine, with what its own go.mod replaces. It stays out of the graphs of the
// product and of the tools.
package flux
