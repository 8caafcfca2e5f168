// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/change"
)

func (f *fixture) inventory() []string {
	f.Helper()
	entries, err := f.inv.Load(f.ctx)
	require.NoError(f, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Kind+"/"+e.Name)
	}
	return out
}

func (f *fixture) stuckConfigMap(name string) *unstructured.Unstructured {
	o := f.configMap(name, "x")
	o.SetFinalizers([]string{"test.example.com/stuck"})
	return o
}

func (f *fixture) releaseOnCleanup(o *unstructured.Unstructured) {
	f.Cleanup(func() {
		_, _ = f.resource(o).Patch(context.Background(), o.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), patchAs("somebody"))
	})
}

func TestPruneDeletesWhatLeftTheSet(t *testing.T) {
	f := newFixture(t)
	keys := gardenerKeys()
	kept := f.configMap("kept", "x")
	kept.SetAnnotations(map[string]string{keys.KeepObject: "true"})
	f.mustApply(f.set(f.configMap("stays", "x"), f.configMap("goes", "x"), kept))
	f.create(f.configMap("foreign", "x"))

	var r *Result
	counts := f.requests(func() { r = f.mustApply(f.set(f.configMap("stays", "x"))) })
	assert.Equal(t, map[string]Action{"ConfigMap/stays": Unchanged, "ConfigMap/goes": Deleted, "ConfigMap/kept": Retained}, actions(r))
	assert.Equal(t, RequestCounts{"delete": 1, "patch-apply": 1}, counts)
	assert.False(t, f.exists(f.configMap("goes", "")))
	assert.True(t, f.exists(kept))
	assert.True(t, f.exists(f.configMap("foreign", "")))
	assert.Equal(t, []string{"ConfigMap/stays"}, f.inventory())
}

func TestPruneHandsOverBetweenSets(t *testing.T) {
	f := newFixture(t)
	moved, early := f.configMap("moved", "x"), f.configMap("early", "x")
	f.mustApply(f.set(moved, early, f.configMap("a", "x")))
	uid := f.get(moved).GetUID()
	other := f.set(moved)
	other.Name = f.ns + "/other"
	inv := NewConfigMapInventory(f.c, f.ns, "other", nil)

	// The new owner came first: the object has its origin.
	r, err := f.e.Apply(f.ctx, f.c, other, inv, ApplyOptions{})
	require.NoError(t, err)
	assert.Equal(t, Configured, r.Objects[0].Action)
	// The new owner comes later: IsDeclaredElsewhere knows it.
	r, err = f.e.Apply(f.ctx, f.c, f.set(f.configMap("a", "x")), f.inv,
		ApplyOptions{IsDeclaredElsewhere: func(r Ref) bool { return r.Name == "early" }})
	require.NoError(t, err)
	assert.Equal(t, map[string]Action{"ConfigMap/a": Unchanged, "ConfigMap/moved": MovedToOtherSet, "ConfigMap/early": MovedToOtherSet}, actions(r))
	assert.Equal(t, uid, f.get(moved).GetUID())
	assert.True(t, f.exists(early))

	// Two sets that declare the same object do not fight.
	f.mustApply(f.set(moved))
	_, err = f.e.Apply(f.ctx, f.c, other, inv, ApplyOptions{})
	assert.Equal(t, ReasonOwnedElsewhere, ReasonOf(err))
}

func TestPruneIsHeld(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("a", "x"), f.configMap("b", "x")))
	r := f.mustApply(f.set())
	assert.Equal(t, 2, r.Count(HeldBack), "an empty set deletes nothing")
	assert.Len(t, f.inventory(), 2)

	var asked []Entry
	r, err := f.e.Apply(f.ctx, f.c, f.set(), f.inv, ApplyOptions{AllowEmpty: true, ApprovePrune: func(e []Entry) []HeldObject {
		asked = e
		return []HeldObject{{Ref: e[0].Ref, Reason: change.Reason{Detail: "too much at once"}}}
	}})
	require.NoError(t, err)
	assert.Len(t, asked, 2)
	assert.Equal(t, map[string]Action{"ConfigMap/a": HeldBack, "ConfigMap/b": Deleted}, actions(r))
	assert.Equal(t, []string{"ConfigMap/a"}, f.inventory())
	assert.False(t, r.Complete)
	assert.True(t, f.exists(f.configMap("a", "")))

	// A failed sibling may be the replacement of an object to be deleted.
	bad := f.configMap("A_is_no_name", "x")
	r, err = f.apply(f.set(bad))
	assert.Equal(t, ReasonInvalid, ReasonOf(err))
	assert.Equal(t, HeldBack, actions(r)["ConfigMap/a"])
	assert.True(t, f.exists(f.configMap("a", "")))
}

