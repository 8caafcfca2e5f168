// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/change"
)

// setRun is one run of one set on one cluster. Apply, Plan, Delete and PlanDelete share it with
// different settings, so that a plan predicts the apply.
type setRun struct {
	engine  *Engine
	cluster *Cluster
	set     *Set
	inv     Inventory
	opts    ApplyOptions
	dry     bool // plan: dry runs only, no changes

	desired     []*desiredObject
	refused     []Ref // desired, but not in a form that can be applied: they stay as they are
	ignored     []Ref // desired, but in mode Ignore: no longer ours
	crds        map[schema.GroupKind]*unstructured.Unstructured
	oldEntries  map[objectKey]Entry
	stores      map[schema.GroupVersionKind]*watchedResource
	newWebhooks map[string]bool // webhooks in configurations that this run has written

	onObjectMu sync.Mutex // serializes calls of OnObject

	mu               sync.Mutex
	entries          map[objectKey]Entry // the next content of the inventory
	savedDigest      string              // digest of its current content
	hadEntries       bool                // it had entries
	outcomes         map[objectKey]outcome
	deletionOutcomes []outcome
	clusterErrors    []*ObjectError // errors that belong to no object
}

// Apply applies the objects of a set that differ, and prunes those that left it. An error of one
// object does not stop the others; the error, if any, is of type Errors.
func (e *Engine) Apply(ctx context.Context, c *Cluster, s Set, inv Inventory, o ApplyOptions) (*Result, error) {
	r := e.newRun(c, &s, inv, o, false)
	ctx, span := r.startRunSpan(ctx, "apply set")
	defer span.End()
	r.apply(ctx)
	return r.result()
}

// Plan returns what Apply would do now. It sends dry runs for objects that are not known to be
// unchanged, and writes nothing, not even the inventory.
func (e *Engine) Plan(ctx context.Context, c *Cluster, s Set, inv Inventory, o ApplyOptions) (change.Plan, error) {
	r := e.newRun(c, &s, inv, o, true)
	r.apply(ctx)
	return r.plan()
}

func (e *Engine) newRun(c *Cluster, s *Set, inv Inventory, o ApplyOptions, dry bool) *setRun {
	setDefault(&o.ReadyTimeout, time.Minute)
	setDefault(&o.DeleteTimeout, 10*time.Second)
	return &setRun{engine: e, cluster: c, set: s, inv: inv, opts: o, dry: dry,
		crds: map[schema.GroupKind]*unstructured.Unstructured{}, oldEntries: map[objectKey]Entry{},
		stores: map[schema.GroupVersionKind]*watchedResource{}, newWebhooks: map[string]bool{}, entries: map[objectKey]Entry{}, outcomes: map[objectKey]outcome{}}
}

// apply is the whole run.
func (r *setRun) apply(ctx context.Context) {
	if err := r.prepare(ctx); err != nil {
		r.abort("read the desired objects", err)
		return
	}
	if err := r.loadState(ctx); err != nil {
		r.abort("read the cluster", err)
		return
	}
	if r.opts.Repair {
		if err := r.skipChangedDeclarations(); err != nil {
			r.abort("repair", err)
			return
		}
	} else if err := r.recordIntent(ctx); err != nil {
		r.abort("write the inventory", err)
		return
	}
	for _, phase := range splitIntoPhases(r.desired, func(d *desiredObject) Ref { return d.ref }) {
		if bad := r.firstFailed(); r.set.InOrder && bad != nil {
			for _, d := range phase {
				r.recordOutcome(r.skipOutcome(d, *bad))
			}
			continue
		}
		r.applyPhase(ctx, phase)
		r.waitForCRDs(ctx, phase)
		r.waitForAPIServices(ctx, phase)
	}
	r.mergeNamespaceErrors(ctx)
	if !r.opts.NoPrune && !r.opts.Repair && (!r.set.InOrder || r.firstFailed() == nil) {
		r.prune(ctx)
	}
	r.saveState(ctx)
}

// firstFailed returns an object that could not be applied, or nil.
func (r *setRun) firstFailed() *Ref {
	for _, o := range r.outcomes {
		if o.action == Failed {
			return &o.ref
		}
	}
	return nil
}

// prepare decorates the declared objects. An unreadable object fails the whole set: a set that is
// not completely understood must not prune.
func (r *setRun) prepare(ctx context.Context) error {
	if err := r.set.validate(); err != nil {
		return err
	}
	for _, o := range r.set.Objects {
		if groupKindOf(o) == crdKind {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			r.crds[schema.GroupKind{Group: group, Kind: kind}] = o
		}
	}
	for _, o := range r.set.Objects {
		if o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName() == "" {
			return r.unreadableError(o, "it lacks apiVersion, kind or metadata.name")
		}
		d := &desiredObject{ref: RefOf(o), source: r.set.Sources[RefOf(o)]}
		if o.GetAnnotations()[r.engine.keys.Mode] == "Ignore" {
			r.ignored = append(r.ignored, d.ref)
			continue
		}
		o, err := r.withoutNulls(ctx, o)
		if err != nil {
			return err
		}
		obj, err := r.engine.keys.decorate(r.set, o)
		if err != nil {
			r.refuseObject(d, err.Error())
			continue
		}
		d.obj = obj
		r.desired = append(r.desired, d)
	}
	return nil
}

