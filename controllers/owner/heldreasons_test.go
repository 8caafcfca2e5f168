// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// getConfigMap returns a ConfigMap, nil for none.
func (s *testSite) getConfigMap(name string) *unstructured.Unstructured {
	s.Helper()
	o, err := s.resource("configmaps", s.ns).Get(s.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s, err)
	return o
}

// TestObjectsBeyondLimitStayHeldInNextRun checks that the next run and a repair still hold objects
// beyond the limit.
func TestObjectsBeyondLimitStayHeldInNextRun(t *testing.T) {
	const held = "2 deletions on cluster local are more than the 1 allowed in one run"
	immutable := func(s *testSite, value string) *unstructured.Unstructured {
		return s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: NS}, immutable: true, data: {a: " + value + "}}")
	}
	for name, test := range map[string]struct {
		direct, recreated bool
	}{
		"direct": {true, false}, "managed": {false, false}, "recreated, direct": {true, true}, "recreated, managed": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.run.reconciler.Gate = permit.Gate{MaxDeletions: permit.Limit(1)}
			objects := []*unstructured.Unstructured{s.configMap("stays"), immutable(s, "one")}
			s.mustApply(s.bundle(test.direct, objects...))
			if objects = objects[:1]; test.recreated {
				objects = append(objects, immutable(s, "two"))
			}
			ref := apply.RefOf(immutable(s, ""))
			uid := func() types.UID {
				if o := s.getConfigMap("x"); o != nil {
					return o.GetUID()
				}
				return ""
			}
			was := uid()
			b := s.bundle(test.direct, objects...)
			// another bundle of the run has lost one
			s.run.deletionsByCluster = map[string]int{"local": 1}
			_, err := s.run.applyBundle(s.ctx, b)
			require.NoError(t, err)
			require.Len(t, s.run.report.Held, 1)
			assert.Equal(t, held, s.run.report.Held[0].Objects[0].Reason.String())

			_, found, err := s.run.reconciler.repair(s.ctx, s.run.owner, nameOfSet(b.Owner, b.Name))
			require.NoError(t, err)
			assert.True(t, found)
			assert.Equal(t, was, uid(), "by a repair")
			for range 2 {
				s.mustApply(b)
				require.Len(t, s.run.report.Held, 1)
				assert.Equal(t, "it is still held: "+held, s.run.report.Held[0].Objects[0].Reason.String())
				assert.Equal(t, was, uid(), "by the next run")
			}
			s.run.reconciler.Gate.Approved = map[string]bool{permit.ApprovalID("local", ref): true}
			s.mustApply(b)
			assert.Empty(t, s.run.report.Held)
			assert.NotEqual(t, was, uid())
		})
	}
}
