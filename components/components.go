// SPDX-License-Identifier: Apache-2.0

// Package components is the catalogue, as data: one folder per component under the kind of its
// owner, the flows, and the image vector. The only code is this embedding and tests of Prometheus
// rules. README.md describes the layout of a component.
package components

import "embed"

// FS is the embedded catalogue.
//
//go:embed cue.mod *.cue imagevector.yaml all:charts all:kubernetes all:garden all:seed all:shoot
var FS embed.FS

// Version is the version of the catalogue, a semantic version. A landscape names its version
// (spec.catalogue.version). Increase it with every change of the rendering.
const Version = "0.3.0"
