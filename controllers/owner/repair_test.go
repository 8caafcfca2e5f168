// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/render"
)

// TestUnprocessedBundlesAreTracked checks that a run that times out before a bundle still reports
// drift of its applied objects, in a new engine, too. Drift that was not repaired is reported
// again.
func TestUnprocessedBundlesAreTracked(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			b := s.bundle(direct, s.configMap("edited"), s.configMap("same"))
			s.mustApply(b)
			s.run.reconciler.Engine = conventions.NewEngine(apply.Options{})
			events := make(chan apply.DriftEvent, 10)
			watching, stop := context.WithCancel(s.ctx)
			defer stop()
			go s.run.reconciler.Engine.WatchDrift(watching, s.run.owner.Local, func(e apply.DriftEvent) { events <- e })
			_, err := s.resource("configmaps", s.ns).Patch(s.ctx, "edited", types.MergePatchType, []byte(`{"data":{"a":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			require.NoError(t, err)
			s.eventually("the cache knows", func() bool {
				live, err := s.run.owner.Local.Get(s.ctx, apply.RefOf(s.configMap("edited")))
				return err == nil && live.Object["data"].(map[string]any)["a"] == "by hand"
			})
			over, cancel := context.WithCancel(s.ctx)
			cancel()
			for range 2 {
				s.run.trackUnprocessedBundles(over)
				assert.Equal(t, "edited", (<-events).Ref.Name)
			}
			_, found, err := s.run.reconciler.repair(s.ctx, s.run.owner, nameOfSet(b.Owner, b.Name))
			require.NoError(t, err)
			assert.True(t, found)
			value := s.getConfigMap("edited").Object["data"].(map[string]any)["a"]
			assert.Equal(t, "b", value)
		})
	}
}

// TestRepairAppliesNothingNew checks that a repair of a bundle with a new rendering restores only
// applied objects, and returns the others.
func TestRepairAppliesNothingNew(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.mustApply(s.bundle(direct, s.configMap("same"), s.configMap("goes")))
			b := s.bundle(direct, s.configMap("same"), s.configMap("new"))
			b.Digest.Resolved = "another"
			s.run.owner.state.bundles[0].Digest = b.Digest
			_, err := s.resource("configmaps", s.ns).Patch(s.ctx, "same", types.MergePatchType, []byte(`{"data":{"a":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			require.NoError(t, err)
			s.eventually("what was applied is back", func() bool {
				_, _, err := s.run.reconciler.repair(s.ctx, s.run.owner, nameOfSet(b.Owner, b.Name))
				value, _, _ := unstructured.NestedString(s.getConfigMap("same").Object, "data", "a")
				return err == nil && value == "b"
			})
			assert.NotNil(t, s.getConfigMap("goes"))
			assert.Nil(t, s.getConfigMap("new"))
			s.mustApply(b)
			assert.Nil(t, s.getConfigMap("goes"))
			assert.NotNil(t, s.getConfigMap("new"))
		})
	}
}

// TestRepairPreservesDeletedManagedResource checks that a deleted ManagedResource loses no
// inventory entries while a new rendering waits.
func TestRepairPreservesDeletedManagedResource(t *testing.T) {
	s := newSite(t)
	old := s.bundle(false, s.configMap("same"), s.configMap("goes"))
	s.mustApply(old)
	require.NoError(t, s.resource("managedresources", s.ns).Delete(s.ctx, old.Name, metav1.DeleteOptions{}))
	s.eventually("the cache knows", func() bool {
		live, err := s.run.owner.Local.Get(s.ctx, bundleManagedResourceRef(old))
		return err == nil && live.GetDeletionTimestamp() != nil
	})
	b := s.bundle(false, s.configMap("same"), s.configMap("new"))
	b.Digest.Resolved = "another"
	s.run.owner.state.bundles[0].Digest = b.Digest
	_, found, err := s.run.reconciler.repair(s.ctx, s.run.owner, nameOfSet(b.Owner, b.Name))
	assert.True(t, found)
	require.ErrorContains(t, err, "is being deleted: the next reconciliation recreates it")
	rm, err := s.run.reconciler.resourceManager(s.run.owner, b)
	require.NoError(t, err)
	_, found, err = s.run.reconciler.repair(s.ctx, s.run.owner, rm.NameOfSet(b.Namespace, b.Name))
	assert.True(t, found)
	require.ErrorContains(t, err, "is being deleted: the next reconciliation recreates it")
	assert.NotNil(t, s.getConfigMap("same"))
	s.mustApply(b)
	assert.Nil(t, s.getConfigMap("goes"), "it is known that it was there")
	assert.NotNil(t, s.getConfigMap("new"))
}

// TestRepairRevertsEditedManagedResource checks that edits of a ManagedResource are reverted
// before they affect its objects.
func TestRepairRevertsEditedManagedResource(t *testing.T) {
	s := newSite(t)
	b := s.bundle(false, s.configMap("same"))
	b.Delivery.InjectLabels = map[string]string{"by": "Git"}
	s.run.owner.state.bundles[0].Delivery = b.Delivery
	s.mustApply(b)
	_, err := s.resource("managedresources", s.ns).Patch(s.ctx, b.Name, types.MergePatchType, []byte(`{"spec":{"injectLabels":{"by":"hand"}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	require.NoError(t, s.resource("configmaps", s.ns).Delete(s.ctx, "same", metav1.DeleteOptions{}))
	s.eventually("the cache knows", func() bool {
		_, err := s.run.owner.Local.Get(s.ctx, apply.RefOf(s.configMap("same")))
		live, lerr := s.run.owner.Local.Get(s.ctx, bundleManagedResourceRef(b))
		return apierrors.IsNotFound(err) && lerr == nil && live.GetGeneration() == 2
	})
	rm, err := s.run.reconciler.resourceManager(s.run.owner, b)
	require.NoError(t, err)
	rendered := s.run.owner.state.bundles[0].Digest
	s.run.owner.state.bundles[0].Digest.Resolved = "another"
	_, found, err := s.run.reconciler.repair(s.ctx, s.run.owner, rm.NameOfSet(b.Namespace, b.Name))
	assert.True(t, found)
	require.ErrorContains(t, err, "was changed since its objects were applied")
	assert.Nil(t, s.getConfigMap("same"))

	s.run.owner.state.bundles[0].Digest = rendered
	_, _, err = s.run.reconciler.repair(s.ctx, s.run.owner, rm.NameOfSet(b.Namespace, b.Name))
	require.NoError(t, err)
	require.NotNil(t, s.getConfigMap("same"))
	assert.Equal(t, "Git", s.getConfigMap("same").GetLabels()["by"])
}

// TestRepairIgnoresEditedDataSecret checks that edits of the data Secret do not affect the objects.
func TestRepairIgnoresEditedDataSecret(t *testing.T) {
	s := newSite(t)
	b := s.bundle(false, s.configMap("same"))
	s.mustApply(b)
	live, err := s.run.owner.Local.GetLive(s.ctx, bundleManagedResourceRef(b))
	require.NoError(t, err)
	refs, _, _ := unstructured.NestedSlice(live.Object, "spec", "secretRefs")
	name := refs[0].(map[string]any)["name"].(string)
	secrets := s.resource("secrets", s.ns)
	secret, err := secrets.Get(s.ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, secrets.Delete(s.ctx, name, metav1.DeleteOptions{}))
	secret.Object["data"] = map[string]any{"evil.yaml": base64.StdEncoding.EncodeToString([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: " + s.ns + "}\ndata: {a: evil}\n"))}
	secret.SetResourceVersion("")
	secret.SetUID("")
	made, err := secrets.Create(s.ctx, secret, metav1.CreateOptions{})
	require.NoError(t, err)
	s.eventually("the cache knows", func() bool {
		cached, err := s.run.owner.Local.Get(s.ctx, apply.RefOf(made))
		return err == nil && cached.GetUID() == made.GetUID()
	})
	rm, err := s.run.reconciler.resourceManager(s.run.owner, b)
	require.NoError(t, err)
	rendered := s.run.owner.state.bundles[0].Digest
	for _, pending := range []bool{true, false} {
		if s.run.owner.state.bundles[0].Digest = rendered; pending {
			s.run.owner.state.bundles[0].Digest.Resolved = "another"
		}
		_, found, err := s.run.reconciler.repair(s.ctx, s.run.owner, rm.NameOfSet(b.Namespace, b.Name))
		assert.True(t, found)
		if pending {
			require.ErrorContains(t, err, "has a data Secret that changed since its objects were applied")
		} else {
			require.NoError(t, err)
		}
		value, _, _ := unstructured.NestedString(s.getConfigMap("same").Object, "data", "a")
		assert.Equal(t, "b", value)
	}
}

// TestARepairDoesNotChangeTheDelivery checks that a repair leaves a change of delivery to the next
// reconciliation.
func TestARepairDoesNotChangeTheDelivery(t *testing.T) {
	s := newSite(t)
	was := s.bundle(false, s.configMap("same"))
	s.mustApply(was)
	rm, err := s.run.reconciler.resourceManager(s.run.owner, was)
	require.NoError(t, err)
	b := s.bundle(true, s.configMap("same"))
	require.True(t, b.Delivery.Direct)
	for _, set := range []string{nameOfSet(b.Owner, b.Name), rm.NameOfSet(b.Namespace, b.Name)} {
		_, found, err := s.run.reconciler.repair(s.ctx, s.run.owner, set)
		assert.True(t, found)
		require.ErrorIs(t, err, errDeliveryChanged)
	}
	_, found, err := s.run.reconciler.repair(s.ctx, s.run.owner, "another/one")
	assert.False(t, found)
	require.NoError(t, err)
	assert.NotContains(t, s.run.owner.state.failures, b.Name, "it is not applied yet, which is no failure")
	_, err = s.run.owner.Local.GetLive(s.ctx, bundleManagedResourceRef(b))
	require.NoError(t, err)
}

// TestFailedRepairIsRetried checks that an applied bundle stays applied after a failed repair.
func TestFailedRepairIsRetried(t *testing.T) {
	b := render.Bundle{Name: "thing", Digest: render.Digest{Resolved: "one"}}
	other := b
	other.Digest.Resolved = "two"
	o := &ownerSession{}
	assert.False(t, o.isApplied(b))
	o.state.recordRendering(b, nil)
	o.state.recordRendering(b, assert.AnError)
	assert.True(t, o.isApplied(b))
	o.state.recordRendering(other, assert.AnError)
	assert.False(t, o.isApplied(b))
	assert.False(t, o.isApplied(other))
	o.state.recordRendering(other, nil)
	assert.True(t, o.isApplied(other))
}
