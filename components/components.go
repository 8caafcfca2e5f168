// Package components is the catalogue, as data: one folder per component under
// the kind of its owner, the flows, and the image vector. There is no code here
// but this embedding, and tests of what Prometheus makes of the rules; how a
// component looks is in README.md.
package components

import "embed"

// FS holds the catalogue as it was built into the binary.
//
//go:embed cue.mod *.cue imagevector.yaml all:charts all:kubernetes all:garden all:seed all:shoot
var FS embed.FS

// Version of the catalogue, a semantic version. A landscape names the one it is written for
// (spec.catalogue.version): raise it with every change that renders differently.
const Version = "0.3.0"
