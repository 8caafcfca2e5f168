package owner

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// get is a ConfigMap as it is, nil for none.
func (s *site) get(name string) *unstructured.Unstructured {
	s.Helper()
	o, err := s.resource("configmaps", s.ns).Get(s.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s, err)
	return o
}

// TestWhatWasTooManyIsHeldByTheNextRun, too, and by a repair: whatever else goes by then.
func TestWhatWasTooManyIsHeldByTheNextRun(t *testing.T) {
	const held = "2 deletions on cluster local are more than the 1 allowed in one run"
	immutable := func(s *site, value string) *unstructured.Unstructured {
		return s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: NS}, immutable: true, data: {a: " + value + "}}")
	}
	for name, test := range map[string]struct {
		direct, recreated bool
	}{
		"direct": {true, false}, "managed": {false, false}, "recreated, direct": {true, true}, "recreated, managed": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.work.Gate = plan.Gate{MaxDeletions: plan.Limit(1)}
			objects := []*unstructured.Unstructured{s.configMap("stays"), immutable(s, "one")}
			s.mustApply(s.bundle(test.direct, objects...))
			if objects = objects[:1]; test.recreated {
				objects = append(objects, immutable(s, "two"))
			}
			ref := apply.RefOf(immutable(s, ""))
			uid := func() types.UID {
				if o := s.get("x"); o != nil {
					return o.GetUID()
				}
				return ""
			}
			was := uid()
			b := s.bundle(test.direct, objects...)
			s.work.deleted = map[string]int{"local": 1} // another bundle of the run has lost one
			_, err := s.work.applyBundle(s.ctx, b)
			require.NoError(t, err)
			require.Len(t, s.work.report.Held, 1)
			assert.Equal(t, held, s.work.report.Held[0].Objects[0].Reason)

			_, found, err := s.work.Repair(s.ctx, s.work.owner, setName(b.Owner, b.Name))
			require.NoError(t, err)
			assert.True(t, found)
			assert.Equal(t, was, uid(), "by a repair")
			for range 2 {
				s.mustApply(b)
				require.Len(t, s.work.report.Held, 1)
				assert.Equal(t, plan.HeldBefore+held, s.work.report.Held[0].Objects[0].Reason)
				assert.Equal(t, was, uid(), "by the next run")
			}
			s.work.Gate.Approved = map[string]bool{plan.ApprovalOf("local", ref): true}
			s.mustApply(b)
			assert.Empty(t, s.work.report.Held)
			assert.NotEqual(t, was, uid())
		})
	}
}