// TestMovedObjectsAreNotHeld: an object that only moves to another set does not wait for failed
// siblings.
func TestMovedObjectsAreNotHeld(t *testing.T) {
	f := newFixture(t)
	definition := f.object(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.NS.example.com}, spec: {group: NS.example.com, scope: Namespaced,
	  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`)
	f.Cleanup(func() { _ = f.resource(definition).Delete(context.Background(), definition.GetName(), deleteNow) })
	f.mustApply(f.set(f.configMap("moves", "x"), f.configMap("goes", "x"), definition))
	r, err := f.e.Apply(f.ctx, f.c, f.set(f.configMap("A_is_no_name", "x")), f.inv,
		ApplyOptions{IsDeclaredElsewhere: func(r Ref) bool { return r.Name != "goes" }})
	assert.Equal(t, ReasonInvalid, ReasonOf(err))
	assert.Equal(t, map[string]Action{"ConfigMap/A_is_no_name": Failed, "ConfigMap/moves": MovedToOtherSet, "ConfigMap/goes": HeldBack,
		"CustomResourceDefinition/" + definition.GetName(): MovedToOtherSet}, actions(r))
	assert.NotContains(t, f.inventory(), "ConfigMap/moves")
	assert.Contains(t, f.inventory(), "ConfigMap/goes")
	for _, o := range []*unstructured.Unstructured{f.configMap("moves", ""), f.configMap("goes", ""), definition} {
		assert.True(t, f.exists(o), o.GetName())
	}
}

func TestAStuckFinalizerBlocksOnlyItsObject(t *testing.T) {
	f := newFixture(t)
	stuck := f.stuckConfigMap("stuck")
	f.releaseOnCleanup(stuck)
	f.mustApply(f.set(stuck, f.configMap("goes", "x"), f.configMap("stays", "x")))
	set := f.set(f.configMap("stays", "y"), f.configMap("new", "x"))
	r, err := f.e.Apply(f.ctx, f.c, set, f.inv, ApplyOptions{DeleteTimeout: 200 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, map[string]Action{"ConfigMap/stuck": Deleting, "ConfigMap/goes": Deleted, "ConfigMap/stays": Configured, "ConfigMap/new": Created}, actions(r))
	assert.Contains(t, r.Pending()[0].Message, "test.example.com/stuck")
	assert.Contains(t, f.inventory(), "ConfigMap/stuck")

	// Another apply costs no request, and drops the object once it no longer exists.
	assert.Empty(t, f.requests(func() {
		_, err = f.e.Apply(f.ctx, f.c, set, f.inv, ApplyOptions{DeleteTimeout: 50 * time.Millisecond})
		require.NoError(t, err)
	}))
	f.removeFinalizers(stuck)
	f.mustApply(set)
	assert.NotContains(t, f.inventory(), "ConfigMap/stuck")
}

// removeFinalizers removes the finalizers and waits until the cache has dropped the object.
func (f *fixture) removeFinalizers(o *unstructured.Unstructured) {
	f.Helper()
	_, err := f.resource(o).Patch(f.ctx, o.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), patchAs("somebody"))
	require.NoError(f, err)
	f.eventually("the object is gone", func() bool { return f.c.Cached(RefOf(o)) == nil })
}

func TestDelete(t *testing.T) {
	f := newFixture(t)
	keep, stuck := f.configMap("keep", "x"), f.stuckConfigMap("stuck")
	keep.SetAnnotations(map[string]string{gardenerKeys().KeepObject: "true"})
	f.releaseOnCleanup(stuck)
	f.mustApply(f.set(keep, stuck, f.configMap("a", "x"), f.object(`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: 1}]}}`)))

	r, err := f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{Timeout: 200 * time.Millisecond})
	assert.Equal(t, ReasonStuckDeletion, ReasonOf(err))
	assert.ErrorContains(t, err, "test.example.com/stuck")
	assert.Equal(t, map[string]Action{"ConfigMap/keep": Retained, "ConfigMap/stuck": Deleting, "ConfigMap/a": Deleted, "Service/s": Deleted}, actions(r))
	assert.Equal(t, "Service", r.Objects[1].Ref.Kind, "reverse order: %v", r.Objects)
	assert.Equal(t, []string{"ConfigMap/stuck"}, f.inventory())

	f.removeFinalizers(stuck)
	r, err = f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.True(t, r.Complete)
	assert.Empty(t, f.inventory())
	assert.False(t, f.exists(f.configMap("inventory", "")), "the inventory goes last")
	assert.True(t, f.exists(keep))
}

func TestKeepObjects(t *testing.T) {
	f := newFixture(t)
	set := f.set(f.configMap("a", "x"))
	f.mustApply(set)
	set.KeepObjects = true
	r, err := f.e.Delete(f.ctx, f.c, set, f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Count(Retained))
	assert.True(t, f.exists(f.configMap("a", "")))
	assert.Empty(t, f.inventory())
}

// TestDeletedObjectInUseIsStuck: someone has deleted an object in use. It can neither be removed
// nor created again, and the error names the remedy.
func TestDeletedObjectInUseIsStuck(t *testing.T) {
	f := newFixture(t)
	o := f.configMap("referred", "x")
	f.releaseOnCleanup(o)
	f.mustApply(f.set(o))
	_, err := f.resource(o).Patch(f.ctx, o.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":["gardener.cloud/reference-protection"]}}`), patchAs("somebody"))
	require.NoError(t, err)
	require.NoError(t, f.resource(o).Delete(f.ctx, o.GetName(), metav1.DeleteOptions{}))
	f.eventually("it is seen to be deleted", func() bool { c := f.c.Cached(RefOf(o)); return c != nil && c.GetDeletionTimestamp() != nil })
	_, err = f.e.Apply(f.ctx, f.c, f.set(o), f.inv, ApplyOptions{DeleteTimeout: 50 * time.Millisecond})
	assert.Equal(t, ReasonStuckDeletion, ReasonOf(err))
	require.ErrorContains(t, err, "it stays while something refers to it; to recreate it at once, remove the finalizer")
	require.ErrorContains(t, err, "kubectl patch configmap -n "+o.GetNamespace()+` referred --type merge -p '{"metadata":{"finalizers":null}}'`)

	f.removeFinalizers(o)
	f.mustApply(f.set(o))
	assert.True(t, f.exists(o))
}

