// SPDX-License-Identifier: Apache-2.0

// Package owner converges one Garden, Seed or Shoot. It makes the secrets of its components,
// renders them, runs the flow of the operation, waits for health, and writes conditions and
// lastOperation. The three kinds share all code, except for a row of kinds.go and the files about
// one kind (extensions.go, gardenlets.go, rotate.go, servingcache.go).
//
// Read owner.go first: it has all calls. Each takes an Owner with its identity and clusters, and
// the State (state.go) that the last call returned. Each returns the new State; nothing is stored
// between calls. Then read reconcile in reconciler.go. The flow and its verbs are in flowsteps.go,
// its bundles in bundles.go, and its waits in wait.go. Bundles that are no longer rendered are in
// orphans.go (with the deletion gate), changes of delivery in deliverychange.go. Between
// reconciliations repair.go handles drift (drifttracking.go: also in bundles that a run did not
// process), and care.go health.
//
// Other packages list the owners with their clusters (landscape) and send objects (apply).
package owner