// unreadableError returns the error for an invalid declared object.
func (r *setRun) unreadableError(o *unstructured.Unstructured, why string) *ObjectError {
	return &ObjectError{Cluster: r.cluster.name, Object: RefOf(o), Op: "read", Reason: ReasonInvalid, Message: why,
		Hint: "correct the object; nothing of this set is applied until then", Source: r.set.Sources[RefOf(o)]}
}

// loadState reads the inventory and, through the live cache, the objects of every kind in use.
func (r *setRun) loadState(ctx context.Context) error {
	if err := r.cluster.checkReachable(ctx); err != nil {
		return err
	}
	entries, err := r.inv.Load(ctx)
	if err != nil {
		return err
	}
	if !r.dry {
		r.engine.inFlight.addAnnounced(r.cluster, r.set.Name, entries)
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, e := range entries {
		r.oldEntries[e.key()], r.entries[e.key()] = e, e
		kinds[e.GVK()] = true
	}
	r.savedDigest, r.hadEntries = r.digestEntries(), len(entries) > 0
	for _, d := range r.desired {
		kinds[d.ref.GVK()] = true
		if gk := d.ref.GroupKind(); gk == deploymentKind || gk == statefulSet {
			kinds[hpaKind.WithVersion("v2")] = true
		}
	}
	if err := r.openCaches(ctx, kinds); err != nil {
		return err
	}
	if err := r.rebuildInventory(ctx); err != nil {
		return err
	}
	return r.resolveNamespaces(ctx)
}

// openCaches starts the live caches concurrently. A kind that cannot be listed has no cache.
func (r *setRun) openCaches(ctx context.Context, kinds map[schema.GroupVersionKind]bool) error {
	var opened []*watchedResource
	for gvk := range kinds {
		if r.stores[gvk] != nil {
			continue
		}
		w, err := r.cluster.openResource(ctx, gvk)
		switch {
		case meta.IsNoMatchError(err):
			continue
		case err != nil:
			return err
		}
		r.stores[gvk] = w
		opened = append(opened, w)
	}
	for _, w := range opened {
		err := w.waitReady(ctx)
		switch {
		case err == nil:
		case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err), apierrors.IsNotFound(err):
			for gvk, have := range r.stores {
				if have == w {
					delete(r.stores, gvk)
				}
			}
		default:
			return fmt.Errorf("listing %s: %w", w.gvr.GroupResource(), err)
		}
	}
	return nil
}

// resolveNamespaces sets the namespace of every object by the scope of its kind and refuses objects
// that are declared twice and differ. As in upstream, no namespace means "default", and
// cluster-scoped objects have none.
func (r *setRun) resolveNamespaces(ctx context.Context) error {
	for _, refs := range [][]Ref{r.ignored, r.refused} {
		for i, ref := range refs {
			namespaced, known, err := r.isNamespaced(ctx, ref)
			if err != nil {
				return err
			}
			if known && namespaced && ref.Namespace == "" {
				refs[i].Namespace = "default"
			} else if known && !namespaced {
				refs[i].Namespace = ""
			}
		}
	}
	seen, all := map[objectKey]*desiredObject{}, r.desired
	r.desired = nil
	for _, d := range all {
		namespaced, known, err := r.isNamespaced(ctx, d.ref)
		if err != nil {
			return err
		}
		if known && namespaced && d.ref.Namespace == "" {
			d.obj.SetNamespace("default")
		} else if known && !namespaced {
			d.obj.SetNamespace("")
		}
		d.ref, d.digest = RefOf(d.obj), appliedDigest(d.obj, r.set.FieldManager, nil)
		switch twin := seen[objectKeyOf(d.ref)]; {
		case twin == nil:
			seen[objectKeyOf(d.ref)] = d
			r.desired = append(r.desired, d)
		case twin.digest != d.digest || d.ref.GroupKind() == secretKind && !hasSameSecretData(d.obj, twin.obj):
			r.refuseObject(d, fmt.Sprintf("it is declared twice%s, with different content", sourcesNote(twin.source, d.source)))
		}
	}
	r.desired = slices.DeleteFunc(r.desired, func(d *desiredObject) bool { return r.outcomes[objectKeyOf(d.ref)].action == Failed })
	return nil
}

// refuseObject fails one object that cannot be applied as declared; the live object stays
// unchanged.
func (r *setRun) refuseObject(d *desiredObject, why string) {
	e := &ObjectError{Cluster: r.cluster.name, Object: d.ref, Op: "read", Reason: ReasonInvalid, Message: why, Hint: "correct the object", Source: d.source}
	r.refused = append(r.refused, d.ref)
	r.recordOutcome(outcome{ref: d.ref, action: Failed, message: why, err: e})
}

