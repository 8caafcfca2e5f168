// Package owner converges one Garden, Seed or Shoot: it makes the secrets its
// components ask for, renders them, runs the flow of the operation, waits for
// health, and writes conditions and lastOperation. The three kinds share all of it;
// what differs is a row in kinds.go.
//
// Read Reconcile in reconciler.go first: the flow and its verbs are in graph.go, its bundles in bundles.go, what it waits for in wait.go, bundles that
// are not rendered any more in orphans.go (with the deletion gate) and what changes how it is delivered in handover.go. Between two
// reconciliations drift comes to repair.go (track.go: also that of bundles which a run did not come to), and health to care.go. What a run leaves
// behind for the next one is a State (state.go), which changes there and nowhere else.
//
// What does not live here: which owners there are and where their clusters are
// (landscape), how objects are sent (apply).
package owner
