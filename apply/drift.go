// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

// DriftEvent reports that a live object differs from our last apply: it was deleted, or fields that
// we own changed.
type DriftEvent struct {
	Cluster string         `json:"cluster"`
	Set     string         `json:"set"`
	Ref     Ref            `json:"object"`
	Deleted bool           `json:"deleted,omitempty"`
	Fields  []change.Field `json:"fields,omitempty"` // with the manager that owns the field now
	At      time.Time      `json:"at"`
}

// driftTracker records the expected state of every applied object, per cluster.
type driftTracker struct {
	mu         sync.Mutex
	clusters   map[*Cluster]map[objectKey]*trackedObject
	sets       map[*Cluster]map[string]map[objectKey]bool // the objects of each set
	watchers   map[int]func(*Cluster, ChangeEvent)
	nextID     int
	secretSums secretChecksums
}

type trackedObject struct {
	set, manager string
	entry        Entry
	// writes is the number of our own writes in progress; events are not judged meanwhile.
	writes         int
	reportedDigest string       // live digest of the last reported drift
	missedChange   *ChangeEvent // the last change during a write
	// cleanState is the state in which the object was last found without drift.
	cleanState string
}

// fingerprint combines everything that decides about drift, without reading the fields. It is ""
// for Secrets, whose values are compared, and if the server sends no resourceVersion.
func (o *trackedObject) fingerprint(now *unstructured.Unstructured) string {
	version := now.GetResourceVersion()
	if version == "" || groupKindOf(now) == secretKind {
		return ""
	}
	return strings.Join(append([]string{version, string(now.GetUID()), o.entry.LiveDigest, o.manager}, o.entry.CreateOnlyFields...), " ")
}

func newTracker() *driftTracker {
	return &driftTracker{clusters: map[*Cluster]map[objectKey]*trackedObject{}, sets: map[*Cluster]map[string]map[objectKey]bool{}, watchers: map[int]func(*Cluster, ChangeEvent){}}
}

func (t *driftTracker) subscribe(f func(*Cluster, ChangeEvent)) (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nextID++
	id := t.nextID
	t.watchers[id] = f
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.watchers, id)
	}
}

func (t *driftTracker) objectsOf(c *Cluster) map[objectKey]*trackedObject {
	if t.clusters[c] == nil {
		t.clusters[c] = map[objectKey]*trackedObject{}
	}
	return t.clusters[c]
}

// beginWrite marks an object as being written until done is called.
func (t *driftTracker) beginWrite(c *Cluster, k objectKey) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.objectsOf(c)[k]
	if o == nil {
		o = &trackedObject{}
		t.objectsOf(c)[k] = o
	}
	o.writes++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if o.writes--; o.writes > 0 || o.missedChange == nil {
			return
		}
		for _, f := range t.watchers {
			f(c, *o.missedChange)
		}
		o.missedChange = nil
	}
}

// untrack stops tracking an object that we are deleting.
func (t *driftTracker) untrack(c *Cluster, k objectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.objectsOf(c), k)
	t.secretSums.forget(c, k)
}

// recordApplied records the expected state of an object after our apply.
func (t *driftTracker) recordApplied(c *Cluster, set, manager string, e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.objectsOf(c)[e.key()]
	if o == nil {
		o = &trackedObject{}
		t.objectsOf(c)[e.key()] = o
	}
	o.set, o.manager, o.entry, o.reportedDigest = set, manager, e, ""
	t.addToSet(c, set, e.key())
}

// addToSet records that an object belongs to a set.
func (t *driftTracker) addToSet(c *Cluster, set string, k objectKey) {
	if t.sets[c] == nil {
		t.sets[c] = map[string]map[objectKey]bool{}
	}
	if t.sets[c][set] == nil {
		t.sets[c][set] = map[objectKey]bool{}
	}
	t.sets[c][set][k] = true
}

// replaceSet records all objects of a set and stops tracking those that left it.
func (t *driftTracker) replaceSet(c *Cluster, set, manager string, entries []Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.objectsOf(c)
	left := t.sets[c][set]
	delete(t.sets[c], set)
	for _, e := range entries {
		delete(left, e.key())
		t.addToSet(c, set, e.key())
		if o := all[e.key()]; o == nil || o.entry.LiveDigest != e.LiveDigest {
			all[e.key()] = &trackedObject{set: set, manager: manager, entry: e}
		}
	}
	for k := range left {
		if o := all[k]; o != nil && o.set == set { // another set may own it now
			delete(all, k)
			t.secretSums.forget(c, k)
		}
	}
}

// resetReports returns all tracked objects of a cluster and clears their reported drift: the
// previous watcher may not have repaired it.
func (t *driftTracker) resetReports(c *Cluster) []Ref {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Ref
	for _, o := range t.objectsOf(c) {
		if o.reportedDigest = ""; o.entry.AppliedDigest != "" {
			out = append(out, o.entry.Ref)
		}
	}
	return out
}

