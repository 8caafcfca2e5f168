// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
)

// declaredPlaces returns the declarations as in the diff of revisions.
func (w *folderLandscape) declaredPlaces() []plan.ClusterBundle {
	w.Helper()
	l, violations, err := landscapes.Load(w.Context(), w.dir, landscapes.Options{})
	require.NoError(w, err)
	require.Empty(w, violations)
	return DeclarationBundles(l, nil)
}

// TestUnreviewedDeletionsAreHeld checks that a cluster that differs from Git gets no
// unreviewed deletion.
func TestUnreviewedDeletionsAreHeld(t *testing.T) {
	w := newFolderLandscape(t, "reviewed", map[string]string{"maps.yaml": mapFile("reviewed-a", "reviewed-b", "reviewed-c", "reviewed-0a1b2c3d")})
	w.mustSync()
	// A person reviews the removal of b, against a revision with only a and b.
	w.write("maps.yaml", mapFile("reviewed-a", "reviewed-b"))
	before := w.declaredPlaces()
	w.write("maps.yaml", mapFile("reviewed-a"))
	difference := plan.CompareBundles(before, w.declaredPlaces())
	reviewed := permit.NewReview("test", difference)
	w.changeOptions = func(o *Options) { o.Permits.Reviewed = reviewed }

	c := w.mustSync()
	assert.Empty(t, uidOf(t, "reviewed-b"), "it was reviewed")
	assert.NotEmpty(t, uidOf(t, "reviewed-0a1b2c3d"), "it is declared, whatever its name looks like")
	assert.NotEmpty(t, uidOf(t, "reviewed-c"))
	held := c.currentRun.report.HeldDeletions()
	require.Len(t, held, 2)
	assert.Equal(t, "ConfigMap default/reviewed-0a1b2c3d", held[0].Object)
	held = held[1:]
	assert.Equal(t, "ConfigMap default/reviewed-c", held[0].Object)
	assert.Equal(t, Virtual, held[0].Cluster)
	assert.Equal(t, "it is not in the reviewed difference", held[0].Reason)

	// The dry run has the same result and id.
	c = w.newConverger()
	p, err := c.planDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
	require.NoError(t, err)
	require.Len(t, p.Items, 2)
	assert.Equal(t, change.Hold, p.Items[1].Action)
	assert.Equal(t, held[0].Approval, p.Items[1].Approval)
	assert.Equal(t, held[0].Approval, permit.ApprovalID(Virtual, apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "reviewed-c"}))

	w.gate.Approved = map[string]bool{held[0].Approval: true}
	require.Len(t, w.mustSync().currentRun.report.HeldDeletions(), 1, "the other one")
	assert.Empty(t, uidOf(t, "reviewed-c"))
}

func immutableFile(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: recreated, namespace: default, annotations: {resources.gardener.cloud/delete-on-invalid-update: \"true\"}}\n" +
		"immutable: true\ndata: {a: " + value + "}\n"
}

// TestRecreationsAreJudged checks that recreations count as deletions.
func TestRecreationsAreJudged(t *testing.T) {
	w := newFolderLandscape(t, "recreations", map[string]string{"map.yaml": immutableFile("one")})
	w.mustSync()
	uid := uidOf(t, "recreated")
	w.write("map.yaml", immutableFile("two"))
	w.gate.MaxDeletions = permit.Limit(0)
	c := w.mustSync()
	held := c.currentRun.report.HeldDeletions()
	require.Len(t, held, 1)
	assert.Contains(t, held[0].Reason, "needs approval")
	assert.Equal(t, uid, uidOf(t, "recreated"))

	w.gate = permit.DefaultGate()
	w.changeOptions = func(o *Options) { o.Permits.Reviewed = permit.NewReview("test", change.Plan{}) }
	c = w.mustSync()
	require.Len(t, c.currentRun.report.HeldDeletions(), 1)
	assert.Equal(t, held[0].Approval, c.currentRun.report.HeldDeletions()[0].Approval)
	assert.Equal(t, "it is not in the reviewed difference", c.currentRun.report.HeldDeletions()[0].Reason)
	assert.Equal(t, uid, uidOf(t, "recreated"))

	w.gate.Approved = map[string]bool{held[0].Approval: true}
	w.mustSync()
	assert.NotEqual(t, uid, uidOf(t, "recreated"))
}

// assertSameHolds checks that plan and status agree with a sync.
func assertSameHolds(t *testing.T, c *Converger, held []landscapev1alpha1.HeldDeletion) {
	t.Helper()
	p, err := c.planDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
	require.NoError(t, err)
	require.Len(t, p.Items, len(held))
	assert.Equal(t, change.Hold, p.Items[0].Action)
	assert.Equal(t, held[0].Reason, p.Items[0].Reason)
	assert.Equal(t, held[0].Approval, p.Items[0].Approval)
	left := c.undeclaredObjects(testContext(t), nil)
	require.Len(t, left, len(held))
	assert.Equal(t, held[0].Reason, left[0].HoldReason)
}

// TestRemovedOwnersAreHeld checks that a Shoot stays when its file is removed, with a hint.
func TestRemovedOwnersAreHeld(t *testing.T) {
	w := newFolderLandscape(t, "removed", map[string]string{"shoot.yaml": shootFile("removed"), "map.yaml": mapFile("removed-map")})
	w.mustSync()
	w.remove("shoot.yaml")
	c := w.mustSync()
	held := c.currentRun.report.HeldDeletions()
	require.Len(t, held, 1)
	assert.Equal(t, "Shoot default/removed", held[0].Object)
	assert.Contains(t, held[0].Reason, "its file no longer exists")
	const stuck = "this version cannot delete a Shoot with everything that runs for it. To keep it, put the file back; to delete the object alone and leave the rest running, first run, on cluster virtual: " +
		"kubectl annotate shoot -n default removed confirmation.gardener.cloud/deletion=true"
	assert.Contains(t, held[0].Reason, stuck, "at once, and not after somebody has approved it")
	assert.Empty(t, held[0].Approval, "no approval would lead anywhere")
	assert.Contains(t, c.currentRun.report.HeldText(), "Shoot default/removed on cluster virtual: its file no longer exists, but "+stuck)
	assertSameHolds(t, c, held)

	t.Run("confirmed on the live object", func(t *testing.T) {
		require.NoError(t, c.Operate(testContext(t), Operation{Object: "Shoot default/removed", Operation: "confirm-deletion"}))
		defer patchShoot(t, "removed", "somebody", `{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":null}}}`)
		c := w.mustSync()
		held := c.currentRun.report.HeldDeletions()
		require.Len(t, held, 1)
		assert.Contains(t, held[0].Reason, stuck)
		assertSameHolds(t, c, held)
	})

	w.write("shoot.yaml", strings.Replace(shootFile("removed"), "  namespace: default\n", "  namespace: default\n  annotations: {confirmation.gardener.cloud/deletion: \"true\"}\n", 1))
	w.mustSync()
	w.remove("shoot.yaml")
	held = w.mustSync().currentRun.report.HeldDeletions()
	require.Len(t, held, 1)
	assert.Contains(t, held[0].Reason, stuck)
	assert.Equal(t, "removed", liveShoot(t, "removed").GetName())
}
