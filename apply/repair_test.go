// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

func (f *fixture) repair(s Set) *Result {
	f.Helper()
	r, err := f.e.Apply(f.ctx, f.c, s, f.inv, ApplyOptions{Repair: true})
	require.NoError(f, err)
	return r
}

func (f *fixture) secret(name, value string) *unstructured.Unstructured {
	return f.object(`{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `, namespace: NS}, stringData: {key: ` + value + `}}`)
}

// TestRepairRestoresOnlyAppliedObjects: only an apply handles changed declarations, with its order,
// its gate and its time.
func TestRepairRestoresOnlyAppliedObjects(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("same", "1"), f.configMap("other", "1"), f.configMap("goes", "1"), f.secret("plain", "old"), f.secret("kept", "old")))
	byHand := `{"data":{"key":"by hand"}}`
	for _, name := range []string{"same", "other"} {
		f.patch(f.configMap(name, ""), "kubectl-edit", byHand)
	}
	secretByHand := `{"stringData":{"key":"by hand"}}`
	f.patch(f.secret("plain", ""), "kubectl-edit", secretByHand)
	f.patch(f.secret("kept", ""), "kubectl-edit", secretByHand)
	f.eventually("the cache knows", func() bool {
		for _, o := range []*unstructured.Unstructured{f.configMap("same", ""), f.configMap("other", ""), f.secret("plain", ""), f.secret("kept", "")} {
			if live, err := f.c.Get(f.ctx, RefOf(o)); err != nil || live.GetResourceVersion() != f.get(o).GetResourceVersion() {
				return false
			}
		}
		return true
	})

	next := f.set(f.configMap("same", "1"), f.configMap("other", "2"), f.configMap("new", "1"), f.secret("plain", "new"), f.secret("kept", "old"))
	done := f.repair(next)
	assert.Equal(t, map[string]Action{"ConfigMap/same": Configured, "ConfigMap/other": Skipped, "ConfigMap/new": Skipped, "Secret/plain": Skipped, "ConfigMap/goes": Skipped,
		"Secret/kept": Configured}, actions(done))
	assert.False(t, done.Complete)
	value := func(o *unstructured.Unstructured) any { return nested(f.get(o), "data", "key") }
	assert.Equal(t, "1", value(f.configMap("same", "")))
	assert.Equal(t, "by hand", value(f.configMap("other", "")))
	assert.Equal(t, "1", value(f.configMap("goes", "")))
	assert.Equal(t, "b2xk", value(f.secret("kept", "")))
	assert.NotEqual(t, "bmV3", value(f.secret("plain", "")))
	assert.False(t, f.exists(f.configMap("new", "")))
	assert.ElementsMatch(t, []string{"ConfigMap/same", "ConfigMap/other", "ConfigMap/goes", "Secret/plain", "Secret/kept"}, f.inventory())

	f.mustApply(next)
	assert.Equal(t, "2", value(f.configMap("other", "")))
	assert.Equal(t, "bmV3", value(f.secret("plain", "")))
	assert.False(t, f.exists(f.configMap("goes", "")))
}

// TestRepairOfMultilineBase64: base64 may be declared in several lines, and a server returns it in
// one.
func TestRepairOfMultilineBase64(t *testing.T) {
	f := newFixture(t)
	secret := func() *unstructured.Unstructured {
		return f.object("apiVersion: v1\nkind: Secret\nmetadata: {name: lines, namespace: NS}\ndata:\n  key: |\n    b2\n    xk\n")
	}
	f.mustApply(f.set(secret()))
	require.NoError(t, f.resource(secret()).Delete(f.ctx, "lines", metav1.DeleteOptions{}))
	f.eventually("the cache knows", func() bool { _, err := f.c.Get(f.ctx, RefOf(secret())); return err != nil })
	assert.Equal(t, map[string]Action{"Secret/lines": Created}, actions(f.repair(f.set(secret()))))
}

// TestRepairWithoutAnInventory is an error, and the next apply finds the existing objects.
func TestRepairWithoutAnInventory(t *testing.T) {
	f := newFixture(t)
	s := f.set(f.configMap("a", "1"))
	s.RebuildFrom = KindsOf(s.Objects...)
	f.mustApply(s)
	require.NoError(t, f.inv.Remove(f.ctx))
	f.eventually("the cache knows", func() bool { entries, err := f.inv.Load(f.ctx); return err == nil && len(entries) == 0 })
	_, err := f.e.Apply(f.ctx, f.c, f.set(f.configMap("a", "1")), f.inv, ApplyOptions{Repair: true})
	require.ErrorIs(t, err, errNoInventory)
	assert.Empty(t, f.inventory())
	s = f.set(f.configMap("a", "1"))
	s.RebuildFrom = KindsOf(s.Objects...)
	f.mustApply(s)
	assert.Equal(t, []string{"ConfigMap/a"}, f.inventory())
}

// TestRepairThatFails: a failed repair is retried, even if the object no longer exists.
func TestRepairThatFails(t *testing.T) {
	f := newFixture(t)
	s := f.set(f.configMap("gone", "1"))
	f.mustApply(s)
	require.NoError(t, f.resource(f.configMap("gone", "")).Delete(f.ctx, "gone", metav1.DeleteOptions{}))
	f.eventually("the cache knows", func() bool { _, err := f.c.Get(f.ctx, RefOf(f.configMap("gone", ""))); return err != nil })
	options := ApplyOptions{Repair: true, CompleteDeclaration: func(_, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return nil, errors.New("not now")
	}}
	for range 2 {
		r, err := f.e.Apply(f.ctx, f.c, s, f.inv, options)
		require.ErrorContains(t, err, "not now")
		assert.Equal(t, map[string]Action{"ConfigMap/gone": Failed}, actions(r))
	}
	assert.Equal(t, map[string]Action{"ConfigMap/gone": Created}, actions(f.repair(s)))
}

// TestInventoryRecordsHeldReasons: the inventory says why an object is held, for the gate, until
// its deletion begins or it is in its desired state.
func TestInventoryRecordsHeldReasons(t *testing.T) {
	f := newFixture(t)
	held := func() map[Ref]change.Reason {
		entries, err := f.inv.Load(f.ctx)
		require.NoError(t, err)
		return HeldReasons(entries)
	}
	gone, made := RefOf(f.configMap("goes", "")), RefOf(f.immutableObject("ConfigMap", ""))
	former := f.set(f.configMap("goes", "1"), f.immutableObject("ConfigMap", "one"), f.configMap("stays", "1"))
	f.mustApply(former)
	next := f.set(f.immutableObject("ConfigMap", "two"), f.configMap("stays", "1"))
	gate := func(holds bool) ApplyOptions {
		return ApplyOptions{
			ApprovePrune: func(entries []Entry) []HeldObject {
				if !holds {
					return nil
				}
				return []HeldObject{{Ref: entries[0].Ref, Reason: change.Reason{Detail: "too many" + entries[0].HeldReason.String()}}}
			},
			HoldRecreate: func(e Entry) *change.Reason { return holdReason(holds, "not now"+e.HeldReason.String()) },
		}
	}
	for _, want := range []map[Ref]change.Reason{{gone: {Detail: "too many"}, made: {Detail: "not now"}}, {gone: {Detail: "too manytoo many"}, made: {Detail: "not nownot now"}}} {
		_, err := f.e.Apply(f.ctx, f.c, next, f.inv, gate(true))
		require.NoError(t, err)
		assert.Equal(t, want, held())
	}
	f.mustApply(former)
	assert.Empty(t, held(), "both are as they are wanted")
	_, err := f.e.Apply(f.ctx, f.c, next, f.inv, gate(true))
	require.NoError(t, err)
	assert.Len(t, held(), 2)
	_, err = f.e.Apply(f.ctx, f.c, next, f.inv, gate(false))
	require.NoError(t, err)
	assert.Empty(t, held())
}

// TestObjectRecreatedByHand: if someone recreated an object with another value in an immutable
// field, every run reports that. The object is not cached, as it lacks the label.
func TestObjectRecreatedByHand(t *testing.T) {
	f := newFixture(t)
	text := `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: rb, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}}`
	binding := f.object(replaceText(text, "NAME", "one"))
	s := f.set(binding)
	s.TakeBack, s.Force = true, false
	f.mustApply(s)
	require.NoError(t, f.resource(binding).Delete(f.ctx, "rb", metav1.DeleteOptions{}))
	other := f.object(replaceText(text, "NAME", "two"))
	_, err := f.resource(other).Create(f.ctx, other, metav1.CreateOptions{FieldManager: "kubectl-create"})
	require.NoError(t, err)
	f.eventually("the cache knows", func() bool {
		w, err := f.c.readyResource(f.ctx, binding.GroupVersionKind())
		return err == nil && w.get(nsName{f.ns, "rb"}) == nil
	})
	for range 3 {
		_, err := f.apply(s)
		assert.Equal(t, ReasonImmutable, ReasonOf(err), "%v", err)
	}
	require.NoError(t, f.resource(binding).Delete(f.ctx, "rb", metav1.DeleteOptions{}))
	assert.Equal(t, Created, f.mustApply(s).Objects[0].Action)
}

// TestNoDelete: objects that left the set stay, with the reasons why they are held, until a run may
// delete.
func TestNoDelete(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("goes", "1"), f.configMap("held", "1"), f.configMap("stays", "1")))
	next := f.set(f.configMap("stays", "2"))
	held := RefOf(f.configMap("held", ""))
	_, err := f.e.Apply(f.ctx, f.c, next, f.inv, ApplyOptions{ApprovePrune: func(entries []Entry) []HeldObject {
		out := []HeldObject{{Ref: held, Reason: change.Reason{Detail: "not now"}}}
		return append(out, HeldObject{Ref: RefOf(f.configMap("goes", ""))})
	}})
	require.NoError(t, err)
	r, err := f.e.Apply(f.ctx, f.c, next, f.inv, ApplyOptions{NoDelete: true})
	require.NoError(t, err)
	assert.Equal(t, map[string]Action{"ConfigMap/stays": Unchanged, "ConfigMap/goes": HeldBack, "ConfigMap/held": HeldBack}, actions(r))
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	assert.Equal(t, map[Ref]change.Reason{held: {Detail: "not now"}}, HeldReasons(entries))
	f.mustApply(next)
	assert.Equal(t, []string{"ConfigMap/stays"}, f.inventory())
}
