// Package apply brings sets of objects to a cluster and keeps them there: server-side apply,
// inventory, prune, drift, teardown. It knows objects and API servers, and of Gardener only the
// labels and annotations in Keys. It does not render, does not judge health (callers wait with
// Cluster.Get and Cluster.Subscribe) and does not decide when to run.
//
// The trade-off: every kind in use is listed and watched once per cluster (only objects that carry
// the managed-by label), and in return an unchanged object costs no request and a changed one
// exactly one PATCH. Unchanged means: what we want equals what we applied last, and the fields we
// own in the live object equal what the server answered then. Both are digests in the inventory, so
// a restart costs nothing either.
//
// An object may have been somebody else's before: takeover.go (former managers and other classes of
// ours), restored.go (backups), ownership.go (which set has it), livekept.go and createonly.go
// (what of it stays as it is).
//
// Start reading at run.apply in run.go: its steps have the names of the files. What became of each
// object is in outcome.go, for callers in result.go; what a repair, which may come at any time,
// leaves alone is in repair.go. Drift is found in drift.go, of what this process has not applied by
// track.go.
package apply
