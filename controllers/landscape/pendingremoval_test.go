// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// TestReviewedRemovalWaits checks that a reviewed deletion happens after other landscapes have
// answered, even after another commit or a restart. An unreviewed one needs an approval, and its
// reason says so.
func TestReviewedRemovalWaits(t *testing.T) {
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "wait-x"}
	const object = "ConfigMap default/wait-x"
	id := permit.ApprovalID(Virtual, ref)
	nothing := permit.NewReview("test", change.Plan{})
	for name, test := range map[string]struct {
		reviewed *permit.Review
		text     string
		then     func(from, other *folderLandscape)
	}{
		"reviewed": {
			permit.NewReview("test", change.Plan{Items: []change.Item{{Action: change.Delete, Cluster: Virtual, Object: ref}}}),
			"it may have moved to another landscape; it is deleted once these are synced and do not declare it: waitb\n",
			func(from, other *folderLandscape) { from.syncUntilDeleted("wait-x", other) },
		},
		"reviewed, and a run fails before it is asked again": {
			permit.NewReview("test", change.Plan{Items: []change.Item{{Action: change.Delete, Cluster: Virtual, Object: ref}}}), "it is deleted once these are synced",
			func(from, other *folderLandscape) {
				from.write("b.yaml", mapFile("Wait-refused")) // an invalid name
				_, err := from.sync()
				require.ErrorContains(from, err, "Wait-refused")
				from.write("b.yaml", "")
				from.syncUntilDeleted("wait-x", other)
			},
		},
		"reviewed, and held by the gate since": {
			permit.NewReview("test", change.Plan{Items: []change.Item{{Action: change.Delete, Cluster: Virtual, Object: ref}}}), "it is deleted once these are synced",
			func(from, other *folderLandscape) {
				answerQuestions(from, other)
				from.gate.MaxDeletions = permit.Limit(0)
				assert.Contains(t, reasonsOf(from.mustSync(), object), "needs approval")
				from.gate = permit.DefaultGate()
				assert.Equal(t, "it is not in the reviewed difference"+"\n", reasonsOf(from.mustSync(), object), "what was held stays held")
			},
		},
		"not reviewed": {
			nothing, "no review has shown its deletion, so it needs an approval even after these are synced: waitb",
			func(from, other *folderLandscape) {
				answerQuestions(from, other)
				c := from.mustSync()
				assert.Equal(t, "it is not in the reviewed difference"+"\n", reasonsOf(c, object))
				assert.Equal(t, id, c.currentRun.report.HeldDeletions()[0].Approval)
				from.gate.Approved = map[string]bool{id: true}
				assert.Empty(t, from.mustSync().currentRun.report.Held)
				assert.Empty(t, uidOf(t, "wait-x"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, other := newFolderLandscape(t, "waita", map[string]string{"a.yaml": mapFile("wait-x", "wait-stays")}), newFolderLandscape(t, "waitb", map[string]string{"b.yaml": mapFile("wait-own")})
			from.mustSync()
			other.mustSync()
			from.write("a.yaml", mapFile("wait-stays"))
			from.changeOptions = func(o *Options) { o.Permits.Reviewed = test.reviewed }
			assert.Contains(t, reasonsOf(from.mustSync(), object), test.text)
			from.changeOptions = func(o *Options) { o.Permits.Reviewed = nothing }
			assert.Contains(t, reasonsOf(from.mustSync(), object), test.text)
			test.then(from, other)
		})
	}
}

// answerQuestions makes another landscape answer with newer files, and waits until the answer is
// visible.
func answerQuestions(from, other *folderLandscape) {
	from.Helper()
	other.clock.SetTime(from.clock.Now().Add(time.Second))
	require.Eventually(from, func() bool {
		require.NoError(from, other.newConverger().answerRemovalQuestions(testContext(from.T)))
		c := from.newConverger()
		around, err := c.readOtherLandscapes(testContext(from.T), Virtual)
		require.NoError(from, err)
		return len(around.removals.questions) == 1 && around.pendingAnswers(around.removals.questions[0].Object) == ""
	}, time.Minute, 50*time.Millisecond)
}
