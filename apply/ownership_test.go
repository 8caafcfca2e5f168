// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/change"
)

// createAs creates an object in the name of a manager.
func (f *fixture) createAs(manager string, o *unstructured.Unstructured) {
	f.Helper()
	_, err := f.resource(o).Create(f.ctx, o, metav1.CreateOptions{FieldManager: manager})
	require.NoError(f, err)
}

// managedConfigMap returns an object with the label of managed objects and, if not empty, an
// origin.
func (f *fixture) managedConfigMap(name, origin string) *unstructured.Unstructured {
	o, keys := f.configMap(name, "x"), gardenerKeys()
	o.SetLabels(map[string]string{keys.ManagedByLabel: keys.ManagedByValue})
	if origin != "" {
		o.SetAnnotations(map[string]string{keys.Origin: origin})
	}
	return o
}

// TestPruneOnlyOurObjects: an inventory alone deletes nothing, in a plan and in
// an apply: the object has to show that it is ours.
func TestPruneOnlyOurObjects(t *testing.T) {
	const grm = "gardener-resource-manager"
	for name, c := range map[string]struct {
		manager string
		object  func(*fixture) *unstructured.Unstructured
		applied string
		want    Action
	}{
		"made by a person":             {"kubectl-create", func(f *fixture) *unstructured.Unstructured { return f.configMap("c", "x") }, "", NotOwned},
		"applied by a person":          {"kubectl-client-side-apply", func(f *fixture) *unstructured.Unstructured { return f.managedConfigMap("c", "") }, "", NotOwned},
		"made anew by a person since":  {"kubectl-create", func(f *fixture) *unstructured.Unstructured { return f.configMap("c", "x") }, "abc", NotOwned},
		"of upstream, with our origin": {grm, func(f *fixture) *unstructured.Unstructured { return f.managedConfigMap("c", f.ns+"/set") }, "", Deleted},
		"of upstream, with the identity of a cluster": {grm, func(f *fixture) *unstructured.Unstructured {
			return f.managedConfigMap("c", "landscape-1:"+f.ns+"/set")
		}, "", Deleted},
		"of upstream, without origin": {grm, func(f *fixture) *unstructured.Unstructured { return f.managedConfigMap("c", "") }, "", Deleted},
		"of upstream, not managed":    {grm, func(f *fixture) *unstructured.Unstructured { return f.configMap("c", "x") }, "", NotOwned},
		"of upstream, of another set": {grm, func(f *fixture) *unstructured.Unstructured { return f.managedConfigMap("c", "garden/other") }, "", MovedToOtherSet},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			o := c.object(f)
			f.createAs(c.manager, o)
			f.inv = NewMemoryInventory(Entry{Ref: RefOf(o), AppliedDigest: c.applied})
			set := f.set(f.configMap("stays", "x"))
			p, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
			require.NoError(t, err)
			wanted := change.Keep
			if c.want == Deleted {
				wanted = change.Delete
			}
			require.Len(t, p.Items, 2)
			item := p.Items[0]
			if item.Object.Name != "c" {
				item = p.Items[1]
			}
			assert.Equal(t, wanted, item.Action)
			asked := 0
			r, err := f.e.Apply(f.ctx, f.c, set, f.inv, ApplyOptions{ApprovePrune: func(e []Entry) []HeldObject { asked += len(e); return nil }})
			require.NoError(t, err)
			assert.Equal(t, c.want, actions(r)["ConfigMap/c"])
			assert.Equal(t, c.want != Deleted, f.exists(o))
			assert.Equal(t, []string{"ConfigMap/stays"}, f.inventory())
			if c.want == NotOwned {
				assert.Contains(t, item.Reason, "is not ours: it stays unchanged")
				assert.Contains(t, r.Objects[1].Message, "is not ours: it stays unchanged")
				assert.Zero(t, asked, "the gate is not asked about it")
			}
		})
	}
}

