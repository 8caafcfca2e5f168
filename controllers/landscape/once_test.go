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

// looseFile is a ConfigMap that is recreated when it cannot be updated.
func looseFile(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: recreated, namespace: default, annotations: {" +
		"resources.gardener.cloud/delete-on-invalid-update: \"true\"}}\ndata: {a: " + value + "}\n"
}

var recreated = apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "recreated"}

// TestWhatLetSomethingPassDoesSoOnce checks that a review or an approval counts once. After a sync
// that recreated an object, the repair of a later edit by recreation is held.
func TestWhatLetSomethingPassDoesSoOnce(t *testing.T) {
	for name, allow := range map[string]func(*Options){
		"reviewed": func(o *Options) {
			o.Permits.Reviewed = permit.NewReview("test", change.Plan{Items: []change.Item{{Action: change.Recreate, Cluster: Virtual, Object: recreated}}})
		},
		"approved": func(o *Options) {
			o.Permits.Reviewed, o.Permits.Gate.Approved = permit.NewReview("test", change.Plan{}), map[string]bool{permit.ApprovalID(Virtual, recreated): true}
		},
		"approved, of a protected kind": func(o *Options) {
			o.Permits.Gate.Protected, o.Permits.Gate.Approved = []string{"ConfigMap"}, map[string]bool{permit.ApprovalID(Virtual, recreated): true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, h := newWritten(t, "once", map[string]string{"map.yaml": looseFile("one")}), &heard{}
			w.changes = func(o *Options) {
				o.Connect.Leases, o.Hear.OnDrift, o.Pace.CareInterval = []*Lease{{lease: &lease{cluster: Runtime, name: leaseOperator}}}, h.hear, time.Minute
				o.Permits.Shown = func(id string) string { return id + "-7" }
			}
			// run syncs the declarations of the virtual garden only.
			run := func(c *Converger) []landscapev1alpha1.HeldDeletion {
				c.now.report = Report{}
				err := c.applyDeclarations(testContext(t), Virtual, split(c.landscape)[Virtual])
				require.NoError(t, err)
				c.runs.EndRun(err == nil)
				return c.now.report.HeldDeletions()
			}
			run(w.converger())
			freeze := func() string {
				_, err := resource(t, testMaps, "default").Patch(testContext(t), "recreated", types.MergePatchType,
					[]byte(`{"immutable": true, "data": {"a": "by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
				require.NoError(t, err)
				return uidOf(t, "recreated")
			}
			before := freeze()
			w.write("map.yaml", looseFile("two"))
			changes := w.changes
			w.changes = func(o *Options) {
				changes(o)
				allow(o)
			}
			c := w.converger()
			require.Empty(t, run(c))
			require.NotEqual(t, before, uidOf(t, "recreated"), "the first time it passes")

			ctx, cancel := context.WithCancel(testContext(t))
			done := make(chan error, 1)
			go func() { done <- c.Keep(ctx) }()
			before = freeze()
			eventually(t, "it is told", func() bool { _, n := h.about("recreated"); return n > 0 })
			told, _ := h.about("recreated")
			assert.False(t, told.Repaired)
			assert.Contains(t, told.Error, "approving "+permit.ApprovalID(Virtual, recreated)+"-7 lets it pass")
			assert.Equal(t, permit.ApprovalID(Virtual, recreated)+"-7", told.Approval)
			assert.NotEmpty(t, told.Held)
			cancel()
			require.NoError(t, <-done)
			assert.Equal(t, before, uidOf(t, "recreated"))

			require.Len(t, run(c), 1, "the next sync of the same revision holds it, too")
			assert.Equal(t, before, uidOf(t, "recreated"))
		})
	}
}
