// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// TestPlanShowsSeedHolds checks that a dry run shows the holds of the seed's gardenlet while that
// runs.
func TestPlanShowsSeedHolds(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	cluster := testCluster(t)
	c := newBareConverger(clk, map[string]*apply.Cluster{"test": cluster})
	seed := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "test"}}}
	patch, _, err := seedpublication.ReportPatch(seed, seedpublication.SeedReport{Held: []seedpublication.HeldObject{
		{Owner: "Shoot default/s", Cluster: "test", Object: "ConfigMap ns/held", Reason: change.Reason{Detail: "because"}, Approval: "0123456789ab-2"},
	}})
	require.NoError(t, err)
	text, _, _ := unstructured.NestedString(patch, "metadata", "annotations", seedpublication.AnnotationReport)
	seed.SetAnnotations(map[string]string{seedpublication.AnnotationReport: text})
	c.recordSeedReport(seed)
	look := func(cluster *apply.Cluster) change.Item {
		items := []change.Item{
			{Cluster: "test", Action: change.Delete, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "held"}},
			{Cluster: "test", Action: change.Delete, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "goes"}},
			{Cluster: "virtual", Action: change.Delete, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "held"}},
		}
		o := &convergedOwner{Owner: owner.Owner{Local: cluster, Input: render.Input{Owner: render.Owner{Kind: owner.Shoot, Namespace: "default", Name: "s"}}}}
		c.markSeedHolds(testContext(t), o, items)
		assert.Equal(t, change.Delete, items[1].Action)
		assert.Equal(t, change.Delete, items[2].Action, "on another cluster")
		return items[0]
	}
	l := &leaseTest{T: t, name: gardenletLease, clock: clk}
	l.writeAs("gardenlet", clk.Now())
	got := look(cluster)
	assert.Equal(t, []any{change.Hold, "delete is held: because", "0123456789ab-2"}, []any{got.Action, got.Reason, got.Approval})
	l.writeAs("", clk.Now())
	assert.Equal(t, change.Delete, look(cluster).Action, "no gardenlet runs there: an apply from here deletes it")
}

// TestRemovedShootInADryRun checks that a Shoot whose file was removed is held without an approval
// id, and that no effects of its deletion are shown.
func TestRemovedShootInADryRun(t *testing.T) {
	w := newFolderLandscape(t, "removed", map[string]string{"shoot.yaml": shootFile("removed"), "map.yaml": mapFile("removed")})
	w.mustSync()
	w.remove("shoot.yaml")
	c := w.newConverger()
	p, err := c.planDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
	require.NoError(t, err)
	require.Len(t, p.Items, 1)
	assert.Equal(t, change.Hold, p.Items[0].Action)
	assert.Contains(t, p.Items[0].Reason, "its file no longer exists, but this version cannot delete a Shoot")
	assert.Empty(t, p.Items[0].Approval)
	assert.Empty(t, p.Items[0].Consequences)
	assert.Empty(t, p.Items[0].Pools)
	assert.Empty(t, plan.NodeChanges(p))
}