// TestPruneObjectsGivenUpByAnotherSet: another set applied an object and has given it up. The set
// that has it in its inventory deletes it, even without having applied it.
func TestPruneObjectsGivenUpByAnotherSet(t *testing.T) {
	for name, c := range map[string]struct {
		person  bool // a person copied the applied object of the other set
		givenUp func(origin string, ref Ref) bool
		want    Action
	}{
		"the caller does not know": {false, nil, MovedToOtherSet},
		"the other one has it":     {false, func(string, Ref) bool { return false }, MovedToOtherSet},
		"given up":                 {false, func(origin string, ref Ref) bool { return strings.HasSuffix(origin, "/other") && ref.Name == "c" }, Deleted},
		"a copy of a person":       {true, func(string, Ref) bool { return true }, MovedToOtherSet},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			o := f.configMap("c", "x")
			if c.person {
				o = f.create(f.managedConfigMap("c", f.ns+"/other"))
			} else {
				other := f.set(o)
				other.Name = f.ns + "/other"
				_, err := f.e.Apply(f.ctx, f.c, other, NewMemoryInventory(), ApplyOptions{})
				require.NoError(t, err)
			}
			f.inv = NewMemoryInventory(Entry{Ref: RefOf(o), Annotations: map[string]string{gardenerKeys().Origin: f.ns + "/set"}})
			set := f.set(f.configMap("stays", "x"))
			var asked []string
			options := ApplyOptions{IsReleasedBy: c.givenUp, ApprovePrune: func(entries []Entry) []HeldObject {
				for _, e := range entries {
					asked = append(asked, e.Name)
				}
				return nil
			}}
			p, err := f.e.Plan(f.ctx, f.c, set, f.inv, options)
			require.NoError(t, err)
			assert.Equal(t, c.want == Deleted, p.Summary.Delete == 1)
			r, err := f.e.Apply(f.ctx, f.c, set, f.inv, options)
			require.NoError(t, err)
			assert.Equal(t, c.want, actions(r)["ConfigMap/c"])
			assert.Equal(t, c.want != Deleted, f.exists(o))
			assert.Equal(t, []string{"ConfigMap/stays"}, f.inventory())
			if c.want == Deleted {
				assert.Equal(t, []string{"c", "c"}, asked, "the gate is asked, by a plan, too")
			} else {
				assert.Empty(t, asked)
			}
		})
	}
}

// TestPruneKnowsOurFields: our fields are enough, even without the annotation.
func TestPruneKnowsOurFields(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("stays", "x"), f.configMap("goes", "x")))
	f.patch(f.configMap("goes", ""), "kubectl-annotate", `{"metadata":{"annotations":{"resources.gardener.cloud/origin":null}}}`)
	r := f.mustApply(f.set(f.configMap("stays", "x")))
	assert.Equal(t, Deleted, actions(r)["ConfigMap/goes"])
}

// TestDeleteLeavesForeignObjects: deleting a whole set leaves foreign objects alone, too.
func TestDeleteLeavesForeignObjects(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("ours", "x")))
	foreign := f.create(f.configMap("foreign", "x"))
	f.appendToInventory(RefOf(foreign))
	p, err := f.e.PlanDelete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.Equal(t, change.Summary{Delete: 1, Keep: 1}, p.Summary)
	r, err := f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]Action{"ConfigMap/ours": Deleted, "ConfigMap/foreign": NotOwned}, actions(r))
	assert.True(t, f.exists(foreign))
	assert.Empty(t, f.inventory())
}

// appendToInventory appends an object to the inventory manually.
func (f *fixture) appendToInventory(r Ref) {
	f.Helper()
	line, err := json.Marshal(Entry{Ref: r})
	require.NoError(f, err)
	inventory := f.configMap("inventory", "")
	text, _, _ := unstructured.NestedString(f.get(inventory).Object, "data", inventoryKey)
	body, err := json.Marshal(map[string]any{"data": map[string]any{inventoryKey: text + string(line) + "\n"}})
	require.NoError(f, err)
	f.patch(inventory, "kubectl-edit", string(body))
}

