// Package render turns a declaration, the catalogue and facts into bundles.
//
// Rendering is a pure function: no cluster, no clock, no environment. The same
// inputs give the same bytes on every machine. A component is a folder of the
// catalogue (see components/README.md); it is evaluated by CUE, and its bundles
// come from one of the engines: objects written in CUE, a Helm chart, a
// Kustomize folder, or the CRDs of our own API. What a landscape overlays is
// applied last, then names are hashed, references annotated and digests taken.
//
// What upstream deploys is compared in two ways: for its example by recordings of the corpus
// (testdata/corpus.yaml), for what options change of that by recordings in testdata/options, whose
// README says how they are made.
//
// What does not live here: reading landscape folders (landscapes), comparing
// bundles (plan), sending them anywhere (apply).
package render
