// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TrackSet makes Watch cover a set that this engine has not applied yet, by its inventory, and
// judges the set now. For a known set it judges reported drift and missing objects again. It skips
// entries without a digest, and kinds that are not served or cannot be listed: their next apply
// covers them.
func (e *Engine) TrackSet(ctx context.Context, c *Cluster, set, fieldManager string, inv Inventory) error {
	known := e.tracker.isTracked(c, set)
	if !known {
		entries, err := inv.Load(ctx)
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(entry Entry) bool { return entry.AppliedDigest == "" || entry.LiveDigest == "" || entry.Deleting })
		e.tracker.trackEntries(c, set, fieldManager, entries)
	}
	listed := map[schema.GroupVersionKind]bool{}
	for _, ref := range e.tracker.reportedOrMissing(c, set, !known) {
		gvk := ref.GVK()
		if _, asked := listed[gvk]; !asked {
			_, err := c.readyResource(ctx, gvk)
			listed[gvk] = err == nil
		}
		if listed[gvk] {
			e.tracker.notifyWatchers(c, ref)
		}
	}
	return ctx.Err()
}

// isTracked reports whether objects of a set are tracked.
func (t *driftTracker) isTracked(c *Cluster, set string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sets[c][set]) > 0
}

// trackEntries tracks the objects of a set that no other set has.
func (t *driftTracker) trackEntries(c *Cluster, set, manager string, entries []Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		if t.objectsOf(c)[e.key()] == nil {
			t.objectsOf(c)[e.key()] = &trackedObject{set: set, manager: manager, entry: e}
			t.addToSet(c, set, e.key())
		}
	}
}

// reportedOrMissing returns the objects of a set with reported drift or without a live object, or
// all. They may be reported again.
func (t *driftTracker) reportedOrMissing(c *Cluster, set string, all bool) []Ref {
	t.mu.Lock()
	var refs []Ref
	reported := map[Ref]bool{}
	for k := range t.sets[c][set] {
		if o := t.objectsOf(c)[k]; o != nil && o.set == set && o.entry.AppliedDigest != "" {
			refs = append(refs, o.entry.Ref)
			reported[o.entry.Ref] = o.reportedDigest != ""
			o.reportedDigest = ""
		}
	}
	t.mu.Unlock()
	return slices.DeleteFunc(refs, func(ref Ref) bool { return !all && !reported[ref] && c.Cached(ref) != nil })
}

// notifyWatchers makes all watchers judge an object as it is now.
func (t *driftTracker) notifyWatchers(c *Cluster, ref Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.watchers {
		f(c, ChangeEvent{Ref: ref})
	}
}
