// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/render"
)

const volumeClaimYAML = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim, namespace: NS},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`

// TestABundleChangesItsDelivery checks that objects stay when their bundle changes its delivery,
// that undeclared ones are deleted, and that the dry run agrees.
func TestABundleChangesItsDelivery(t *testing.T) {
	for name, direct := range map[string]bool{"direct, then managed": true, "managed, then direct": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			volume := s.object(volumeClaimYAML)
			secret := s.object(`{apiVersion: v1, kind: Secret, metadata: {name: secret, namespace: NS}, stringData: {a: b}}`)
			s.mustApply(s.bundle(direct, s.configMap("a"), s.configMap("goes"), volume, secret))
			before := s.uids("configmaps", "persistentvolumeclaims")
			require.Len(t, before, 3)

			next := s.bundle(!direct, s.configMap("a"), volume, secret, s.configMap("new"))
			assert.Equal(t, map[string]change.Action{"a": change.Change, "goes": change.Delete, "claim": change.Change, "secret": change.Change, "new": change.Create}, s.plan(next))
			told := s.mustApply(next)
			assert.Equal(t, map[string]apply.Action{"a": apply.Configured, "goes": apply.Deleted, "claim": apply.Configured, "secret": apply.Configured, "new": apply.Created}, told)
			after := s.uids("configmaps", "persistentvolumeclaims")
			delete(before, "configmaps/goes")
			delete(after, "configmaps/new")
			assert.Equal(t, before, after)
			assert.Empty(t, s.run.report.Held)

			managed, secrets := s.uids("managedresources"), s.uids("secrets")
			if direct {
				assert.Len(t, managed, 1)
				assert.Len(t, secrets, 2)
				assert.Len(t, s.inventoryObjects(), 2, "the ManagedResource and its data Secret")
			} else {
				assert.Empty(t, managed, "the ManagedResource is gone")
				assert.Len(t, secrets, 1, "and its data Secret")
				assert.Equal(t, []string{"Secret/secret", "ConfigMap/a", "ConfigMap/new", "PersistentVolumeClaim/claim"}, s.inventoryObjects())
			}
			for name, action := range s.mustApply(next) {
				assert.Equal(t, apply.Unchanged, action, name)
			}
			assert.Empty(t, s.plan(next))
		})
	}
}

// TestATerminatingManagedResource checks that a terminating ManagedResource is released, and that
// one in use again preserves its objects.
func TestATerminatingManagedResource(t *testing.T) {
	for name, direct := range map[string]bool{"becomes direct": true, "stays managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.mustApply(s.bundle(false, s.configMap("a"), s.configMap("goes")))
			before := s.uids("configmaps")
			delete(before, "configmaps/goes")
			old := s.uids("managedresources")["managedresources/thing"]
			require.NoError(t, s.resource("managedresources", s.ns).Delete(s.ctx, "thing", metav1.DeleteOptions{}))
			s.eventually("the cache sees it", func() bool {
				live, err := s.run.owner.Local.Get(s.ctx, bundleManagedResourceRef(s.run.owner.state.bundles[0]))
				return err == nil && live.GetDeletionTimestamp() != nil
			})
			next := s.bundle(direct, s.configMap("a"))
			assert.Equal(t, !direct, s.plan(next)["thing"] == change.Recreate)
			told := s.mustApply(next)
			assert.Equal(t, apply.Deleted, told["goes"])
			assert.Equal(t, before, s.uids("configmaps"))
			assert.NotEqual(t, old, s.uids("managedresources")["managedresources/thing"])
			assert.Equal(t, direct, len(s.uids("managedresources")) == 0)
		})
	}
}

// TestInterruptedDeliveryChange checks that a change of delivery continues after an interruption at
// any step.
func TestInterruptedDeliveryChange(t *testing.T) {
	s := newSite(t)
	s.mustApply(s.bundle(true, s.configMap("a"), s.configMap("goes")))
	before := s.uids("configmaps")
	delete(before, "configmaps/goes")
	// The ManagedResource exists, and holds nothing yet.
	b := s.bundle(false, s.configMap("a"))
	objects, cluster, err := s.run.owner.objectsToApply(s.ctx, b)
	require.NoError(t, err)
	set := newSet(s.run.owner, b, objects)
	_, err = s.run.reconciler.Engine.Apply(s.ctx, cluster, set, s.run.reconciler.inventory(s.run.owner, b), apply.ApplyOptions{NoPrune: true})
	require.NoError(t, err)
	assert.Len(t, s.inventoryObjects(), 4)
	assert.Equal(t, map[string]change.Action{"a": change.Change, "goes": change.Delete}, s.plan(b))
	// Then the bundle becomes direct again.
	back := s.bundle(true, s.configMap("a"))
	assert.Equal(t, map[string]change.Action{"goes": change.Delete}, s.plan(back))
	assert.Equal(t, map[string]apply.Action{"a": apply.Unchanged, "goes": apply.Deleted}, s.mustApply(back))
	assert.Equal(t, before, s.uids("configmaps"))
	assert.Empty(t, s.uids("managedresources", "secrets"))
	assert.Equal(t, []string{"ConfigMap/a"}, s.inventoryObjects())
}

// TestAForeignObjectInTheStatus checks that a person's object stays, whatever the status of a
// ManagedResource lists, and that the dry run agrees.
func TestAForeignObjectInTheStatus(t *testing.T) {
	s := newSite(t)
	b := s.bundle(false, s.configMap("a"))
	s.mustApply(b)
	_, err := s.resource("configmaps", s.ns).Create(s.ctx, s.configMap("foreign"), metav1.CreateOptions{FieldManager: "kubectl-create"})
	require.NoError(t, err)
	s.addInventoryEntry(b, "foreign")
	assert.Equal(t, map[string]change.Action{"foreign": change.Keep}, s.plan(b))
	assert.Equal(t, map[string]apply.Action{"a": apply.Unchanged, "foreign": apply.NotOwned}, s.mustApply(b))
	assert.Contains(t, s.run.report.Notes, "cluster local: ConfigMap "+s.ns+"/foreign: it is in the inventory, but is not ours: it stays unchanged")
	assert.Len(t, s.uids("configmaps"), 2)
	assert.Empty(t, s.plan(b))
}

// TestALostInventoryOfADirectBundle checks that objects that left a bundle without its inventory
// are found by their metadata, including the neighbours' kinds.
func TestALostInventoryOfADirectBundle(t *testing.T) {
	s := newSite(t)
	account := s.object("{apiVersion: v1, kind: ServiceAccount, metadata: {name: goes, namespace: NS}}")
	s.mustApply(s.bundle(true, s.configMap("a"), s.configMap("goes-too"), account))
	b := s.bundle(true, s.configMap("a"))
	neighbour := b
	neighbour.Name, neighbour.Objects = "neighbour", s.bundle(true, s.object("{apiVersion: v1, kind: ServiceAccount, metadata: {name: stays, namespace: NS}}")).Objects
	s.run.owner.state.bundles = append([]render.Bundle{}, b, neighbour)
	s.mustApply(neighbour)
	name := inventoryName(s.run.owner.Input.Owner, b.Name)
	require.NoError(t, s.resource("configmaps", InventoryNamespace).Delete(s.ctx, name, metav1.DeleteOptions{}))
	s.eventually("the cache sees it", func() bool { return len(s.inventoryObjects()) == 0 })
	assert.Equal(t, map[string]change.Action{"goes": change.Delete, "goes-too": change.Delete}, s.plan(b))
	assert.Equal(t, map[string]apply.Action{"a": apply.Unchanged, "goes": apply.Deleted, "goes-too": apply.Deleted}, s.mustApply(b))
	assert.Equal(t, []string{"ConfigMap/a"}, s.inventoryObjects())
	assert.Contains(t, s.uids("serviceaccounts"), "serviceaccounts/stays")
}

// TestOrphanDeletesOnlyOwnObjects checks that an undeclared bundle deletes only its own
// objects, and that the dry run agrees.
func TestOrphanDeletesOnlyOwnObjects(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			b := s.bundle(direct, s.configMap("a"), s.configMap("moved"))
			s.mustApply(b)
			_, err := s.resource("configmaps", s.ns).Create(s.ctx, s.configMap("foreign"), metav1.CreateOptions{FieldManager: "kubectl-create"})
			require.NoError(t, err)
			s.addInventoryEntry(b, "foreign")
			// Another bundle declares one of its objects from now on.
			other := s.bundle(true, s.configMap("moved"))
			other.Name = "other"
			s.run.owner.state.bundles = []render.Bundle{other}
			entries, err := s.run.reconciler.inventory(s.run.owner, b).Load(s.ctx)
			require.NoError(t, err)
			b.Objects = nil
			gone := orphan{bundle: b, entries: entries}
			items, err := s.run.reconciler.planOrphan(s.ctx, s.run.owner, gone, &servingCache{})
			require.NoError(t, err)
			planned := map[string]change.Action{}
			for _, item := range items {
				planned[item.Object.Name] = item.Action
				assert.Equal(t, s.run.owner.String(), item.Owner)
			}
			assert.Equal(t, map[string]change.Action{"a": change.Delete, "moved": change.Keep, "foreign": change.Keep}, planned)
			contents, err := s.run.reconciler.orphanObjects(s.ctx, s.run.owner, gone)
			require.NoError(t, err)
			require.NoError(t, s.run.removeBundle(s.ctx, b, contents, nil))
			after := s.uids("configmaps", "managedresources", "secrets")
			assert.Len(t, after, 2)
			assert.Contains(t, after, "configmaps/foreign")
			assert.Contains(t, after, "configmaps/moved")
		})
	}
}

// addInventoryEntry adds a ConfigMap to the recorded objects of a bundle.
func (s *testSite) addInventoryEntry(b render.Bundle, name string) {
	s.Helper()
	e := apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.ns, Name: name}}
	if b.Delivery.Direct {
		inventory := s.run.reconciler.inventory(s.run.owner, b)
		entries, err := inventory.Load(s.ctx)
		require.NoError(s, err)
		require.NoError(s, inventory.Save(s.ctx, append(entries, e)))
		return
	}
	rm, err := s.run.reconciler.resourceManager(s.run.owner, b)
	require.NoError(s, err)
	require.NoError(s, rm.InheritInventory(s.ctx, b.Namespace, b.Name, []apply.Entry{e}))
}
