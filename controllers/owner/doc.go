// Package owner converges one Garden, Seed or Shoot: it makes the secrets its components ask for,
// renders them, runs the flow of the operation, waits for health, and writes conditions and
// lastOperation. The three kinds share all of it; they differ in a row of kinds.go, and in the
// files about what only one of them has (extensions.go, gardenlets.go, rotate.go, serving.go).
//
// Read owner.go first: it has all calls. Each takes an Owner, which says who and where it is, and
// the State (state.go) that the last call left behind, and gives the State that it comes to;
// nothing is kept between calls. Then read reconcile in reconciler.go: the flow and its verbs are
// in graph.go, its bundles in bundles.go, what it waits for in wait.go, bundles that are not
// rendered any more in orphans.go (with the deletion gate) and what changes how it is delivered in
// handover.go. Between two reconciliations drift comes to repair.go (track.go: also that of bundles
// which a run did not come to), and health to care.go.
//
// What does not live here: which owners there are and where their clusters are
// (landscape), how objects are sent (apply).
package owner
