// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/health/condition"
)

// TestTerminatingObjectsAreNotWaitedFor checks that a step does not wait for an object that left
// its bundle, neither while it is terminating nor afterwards.
func TestTerminatingObjectsAreNotWaitedFor(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			goes := s.configMap("goes")
			goes.SetFinalizers([]string{"example.org/stuck"})
			s.mustApply(s.bundle(direct, s.configMap("stays"), goes))

			b := s.bundle(direct, s.configMap("stays"))
			var w waiter
			var err error
			told := map[string]apply.Action{}
			s.run.reconciler.Hooks.OnObject = func(_, _ string, r apply.ObjectResult) { told[r.Ref.Name] = r.Action }
			w, err = s.run.applyBundle(s.ctx, b)
			require.NoError(t, err)
			assert.Equal(t, apply.Deleting, told["goes"])
			assert.Equal(t, []string{"ConfigMap " + s.ns + "/stays"}, refNames(w.refs))
			wait := func() error { return s.run.waitAll(s.ctx, []waiter{w}, true, func(flow.State, string) {}) }
			require.NoError(t, wait(), "it is still there")

			_, err = s.resource("configmaps", s.ns).Patch(s.ctx, "goes", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			s.eventually("the cache sees that it is gone", func() bool { return len(s.run.owner.finishedBundles(s.ctx)) == 1 })
			require.NoError(t, wait(), "it is gone")
			known, _, err := s.run.reconciler.recordedObjects(s.ctx, s.run.owner, b)
			require.NoError(t, err)
			require.Len(t, known, 1, "and nothing names it any more")
			assert.Equal(t, "stays", known[0].Name)
			if !direct {
				mr, err := w.managedReconciler.Read(s.ctx, b.Namespace, b.Name)
				require.NoError(t, err)
				applied := condition.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
				assert.Equal(t, "ApplySucceeded", applied.Reason, applied.Message)
			}
			assert.Empty(t, s.run.owner.finishedBundles(s.ctx), "it is not applied again and again")
		})
	}
}

// TestHeldObjectsAreNotWaitedFor checks that a step does not wait for a held object, which someone
// may delete.
func TestHeldObjectsAreNotWaitedFor(t *testing.T) {
	s := newSite(t)
	s.run.reconciler.Gate = permit.Gate{MaxDeletions: ptr.To(1)}
	s.mustApply(s.bundle(false, s.configMap("stays"), s.configMap("a"), s.configMap("b")))
	w, err := s.run.applyBundle(s.ctx, s.bundle(false, s.configMap("stays")))
	require.NoError(t, err)
	require.Len(t, s.run.report.Held, 1)
	assert.Equal(t, []string{"ConfigMap " + s.ns + "/stays"}, refNames(w.refs))
}

func refNames(refs []apply.Ref) []string {
	var out []string
	for _, ref := range refs {
		out = append(out, ref.String())
	}
	return out
}