func TestFinalizeDeletionAfter(t *testing.T) {
	f := newFixture(t)
	clock := clocktesting.NewFakeClock(time.Now())
	stuck := f.stuckConfigMap("stuck")
	stuck.SetAnnotations(map[string]string{gardenerKeys().FinalizeDeletionAfter: "1h"})
	f.releaseOnCleanup(stuck)
	f.mustApply(f.set(stuck))
	_, err := f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{Timeout: 50 * time.Millisecond})
	assert.Equal(t, ReasonStuckDeletion, ReasonOf(err))

	f.e = newEngine(Options{Clock: clock})
	clock.SetTime(f.get(stuck).GetDeletionTimestamp().Add(time.Hour))
	_, err = f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.False(t, f.exists(stuck))
}

func TestDeletePersistentVolumeClaims(t *testing.T) {
	f := newFixture(t)
	sts := f.object(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: NS}, spec: {serviceName: s, selector: {matchLabels: {app: s}},
	  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: pause}]}}}}`)
	claim := func(name, app string) *unstructured.Unstructured {
		return f.object(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: ` + name + `, namespace: NS, labels: {app: ` + app + `}},
		  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	}
	f.create(claim("data-s-0", "s"))
	f.create(claim("other", "other"))
	set := f.set(sts)
	set.DeletePersistentVolumeClaims = true
	f.mustApply(set)
	// Without a garbage collector the foreground deletion of the StatefulSet does not end; the
	// deletion of its claims is requested.
	_, _ = f.e.Delete(f.ctx, f.c, set, f.inv, DeleteOptions{Timeout: 50 * time.Millisecond})
	deleted := func(name string) bool {
		return !f.exists(claim(name, "")) || f.get(claim(name, "")).GetDeletionTimestamp() != nil
	}
	assert.True(t, deleted("data-s-0"))
	assert.False(t, deleted("other"))
}

// failingInventory loses its second write, like a process that is killed between the first object
// and the end.
type failingInventory struct {
	*MemoryInventory
	before func()
}

func (i failingInventory) Save(ctx context.Context, entries []Entry) error {
	if i.Saves() == 0 {
		i.before()
		return i.MemoryInventory.Save(ctx, entries)
	}
	return errors.New("killed")
}

func TestTheInventoryIsWrittenBeforeTheFirstObject(t *testing.T) {
	f := newFixture(t)
	a := f.configMap("a", "x")
	inv := failingInventory{NewMemoryInventory(), func() { assert.False(t, f.exists(a)) }}
	_, err := f.e.Apply(f.ctx, f.c, f.set(a), inv, ApplyOptions{})
	require.ErrorContains(t, err, "killed")
	assert.True(t, f.exists(a))

	// The next process deletes the object although it left Git in the meantime.
	r, err := f.e.Apply(f.ctx, f.c, f.set(f.configMap("b", "x")), inv.MemoryInventory, ApplyOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]Action{"ConfigMap/b": Created, "ConfigMap/a": Deleted}, actions(r))

	// Nothing is applied if the inventory cannot be written.
	_, err = f.e.Apply(f.ctx, f.c, f.set(f.configMap("c", "x")), failingInventory{inv.MemoryInventory, nil}, ApplyOptions{})
	require.Error(t, err)
	assert.False(t, f.exists(f.configMap("c", "")))
}

// TestCollectablesAreLeftToTheCollector: Secrets and ConfigMaps with the garbage collector's label
// stay until it deletes them, if there is one.
func TestCollectablesAreLeftToTheCollector(t *testing.T) {
	f := newFixture(t)
	label := map[string]string{gardenerKeys().GarbageCollectable: "true"}
	config, account := f.configMap("c", "x"), f.object("{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: NS}}")
	config.SetLabels(label)
	account.SetLabels(label)
	for _, collector := range []bool{true, false} {
		set := f.set(config, account, f.configMap("other", "x"))
		set.LeaveToCollector = collector
		f.mustApply(set)
		set.Objects = []*unstructured.Unstructured{f.configMap("other", "x")}
		done := actions(f.mustApply(set))
		assert.Equal(t, map[bool]Action{true: Retained, false: Deleted}[collector], done["ConfigMap/c"])
		assert.Equal(t, Deleted, done["ServiceAccount/a"], "the label counts for ConfigMaps and Secrets only")
		assert.Equal(t, collector, f.exists(config))
		assert.NotContains(t, f.inventory(), "ConfigMap/c")
	}
}

// TestModeIgnoreWithoutANamespace: an object in mode Ignore stays and is released, however its
// namespace is written. Annotations are parsed as upstream does.
func TestModeIgnoreWithoutANamespace(t *testing.T) {
	f := newFixture(t)
	class := f.object("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS-class, namespace: NS}, value: 5}")
	bare := f.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: NS-bare}}")
	kept := f.configMap("kept", "x")
	kept.SetAnnotations(map[string]string{gardenerKeys().KeepObject: "True"})
	f.mustApply(f.set(class, bare, kept, f.configMap("other", "x")))
	for _, o := range []*unstructured.Unstructured{class, bare} {
		o.SetAnnotations(map[string]string{gardenerKeys().Mode: "Ignore"})
	}
	f.mustApply(f.set(class, bare, f.configMap("other", "x")))
	class.SetNamespace("")
	bare.SetNamespace("default")
	for _, o := range []*unstructured.Unstructured{class, bare, kept} {
		assert.True(t, f.exists(o), o.GetName())
	}
	assert.NotContains(t, f.get(class).GetAnnotations(), gardenerKeys().Origin)
	assert.NotContains(t, f.get(bare).GetAnnotations(), gardenerKeys().Description)
	require.NoError(t, f.resource(class).Delete(f.ctx, class.GetName(), metav1.DeleteOptions{}))
	require.NoError(t, f.resource(bare).Delete(f.ctx, bare.GetName(), metav1.DeleteOptions{}))
}
