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

// DriftEvent says that a live object is not as we applied it: it is gone, or fields we own changed.
type DriftEvent struct {
	Cluster string         `json:"cluster"`
	Set     string         `json:"set"`
	Ref     Ref            `json:"object"`
	Deleted bool           `json:"deleted,omitempty"`
	Fields  []change.Field `json:"fields,omitempty"` // with the manager that owns the field now
	At      time.Time      `json:"at"`
}

// tracker knows what every applied object should look like, per cluster.
type tracker struct {
	mu       sync.Mutex
	clusters map[*Cluster]map[key]*trackedObject
	sets     map[*Cluster]map[string]map[key]bool // the objects of each set
	watchers map[int]func(*Cluster, ChangeEvent)
	nextID   int
	secrets  secretSums
}

type trackedObject struct {
	set, manager string
	entry        Entry
	// an apply of ours is under way: what the watch says meanwhile is not judged
	writing  int
	reported string       // live digest of the drift last reported
	missed   *ChangeEvent // the last change that came while writing
	// clean is the state in which it was last found to be as it was applied.
	clean string
}

// state names everything that tells whether an object has drifted, without reading its fields. It
// is "" for Secrets, whose values are compared, and where a server gives no version.
func (o *trackedObject) state(now *unstructured.Unstructured) string {
	version := now.GetResourceVersion()
	if version == "" || groupKindOf(now) == secretKind {
		return ""
	}
	return strings.Join(append([]string{version, string(now.GetUID()), o.entry.Live, o.manager}, o.entry.CreateOnly...), " ")
}

func newTracker() *tracker {
	return &tracker{clusters: map[*Cluster]map[key]*trackedObject{}, sets: map[*Cluster]map[string]map[key]bool{}, watchers: map[int]func(*Cluster, ChangeEvent){}}
}

func (t *tracker) subscribe(f func(*Cluster, ChangeEvent)) (stop func()) {
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

func (t *tracker) of(c *Cluster) map[key]*trackedObject {
	if t.clusters[c] == nil {
		t.clusters[c] = map[key]*trackedObject{}
	}
	return t.clusters[c]
}

// writing marks an object until the returned function is called.
func (t *tracker) writing(c *Cluster, k key) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.of(c)[k]
	if o == nil {
		o = &trackedObject{}
		t.of(c)[k] = o
	}
	o.writing++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if o.writing--; o.writing > 0 || o.missed == nil {
			return
		}
		for _, f := range t.watchers {
			f(c, *o.missed)
		}
		o.missed = nil
	}
}

// drop ends the tracking of an object that we are deleting.
func (t *tracker) drop(c *Cluster, k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of(c), k)
	t.secrets.forget(c, k)
}

// set notes what an object looks like after our apply.
func (t *tracker) set(c *Cluster, set, manager string, e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.of(c)[e.key()]
	if o == nil {
		o = &trackedObject{}
		t.of(c)[e.key()] = o
	}
	o.set, o.manager, o.entry, o.reported = set, manager, e, ""
	t.belongs(c, set, e.key())
}

// belongs notes of which set an object is.
func (t *tracker) belongs(c *Cluster, set string, k key) {
	if t.sets[c] == nil {
		t.sets[c] = map[string]map[key]bool{}
	}
	if t.sets[c][set] == nil {
		t.sets[c][set] = map[key]bool{}
	}
	t.sets[c][set][k] = true
}

// replace notes all objects of a set; those that left it are tracked no more.
func (t *tracker) replace(c *Cluster, set, manager string, entries []Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.of(c)
	left := t.sets[c][set]
	delete(t.sets[c], set)
	for _, e := range entries {
		delete(left, e.key())
		t.belongs(c, set, e.key())
		if o := all[e.key()]; o == nil || o.entry.Live != e.Live {
			all[e.key()] = &trackedObject{set: set, manager: manager, entry: e}
		}
	}
	for k := range left {
		if o := all[k]; o != nil && o.set == set { // another set may have it by now
			delete(all, k)
			t.secrets.forget(c, k)
		}
	}
}

// anew are all objects of a cluster that are tracked. What was reported of them is again: it may
// have been to somebody who repaired nothing.
func (t *tracker) anew(c *Cluster) []Ref {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Ref
	for _, o := range t.of(c) {
		if o.reported = ""; o.entry.Applied != "" {
			out = append(out, o.entry.Ref)
		}
	}
	return out
}