func TestALostInventoryIsRebuilt(t *testing.T) {
	f := newFixture(t)
	account := f.object(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: goes, namespace: NS}}`)
	with := func(objects ...*unstructured.Unstructured) Set {
		s := f.set(objects...)
		s.RebuildFrom = append(KindsOf(objects...), account.GroupVersionKind())
		return s
	}
	assert.NotContains(t, f.requests(func() { f.mustApply(with(f.configMap("stays", "x"))) }), "get", "nothing is looked for at first")
	assert.Nil(t, f.c.stores[schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}], "nor are other kinds opened")
	f.mustApply(with(f.configMap("stays", "x"), f.configMap("goes", "x"), account))
	// A copy by a person, and an object of another set.
	f.createAs("kubectl-create", f.managedConfigMap("copy", f.ns+"/set"))
	other := f.set(f.configMap("neighbour", "x"))
	other.Name = f.ns + "/other"
	_, err := f.e.Apply(f.ctx, f.c, other, NewMemoryInventory(), ApplyOptions{})
	require.NoError(t, err)

	require.NoError(t, f.resource(f.configMap("inventory", "")).Delete(f.ctx, "inventory", deleteNow))
	f.c = f.cluster() // a new process
	f.inv = NewConfigMapInventory(f.c, f.ns, "inventory", nil)
	p, err := f.e.Plan(f.ctx, f.c, with(f.configMap("stays", "x")), f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.Equal(t, change.Summary{Delete: 2}, p.Summary, p.Items)
	r := f.mustApply(with(f.configMap("stays", "x")))
	assert.Equal(t, map[string]Action{"ConfigMap/stays": Unchanged, "ConfigMap/goes": Deleted, "ServiceAccount/goes": Deleted}, actions(r))
	assert.True(t, f.exists(f.configMap("copy", "")))
	assert.True(t, f.exists(f.configMap("neighbour", "")))
	assert.Equal(t, []string{"ConfigMap/stays"}, f.inventory())
	assert.Empty(t, f.requests(func() { f.mustApply(with(f.configMap("stays", "x"))) }))
}

func TestADamagedInventoryNamesTheRemedy(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("a", "x")))
	f.patch(f.configMap("inventory", ""), "kubectl-edit", fmt.Sprintf(`{"data":{%q:"{not json"}}`, inventoryKey))
	_, err := f.apply(f.set(f.configMap("a", "x")))
	for _, part := range []string{"cluster test: ConfigMap " + f.ns + "/inventory: read the inventory: Invalid: line 1 is damaged",
		"restore this ConfigMap, or delete it", "origin annotations"} {
		assert.ErrorContains(t, err, part)
	}
}

// TestInventoryDeletedBetweenReadAndWrite: an inventory that someone deletes between read and write
// is not created again from the old content.
func TestInventoryDeletedBetweenReadAndWrite(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("c", "x")))
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	inventory := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: inventory, namespace: NS}}`)
	require.NoError(t, f.resource(inventory).Delete(f.ctx, "inventory", metav1.DeleteOptions{}))
	require.ErrorContains(t, f.inv.Save(f.ctx, entries), "someone else has changed or deleted it meanwhile; run again")
	assert.False(t, f.exists(inventory))

	f.eventually("the cache sees that it is gone", func() bool {
		left, err := f.inv.Load(f.ctx)
		return err == nil && len(left) == 0
	})
	require.NoError(t, f.inv.Save(f.ctx, entries))
	assert.True(t, f.exists(inventory))
	f.patch(inventory, "somebody", `{"metadata":{"labels":{"a":"b"}}}`)
	require.ErrorContains(t, f.inv.Save(f.ctx, entries), "someone else has changed or deleted it meanwhile", "a second writer")
}
