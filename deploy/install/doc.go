// Package install brings a rendered installation of Pergola (package deploy) to a cluster and takes
// it away, by the engine that applies everything else: with an inventory, so that what a newer
// chart has no more is deleted, and without a request to write while nothing changes.
//
// What does not live here: what is installed (the chart in package deploy), flags and output
// (cmd/pergola).
package install