// judge turns a change into a drift event, if it is one. What counts is the object as it is now, so
// that a change which was repaired in the meantime is none.
func (t *tracker) judge(c *Cluster, e ChangeEvent) *DriftEvent {
	now := c.Cached(e.Ref)
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.of(c)[keyOf(e.Ref)]
	if o == nil {
		return nil
	}
	if o.writing > 0 { // also for the first time: the watch may be quicker than the answer
		o.missed = &e
		return nil
	}
	if o.entry.Applied == "" {
		return nil
	}
	out := &DriftEvent{Cluster: c.name, Set: o.set, Ref: e.Ref, At: c.clock.Now()}
	if now == nil {
		out.Deleted = true
		return out
	}
	state := o.state(now)
	if state != "" && state == o.clean {
		return nil // every watch begins with all that is there
	}
	sum := liveDigest(now, o.manager, o.entry.CreateOnly)
	if sum == o.entry.Live && t.sameValues(c, e.Old, now, o.manager) {
		o.reported, o.clean = "", state
		return nil
	}
	if groupKindOf(now) == secretKind {
		sum += t.secrets.of(now, o.manager)
	}
	if sum == o.reported {
		return nil
	}
	o.reported = sum
	if e.Old != nil {
		out.Fields = driftedFields(e.Old, now, o.manager, o.entry.CreateOnly)
		// it may be our own write that is looked at only now, after the next one of somebody else
		if len(out.Fields) == 0 && e.New != nil {
			out.Fields = driftedFields(e.New, now, o.manager, o.entry.CreateOnly)
		}
	}
	return out
}

// sameValues stands in for the digest, which does not cover the values of a Secret. Where it is not
// known what they should be, it says whether they were changed.
func (t *tracker) sameValues(c *Cluster, old, new *unstructured.Unstructured, manager string) bool {
	if groupKindOf(new) != secretKind {
		return true
	}
	if same, known := t.secrets.same(c, new, manager); known {
		return same
	}
	return old == nil || len(driftedFields(old, new, manager, nil)) == 0
}

// driftedFields are the fields that we owned in the old state and that differ in the new one.
func driftedFields(old, new *unstructured.Unstructured, manager string, createOnly []string) []change.Field {
	var out []change.Field
	owned := withoutCreateOnly(ownedFields(old, manager), createOnly)
	owned.Leaves().Iterate(func(p fieldpath.Path) {
		before, _ := lookup(old.Object, p)
		after, there := lookup(new.Object, p)
		if there && digest(before) == digest(after) {
			return
		}
		f := change.Field{Path: strings.TrimPrefix(p.String(), "."), Old: before, New: after, Manager: ownerOf(new, p, manager)}
		out = append(out, redact.Conceal(new.Object, names(p), f))
	})
	return out
}

// names are the field names of a path.
func names(p fieldpath.Path) []string {
	var out []string
	for _, e := range p {
		if e.FieldName != nil {
			out = append(out, *e.FieldName)
		}
	}
	return out
}

// ownerOf names the manager of a field, the latest one first, other than ours. The API server gives
// no time to what came by the subresource scale.
func ownerOf(o *unstructured.Unstructured, path fieldpath.Path, except string) string {
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

// Watch reports drift of every object that this engine applied to the cluster (or was told to
// Track), also drift that is there already, until ctx ends. The function is called for one event at
// a time. A field that somebody removed and that thus has no owner has no manager in the event.
func (e *Engine) Watch(ctx context.Context, c *Cluster, onDrift func(DriftEvent)) {
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
	defer e.tracked.subscribe(func(of *Cluster, ev ChangeEvent) {
		if of == c {
			push(ev)
		}
	})()
	go e.lookAtAll(ctx, c, push)
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
			if live := c.Cached(ev.Ref); live != nil && flagged(live, nil, e.keys.Ignore) {
				continue // somebody wants it to be left alone
			}
			if drift := e.tracked.judge(c, ev); drift != nil {
				onDrift(*drift)
			}
		}
	}
}

// lookAtAll lets every object be judged once: what changed since it was applied, while nobody
// watched, is drift, too.
func (e *Engine) lookAtAll(ctx context.Context, c *Cluster, push func(ChangeEvent)) {
	for _, ref := range e.tracked.anew(c) {
		// A cluster that cannot be listed tells nothing; what it reports later is judged then.
		if _, err := c.readyResource(ctx, ref.GVK()); err == nil {
			push(ChangeEvent{Ref: ref})
		}
	}
}

// Forget drops what the engine knows of a cluster that is not used any more.
func (e *Engine) Forget(c *Cluster) {
	e.tracked.mu.Lock()
	defer e.tracked.mu.Unlock()
	delete(e.tracked.clusters, c)
	delete(e.tracked.sets, c)
	e.tracked.secrets.forgetAll(c)
}
