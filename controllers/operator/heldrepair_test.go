// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// TestRepairDoesNotContinuePartialCommit: while no sync may begin, a repair does not continue a
// partial commit.
func TestRepairDoesNotContinuePartialCommit(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("repaired")
	r.commit("own", map[string]string{"b.yaml": r.configMap("b", "1"), "c.yaml": r.configMap("c", "1"), "goes.yaml": r.configMap("goes", "1")})
	w.startOperator()
	w.createLandscape(r.name, r)
	w.awaitReady(r.name, "True Applied")
	w.awaitFailed(r.name, r.commit("fails halfway", map[string]string{"refused.yaml": r.rejectedConfigMap(), "goes.yaml": ""}))
	w.changeLandscape(r.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Windows = closedWindows })
	w.awaitLandscape(r.name, isSettledLandscape)
	w.createMissingNamespace()
	refused := func() bool {
		err := w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace + "-missing", Name: "refused"}, &corev1.ConfigMap{})
		return err == nil
	}
	for _, name := range []string{"b", "c"} {
		require.NoError(t, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}))
		w.eventually("it is repaired", func() bool { return w.configMapValue(name) == "1" })
	}
	assert.False(t, refused())
	assert.Equal(t, "1", w.configMapValue("goes"))
	w.changeLandscape(r.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Windows = nil })
	w.awaitReady(r.name, "True Applied")
	assert.True(t, refused())
	assert.Empty(t, w.configMapValue("goes"))
}

// TestHeldDeletionIsNotReleasedLater: neither the next sync nor a repair allows a held deletion
// because it is then the only one.
func TestHeldDeletionIsNotReleasedLater(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("toomany")
	r.commit("own", map[string]string{"d1.yaml": r.configMap("d1", "1"), "d2.yaml": r.configMap("d2", "1"), "c.yaml": r.configMap("c", "1")})
	w.startOperator()
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.DeletionGate = &landscapev1alpha1.DeletionGate{MaxDeletions: ptr.To[int32](1)}
	})
	w.awaitReady(r.name, "True Applied")
	r.commit("without two", map[string]string{"d1.yaml": "", "d2.yaml": ""})
	held := func() []landscapev1alpha1.HeldDeletion { return w.getLandscape(r.name).Status.Held }
	w.eventually("they are held", func() bool { return len(held()) == 2 })
	one := held()[1]
	require.Equal(t, "ConfigMap "+w.namespace+"/d2", one.Object)
	commit := r.commit("with one", map[string]string{"d1.yaml": r.configMap("d1", "1")})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
	})
	require.NoError(t, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}}))
	w.eventually("another one is repaired", func() bool { return w.configMapValue("c") == "1" })
	commit = r.commit("next", map[string]string{"c.yaml": r.configMap("c", "2")})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
	})
	assert.Equal(t, "1", w.configMapValue("d2"))
	require.Len(t, held(), 1)
	assert.Equal(t, one.Approval, held()[0].Approval)
	assert.Equal(t, "it is still held: "+one.Reason, held()[0].Reason)
	w.changeLandscape(r.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Approved = []string{one.Approval} })
	w.eventually("it is approved", func() bool { return w.configMapValue("d2") == "" && len(held()) == 0 })
}

// TestUnusedApprovalLapses: an approval for nothing held does not allow a later deletion.
func TestUnusedApprovalLapses(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("late")
	r.commit("own", map[string]string{"d.yaml": r.configMap("d", "1")})
	w.startOperator()
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.DeletionGate = &landscapev1alpha1.DeletionGate{MaxDeletions: ptr.To[int32](0)}
	})
	w.awaitReady(r.name, "True Applied")
	held := func() []landscapev1alpha1.HeldDeletion { return w.getLandscape(r.name).Status.Held }
	r.commit("without", map[string]string{"d.yaml": ""})
	w.eventually("it is held", func() bool { return len(held()) == 1 })
	id := held()[0].Approval
	r.commit("again", map[string]string{"d.yaml": r.configMap("d", "1")})
	w.eventually("it is not held", func() bool { return len(held()) == 0 })
	w.changeLandscape(r.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Approved = []string{id} })
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return slices.Contains(l.Status.UsedApprovals, id) })
	r.commit("without", map[string]string{"d.yaml": ""})
	w.eventually("it is held anew", func() bool { return len(held()) == 1 })
	assert.Equal(t, id+"-2", held()[0].Approval)
	assert.Equal(t, "1", w.configMapValue("d"))
}