// detectDrift returns the drift event for a change, or nil. It reads the current object, so a
// change that was repaired meanwhile is not drift.
func (t *driftTracker) detectDrift(c *Cluster, e ChangeEvent) *DriftEvent {
	now := c.Cached(e.Ref)
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.objectsOf(c)[objectKeyOf(e.Ref)]
	if o == nil {
		return nil
	}
	if o.writes > 0 { // on the first write, too: the watch may be quicker than the answer
		o.missedChange = &e
		return nil
	}
	if o.entry.AppliedDigest == "" {
		return nil
	}
	out := &DriftEvent{Cluster: c.name, Set: o.set, Ref: e.Ref, At: c.clock.Now()}
	if now == nil {
		out.Deleted = true
		return out
	}
	state := o.fingerprint(now)
	if state != "" && state == o.cleanState {
		return nil // every watch begins with all existing objects
	}
	sum := liveDigest(now, o.manager, o.entry.CreateOnlyFields)
	if sum == o.entry.LiveDigest && t.hasSameValues(c, e.Old, now, o.manager) {
		o.reportedDigest, o.cleanState = "", state
		return nil
	}
	if groupKindOf(now) == secretKind {
		sum += t.secretSums.ownedChecksum(now, o.manager)
	}
	if sum == o.reportedDigest {
		return nil
	}
	o.reportedDigest = sum
	if e.Old != nil {
		out.Fields = driftedFields(e.Old, now, o.manager, o.entry.CreateOnlyFields)
		// the event may be our own write, judged only after someone else's next write
		if len(out.Fields) == 0 && e.New != nil {
			out.Fields = driftedFields(e.New, now, o.manager, o.entry.CreateOnlyFields)
		}
	}
	return out
}

// hasSameValues replaces the digest, which does not cover the values of a Secret. If the expected
// values are unknown, it reports whether the change left the values alone.
func (t *driftTracker) hasSameValues(c *Cluster, old, new *unstructured.Unstructured, manager string) bool {
	if groupKindOf(new) != secretKind {
		return true
	}
	if same, known := t.secretSums.hasExpectedValues(c, new, manager); known {
		return same
	}
	return old == nil || len(driftedFields(old, new, manager, nil)) == 0
}

// driftedFields returns the fields that we owned in the old object and that differ in the new one.
func driftedFields(old, new *unstructured.Unstructured, manager string, createOnly []string) []change.Field {
	var out []change.Field
	owned := withoutCreateOnly(ownedFields(old, manager), createOnly)
	owned.Leaves().Iterate(func(p fieldpath.Path) {
		before, _ := lookup(old.Object, p)
		after, there := lookup(new.Object, p)
		if there && digest(before) == digest(after) {
			return
		}
		f := change.Field{Path: strings.TrimPrefix(p.String(), "."), Old: before, New: after, Manager: latestManager(new, p, manager)}
		out = append(out, redact.ConcealField(new.Object, fieldNames(p), f))
	})
	return out
}

// fieldNames returns the field names of a path.
func fieldNames(p fieldpath.Path) []string {
	var out []string
	for _, e := range p {
		if e.FieldName != nil {
			out = append(out, *e.FieldName)
		}
	}
	return out
}

// latestManager returns the latest manager of a field, other than except. The API server sets no
// time on entries of the scale subresource.
func latestManager(o *unstructured.Unstructured, path fieldpath.Path, except string) string {
	var found string
	var latest time.Time
	for _, entry := range managersOf(o) {
		var at time.Time
		if entry.Time != nil {
			at = entry.Time.Time
		}
		if entry.Manager == except || at.Before(latest) {
			continue
		}
		if set := parseFields(entry); set != nil && set.Has(path) {
			found, latest = entry.Manager, at
		}
	}
	return found
}

// WatchDrift reports drift of every object that this engine applied to the cluster or tracks (see
// Track), including existing drift, until ctx ends. It calls onDrift for one event at a time. If
// someone removed a field, the field has no owner, and its event names no manager.
func (e *Engine) WatchDrift(ctx context.Context, c *Cluster, onDrift func(DriftEvent)) {
	var mu sync.Mutex
	var queue []ChangeEvent
	wake := make(chan struct{}, 1)
	push := func(ev ChangeEvent) {
		mu.Lock()
		queue = append(queue, ev)
		mu.Unlock()
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	defer c.OnChange(push)()
	defer e.tracker.subscribe(func(of *Cluster, ev ChangeEvent) {
		if of == c {
			push(ev)
		}
	})()
	go e.enqueueTracked(ctx, c, push)
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		mu.Lock()
		events := queue
		queue = nil
		mu.Unlock()
		for _, ev := range events {
			if live := c.Cached(ev.Ref); live != nil && hasTrueAnnotation(live, nil, e.keys.Ignore) {
				continue // the annotation excludes the object
			}
			if drift := e.tracker.detectDrift(c, ev); drift != nil {
				onDrift(*drift)
			}
		}
	}
}

// enqueueTracked judges every object once: changes since its apply, while no one watched, are
// drift, too.
func (e *Engine) enqueueTracked(ctx context.Context, c *Cluster, push func(ChangeEvent)) {
	for _, ref := range e.tracker.resetReports(c) {
		// A kind that cannot be listed is skipped; its later events are judged.
		if _, err := c.readyResource(ctx, ref.GVK()); err == nil {
			push(ChangeEvent{Ref: ref})
		}
	}
}

// ForgetCluster drops everything that the engine knows about a cluster that is no longer used.
func (e *Engine) ForgetCluster(c *Cluster) {
	e.tracker.mu.Lock()
	defer e.tracker.mu.Unlock()
	delete(e.tracker.clusters, c)
	delete(e.tracker.sets, c)
	e.tracker.secretSums.forgetAll(c)
}