func sourcesNote(a, b string) string {
	if a == "" && b == "" {
		return ""
	}
	return fmt.Sprintf(", in %s and in %s", a, b)
}

func (r *setRun) isNamespaced(ctx context.Context, ref Ref) (namespaced, known bool, err error) {
	mapping, err := r.cluster.Mapping(ctx, ref.GVK())
	switch {
	case err == nil:
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
	case !meta.IsNoMatchError(err):
		return false, false, err
	}
	if crd := r.crds[ref.GroupKind()]; crd != nil {
		scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
		return scope == "Namespaced", true, nil
	}
	return false, false, nil
}

// recordIntent writes the inventory before the first object, old and new entries together, so that
// no created object can be forgotten. If no object is new, the old inventory is complete.
func (r *setRun) recordIntent(ctx context.Context) error {
	for _, d := range r.desired {
		e, known := r.entries[objectKeyOf(d.ref)]
		live, cached := r.cached(d.ref)
		switch {
		case !known:
			r.entries[objectKeyOf(d.ref)] = Entry{Ref: d.ref, Labels: d.obj.GetLabels(), Annotations: r.inventoryAnnotations(d.ref, d.obj), Source: r.sourceFile(d.source)}
		case e.Deleting || e.AppliedDigest != "" && cached && live == nil:
			// desired again, or to be recreated
			e.AppliedDigest, e.LiveDigest, e.Deleting = "", "", false
			e.Source = r.sourceFile(d.source)
			r.entries[objectKeyOf(d.ref)] = e
		case e.Source != r.sourceFile(d.source):
			e.Source = r.sourceFile(d.source)
			r.entries[objectKeyOf(d.ref)] = e
		}
	}
	if steps, ok := r.inv.(TwoPhaseInventory); ok && !r.dry {
		r.savedDigest = r.digestEntries()
		return steps.Begin(ctx, r.sortedEntries())
	}
	return r.save(ctx)
}

// Limits for the write of the inventory after a run: saveTimeoutAfterStop if the run was stopped or
// its time is over.
const (
	saveTimeout          = 30 * time.Second
	saveTimeoutAfterStop = 1500 * time.Millisecond
)

// saveState writes the current inventory, even if ctx has ended.
func (r *setRun) saveState(ctx context.Context) {
	limit := saveTimeout
	if ctx.Err() != nil {
		limit = saveTimeoutAfterStop
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := r.save(ctx); err != nil {
		r.clusterErrors = append(r.clusterErrors, r.cluster.objectErrorFor(Ref{}, "write the inventory", err))
	}
	if !r.dry {
		r.engine.tracker.replaceSet(r.cluster, r.set.Name, r.set.FieldManager, r.wantedEntries())
	}
}

// wantedEntries returns the entries of objects that are not to be deleted. Objects that stay for
// now are not among them: nothing defines their state.
func (r *setRun) wantedEntries() []Entry {
	leaving := map[objectKey]bool{}
	for _, o := range r.deletionOutcomes {
		leaving[objectKeyOf(o.ref)] = true
	}
	return slices.DeleteFunc(r.sortedEntries(), func(e Entry) bool { return leaving[e.key()] })
}

func (r *setRun) save(ctx context.Context) error {
	now := r.digestEntries()
	if r.dry || now == r.savedDigest {
		return nil
	}
	save := r.inv.Save
	if steps, ok := r.inv.(TwoPhaseInventory); ok {
		save = steps.End
	}
	if err := save(ctx, r.sortedEntries()); err != nil {
		return err
	}
	r.savedDigest = now
	return nil
}

func (r *setRun) sortedEntries() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Entry, 0, len(r.entries))
	for _, e := range r.entries {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return compareRefs(a.Ref, b.Ref) })
	return out
}

func (r *setRun) digestEntries() string { return digest(r.sortedEntries()) }

// cached returns the object in the live cache; known is false if the kind is not cached.
func (r *setRun) cached(ref Ref) (o *unstructured.Unstructured, known bool) {
	r.mu.Lock()
	w := r.stores[ref.GVK()]
	r.mu.Unlock()
	if w == nil {
		return nil, false
	}
	return w.get(nsName{ref.Namespace, ref.Name}), true
}

// readObject returns the object from the cache or else from the server, or nil if it does not
// exist.
func (r *setRun) readObject(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if o, _ := r.cached(ref); o != nil {
		return o, nil
	}
	o, err := r.cluster.GetLive(ctx, ref)
	var noMatch *meta.NoKindMatchError
	if apierrors.IsNotFound(err) || errors.As(err, &noMatch) {
		return nil, nil
	}
	return o, err
}

// inventoryAnnotations returns the annotations that an inventory stores. The annotations of a
// Secret may contain its values, so only the origin is stored.
func (r *setRun) inventoryAnnotations(ref Ref, obj *unstructured.Unstructured) map[string]string {
	if ref.GroupKind() == secretKind {
		return map[string]string{r.engine.keys.Origin: r.set.Name}
	}
	return obj.GetAnnotations()
}
