// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// recreatableFile is a ConfigMap that is recreated when it cannot be updated.
func recreatableFile(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: recreated, namespace: default, annotations: {" +
		"resources.gardener.cloud/delete-on-invalid-update: \"true\"}}\ndata: {a: " + value + "}\n"
}

var recreatedRef = apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "recreated"}

// TestPermissionsCountOnce checks that a review or an approval counts once. After a sync
// that recreated an object, the repair of a later edit by recreation is held.
func TestPermissionsCountOnce(t *testing.T) {
	for name, allow := range map[string]func(*Options){
		"reviewed": func(o *Options) {
			o.Permits.Reviewed = permit.NewReview("test", change.Plan{Items: []change.Item{{Action: change.Recreate, Cluster: Virtual, Object: recreatedRef}}})
		},
		"approved": func(o *Options) {
			o.Permits.Reviewed, o.Permits.Gate.Approved = permit.NewReview("test", change.Plan{}), map[string]bool{permit.ApprovalID(Virtual, recreatedRef): true}
		},
		"approved, of a protected kind": func(o *Options) {
			o.Permits.Gate.Protected, o.Permits.Gate.Approved = []string{"ConfigMap"}, map[string]bool{permit.ApprovalID(Virtual, recreatedRef): true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, h := newFolderLandscape(t, "once", map[string]string{"map.yaml": recreatableFile("one")}), &driftLog{}
			w.changeOptions = func(o *Options) {
				o.Connections.Leases, o.Listeners.OnDrift, o.Timing.CareInterval = []*SharedLease{{lease: &heldLease{cluster: Runtime, name: operatorLease}}}, h.add, time.Minute
				o.Permits.DisplayedID = func(id string) string { return id + "-7" }
			}
			// run syncs the declarations of the virtual garden only.
			run := func(c *Converger) []landscapev1alpha1.HeldDeletion {
				c.currentRun.report = RunReport{}
				err := c.applyDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
				require.NoError(t, err)
				c.runs.EndRun(err == nil)
				return c.currentRun.report.HeldDeletions()
			}
			run(w.newConverger())
			freeze := func() string {
				_, err := resourceClient(t, configMapResource, "default").Patch(testContext(t), "recreated", types.MergePatchType,
					[]byte(`{"immutable": true, "data": {"a": "by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
				require.NoError(t, err)
				return uidOf(t, "recreated")
			}
			before := freeze()
			w.write("map.yaml", recreatableFile("two"))
			changes := w.changeOptions
			w.changeOptions = func(o *Options) {
				changes(o)
				allow(o)
			}
			c := w.newConverger()
			require.Empty(t, run(c))
			require.NotEqual(t, before, uidOf(t, "recreated"), "the first time it passes")

			ctx, cancel := context.WithCancel(testContext(t))
			done := make(chan error, 1)
			go func() { done <- c.Maintain(ctx) }()
			before = freeze()
			eventually(t, "it is told", func() bool { _, n := h.lastOf("recreated"); return n > 0 })
			told, _ := h.lastOf("recreated")
			assert.False(t, told.Repaired)
			assert.Contains(t, told.Error, "approve "+permit.ApprovalID(Virtual, recreatedRef)+"-7 to permit it")
			assert.Equal(t, permit.ApprovalID(Virtual, recreatedRef)+"-7", told.Approval)
			assert.NotEmpty(t, told.HoldText)
			cancel()
			require.NoError(t, <-done)
			assert.Equal(t, before, uidOf(t, "recreated"))

			require.Len(t, run(c), 1, "the next sync of the same revision holds it, too")
			assert.Equal(t, before, uidOf(t, "recreated"))
		})
	}
}
