// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// TestReviewAllowsOneRecreation: a reviewed commit recreates an object. A later change by someone
// else does not allow another recreation.
func TestReviewAllowsOneRecreation(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("seenonce")
	r.commit("r1", map[string]string{"r1.yaml": r.recreatableConfigMap("r1", "1") + "immutable: true\n"})
	w.startOperator()
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Review = landscapev1alpha1.ReviewRequired })
	w.awaitReady(r.name, "True Applied: ")
	r.commit("another r1", map[string]string{"r1.yaml": r.recreatableConfigMap("r1", "2")})
	w.eventually("it was to be seen", func() bool { return w.configMapValue("r1") == "2" })
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.History) == 2 && l.Status.History[0].Result == landscapev1alpha1.SyncSucceeded
	})

	r1 := &corev1.ConfigMap{}
	r1.Namespace, r1.Name = w.namespace, "r1"
	require.NoError(t, w.client.Patch(context.Background(), r1, client.RawPatch(types.MergePatchType, []byte(`{"immutable": true, "data": {"value": "by hand"}}`)), client.FieldOwner("kubectl-edit")))
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), "DriftNotRepaired") })
	assert.Equal(t, "by hand", w.configMapValue("r1"))
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "now"}
	})
	held := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 }).Status.Held[0]
	assert.Equal(t, "it is not in the reviewed difference", held.Reason)
	assert.Equal(t, "by hand", w.configMapValue("r1"))
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Approved = []string{held.Approval} })
	w.eventually("an approval lets it pass", func() bool { return w.configMapValue("r1") == "2" })
}
