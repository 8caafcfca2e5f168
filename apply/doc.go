// SPDX-License-Identifier: Apache-2.0

// Package apply applies sets of objects to clusters and maintains them: server-side apply,
// inventory, prune, drift, teardown. It knows objects and API servers, and of Gardener only the
// labels and annotations in Keys. It does not render, does not judge health (callers wait with
// Cluster.Get and Cluster.Subscribe) and does not decide when to run.
//
// The trade-off: every kind in use is listed and watched once per cluster (only objects with the
// managed-by label). In return an unchanged object costs no request and a changed one exactly one
// PATCH. Unchanged means: the desired object equals the last applied one, and the fields that we
// own in the live object equal the server's last answer. Both are digests in the inventory, so a
// restart costs no request either.
//
// Other files handle objects of other owners: takeover.go (former managers and our other classes),
// foreigncopies.go (backups) and ownership.go (other sets). immutablefields.go and createonly.go
// preserve live values.
//
// Start with run.apply in run.go: its steps have the names of the files. outcome.go has the result
// of each object, result.go the results for callers. repair.go limits repairs to applied objects.
// drift.go finds drift, and settracking.go covers sets that this process has not applied.
package apply
