// SPDX-License-Identifier: Apache-2.0

// Package flux exists to give the module a package. go.mod names kustomize-controller, the peer in
// the benchmark of the engine, with its replacements. They stay out of the graphs of the product
// and of the tools.
package flux