// TestARepairGoesOnWithNothing: of a bundle that is rendered anew and not applied yet it brings back what was applied, and says what it cannot.
func TestARepairGoesOnWithNothing(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.mustApply(s.bundle(direct, s.configMap("same"), s.configMap("goes")))
			b := s.bundle(direct, s.configMap("same"), s.configMap("new"))
			b.Digest.Resolved = "another"
			s.work.owner.bundles[0].Digest = b.Digest
			_, err := s.resource("configmaps", s.ns).Patch(s.ctx, "same", types.MergePatchType, []byte(`{"data":{"a":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			require.NoError(t, err)
			s.eventually("what was applied is back", func() bool {
				_, _, err := s.work.Repair(s.ctx, s.work.owner, setName(b.Owner, b.Name))
				value, _, _ := unstructured.NestedString(s.get("same").Object, "data", "a")
				return err == nil && value == "b"
			})
			assert.NotNil(t, s.get("goes"))
			assert.Nil(t, s.get("new"))
			s.mustApply(b)
			assert.Nil(t, s.get("goes"))
			assert.NotNil(t, s.get("new"))
		})
	}
}

// TestARepairLeavesAManagedResourceThatGoes: who deletes it by hand, while its bundle is rendered anew and not applied yet, loses nothing of what it knows.
func TestARepairLeavesAManagedResourceThatGoes(t *testing.T) {
	s := newSite(t)
	old := s.bundle(false, s.configMap("same"), s.configMap("goes"))
	s.mustApply(old)
	require.NoError(t, s.resource("managedresources", s.ns).Delete(s.ctx, old.Name, metav1.DeleteOptions{}))
	s.eventually("the cache knows", func() bool {
		live, err := s.work.owner.Local.Get(s.ctx, managedRef(old))
		return err == nil && live.GetDeletionTimestamp() != nil
	})
	b := s.bundle(false, s.configMap("same"), s.configMap("new"))
	b.Digest.Resolved = "another"
	s.work.owner.bundles[0].Digest = b.Digest
	_, found, err := s.work.Repair(s.ctx, s.work.owner, setName(b.Owner, b.Name))
	assert.True(t, found)
	require.ErrorContains(t, err, "is being deleted: the next reconciliation makes it anew")
	rm, err := s.work.resourceManager(s.work.owner, b)
	require.NoError(t, err)
	_, found, err = s.work.Repair(s.ctx, s.work.owner, rm.SetName(b.Namespace, b.Name))
	assert.True(t, found)
	require.ErrorContains(t, err, "is being deleted: the next reconciliation makes it anew")
	assert.NotNil(t, s.get("same"))
	s.mustApply(b)
	assert.Nil(t, s.get("goes"), "it is known that it was there")
	assert.NotNil(t, s.get("new"))
}

// TestARepairKeepsAnEditedManagedResource from its objects: what somebody made of it is put right first.
func TestARepairKeepsAnEditedManagedResource(t *testing.T) {
	s := newSite(t)
	b := s.bundle(false, s.configMap("same"))
	b.Delivery.InjectLabels = map[string]string{"by": "Git"}
	s.work.owner.bundles[0].Delivery = b.Delivery
	s.mustApply(b)
	_, err := s.resource("managedresources", s.ns).Patch(s.ctx, b.Name, types.MergePatchType, []byte(`{"spec":{"injectLabels":{"by":"hand"}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	require.NoError(t, s.resource("configmaps", s.ns).Delete(s.ctx, "same", metav1.DeleteOptions{}))
	s.eventually("the cache knows", func() bool {
		_, err := s.work.owner.Local.Get(s.ctx, apply.RefOf(s.configMap("same")))
		live, lerr := s.work.owner.Local.Get(s.ctx, managedRef(b))
		return apierrors.IsNotFound(err) && lerr == nil && live.GetGeneration() == 2
	})
	rm, err := s.work.resourceManager(s.work.owner, b)
	require.NoError(t, err)
	rendered := s.work.owner.bundles[0].Digest
	s.work.owner.bundles[0].Digest.Resolved = "another"
	_, found, err := s.work.Repair(s.ctx, s.work.owner, rm.SetName(b.Namespace, b.Name))
	assert.True(t, found)
	require.ErrorContains(t, err, "was changed since its objects were applied")
	assert.Nil(t, s.get("same"))

	s.work.owner.bundles[0].Digest = rendered
	_, _, err = s.work.Repair(s.ctx, s.work.owner, rm.SetName(b.Namespace, b.Name))
	require.NoError(t, err)
	require.NotNil(t, s.get("same"))
	assert.Equal(t, "Git", s.get("same").GetLabels()["by"])
}

// TestARepairAndTheDataSecret: what somebody puts into it does not reach the objects.
func TestARepairAndTheDataSecret(t *testing.T) {
	s := newSite(t)
	b := s.bundle(false, s.configMap("same"))
	s.mustApply(b)
	live, err := s.work.owner.Local.GetLive(s.ctx, managedRef(b))
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
		cached, err := s.work.owner.Local.Get(s.ctx, apply.RefOf(made))
		return err == nil && cached.GetUID() == made.GetUID()
	})
	rm, err := s.work.resourceManager(s.work.owner, b)
	require.NoError(t, err)
	rendered := s.work.owner.bundles[0].Digest
	for _, pending := range []bool{true, false} {
		if s.work.owner.bundles[0].Digest = rendered; pending {
			s.work.owner.bundles[0].Digest.Resolved = "another"
		}
		_, found, err := s.work.Repair(s.ctx, s.work.owner, rm.SetName(b.Namespace, b.Name))
		assert.True(t, found)
		if pending {
			require.ErrorContains(t, err, "has another content in its data Secret than was applied")
		} else {
			require.NoError(t, err)
		}
		value, _, _ := unstructured.NestedString(s.get("same").Object, "data", "a")
		assert.Equal(t, "b", value)
	}
}

// TestARepairDoesNotChangeTheDelivery: how it was applied is known where it was, and nobody else tells of it.
func TestARepairDoesNotChangeTheDelivery(t *testing.T) {
	s := newSite(t)
	was := s.bundle(false, s.configMap("same"))
	s.mustApply(was)
	rm, err := s.work.resourceManager(s.work.owner, was)
	require.NoError(t, err)
	b := s.bundle(true, s.configMap("same"))
	require.True(t, b.Delivery.Direct)
	for _, set := range []string{setName(b.Owner, b.Name), rm.SetName(b.Namespace, b.Name)} {
		_, found, err := s.work.Repair(s.ctx, s.work.owner, set)
		assert.True(t, found)
		require.ErrorIs(t, err, errDelivery)
	}
	_, found, err := s.work.Repair(s.ctx, s.work.owner, "another/one")
	assert.False(t, found)
	require.NoError(t, err)
	assert.NotContains(t, s.work.owner.failures, b.Name, "it is not applied yet, which is no failure")
	_, err = s.work.owner.Local.GetLive(s.ctx, managedRef(b))
	require.NoError(t, err)
}

// TestARepairThatFailsComesAgain: a bundle that was applied stays so.
func TestARepairThatFailsComesAgain(t *testing.T) {
	b := render.Bundle{Name: "thing", Digest: render.Digest{Resolved: "one"}}
	other := b
	other.Digest.Resolved = "two"
	o := &Owner{}
	assert.False(t, o.isApplied(b))
	o.noteApplied(b, nil)
	o.noteApplied(b, assert.AnError)
	assert.True(t, o.isApplied(b))
	o.noteApplied(other, assert.AnError)
	assert.False(t, o.isApplied(b))
	assert.False(t, o.isApplied(other))
	o.noteApplied(other, nil)
	assert.True(t, o.isApplied(other))
}
