// SPDX-License-Identifier: Apache-2.0

// Package render turns a declaration, the catalogue and facts into bundles.
//
// Rendering is a pure function: no cluster, no clock, no environment. Equal inputs give equal bytes
// on every machine. A component is a folder of the catalogue (see components/README.md) that CUE
// evaluates. Its bundles come from one of the engines: objects written in CUE, a Helm chart, a
// Kustomize folder, or the CRDs of our own API. Overlays of a landscape are applied last. Then
// names are hashed, references annotated and digests taken.
//
// Recordings compare renders with upstream: testdata/corpus.yaml for its example, testdata/options
// for the effect of options. The README there says how to make them.
//
// Not part of this package: reading landscape folders (landscapes), comparing bundles (plan),
// sending them anywhere (apply).
package render
