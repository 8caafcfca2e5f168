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

// TestReceivedObjectIsDeletedWhenUndeclared checks that a landscape deletes an object that it
// received from another one and never applied, once its declaration is removed. Gate, review and
// the questions to other landscapes apply as usual. An object that the other one still has is left
// alone.
func TestReceivedObjectIsDeletedWhenUndeclared(t *testing.T) {
	const object = "ConfigMap default/left-x"
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "left-x"}
	give := func(from *folderLandscape) {
		from.write("b.yaml", mapFile("left-b"))
		from.mustSync()
	}
	for name, test := range map[string]struct {
		// then runs when both have the object in their inventories, and from owns it.
		then func(from, to *folderLandscape)
		gone bool
	}{
		"it is deleted when the others have answered": {func(from, to *folderLandscape) {
			give(from)
			to.write("a.yaml", mapFile("left-a"))
			assert.Contains(to, reasonsOf(to.mustSync(), object), "it may have moved to another landscape")
			to.syncUntilDeleted("left-x", from)
		}, true},
		"the gate holds it": {func(from, to *folderLandscape) {
			give(from)
			to.write("a.yaml", mapFile("left-a"))
			to.gate.MaxDeletions = permit.Limit(0)
			to.mustSync()
			answerQuestions(to, from)
			assert.Contains(to, reasonsOf(to.mustSync(), object), "needs approval")
		}, false},
		"no review has shown it": {func(from, to *folderLandscape) {
			give(from)
			to.write("a.yaml", mapFile("left-a"))
			to.changeOptions = func(o *Options) { o.Permits.Reviewed = permit.NewReview("test", change.Plan{}) }
			to.mustSync()
			answerQuestions(to, from)
			assert.Equal(to, "it is not in the reviewed difference"+"\n", reasonsOf(to.mustSync(), object))
			to.gate.Approved = map[string]bool{permit.ApprovalID(Virtual, ref): true}
			to.mustSync()
		}, true},
		"it is declared again by who gave it up": {func(from, to *folderLandscape) {
			give(from)
			to.write("a.yaml", mapFile("left-a"))
			to.mustSync()
			from.write("b.yaml", mapFile("left-b", "left-x"))
			from.mustSync()
			assert.Empty(to, to.mustSync().currentRun.report.Held)
		}, false},
		"who has it wants it still": {func(from, to *folderLandscape) {
			to.write("a.yaml", mapFile("left-a"))
			assert.Empty(to, to.mustSync().currentRun.report.Held)
			from.mustSync()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			from := newFolderLandscape(t, "left-from", map[string]string{"b.yaml": mapFile("left-b", "left-x")})
			to := newFolderLandscape(t, "left-to", map[string]string{"a.yaml": mapFile("left-a")})
			from.mustSync()
			to.mustSync()
			uid := uidOf(t, "left-x")
			to.write("a.yaml", mapFile("left-a", "left-x"))
			_, err := to.sync()
			require.ErrorContains(t, err, "landscape left-from declares this object as well")
			test.then(from, to)
			if test.gone {
				assert.Empty(t, uidOf(t, "left-x"))
			} else {
				assert.Equal(t, uid, uidOf(t, "left-x"))
			}
			from.clock.Step(time.Second)
			from.mustSync()
			to.mustSync()
			assert.Equal(t, test.gone, uidOf(t, "left-x") == "", "it stays so")
		})
	}
}

// TestHasGivenUp checks that a landscape has given up an object only if its inventory exists
// without the object.
func TestHasGivenUp(t *testing.T) {
	ref := func(version string) apply.Ref {
		return apply.Ref{APIVersion: "core.gardener.cloud/" + version, Kind: "Quota", Namespace: "a", Name: "x"}
	}
	has := map[apply.Ref]apply.Entry{versionlessRef(ref("v1")): {}}
	a := &otherLandscapes{cluster: Virtual, landscapes: []*otherLandscape{{name: "has", inventory: has}, {name: "empty"},
		{name: "asks", inventory: has, questioned: map[apply.Ref]bool{versionlessRef(ref("v1")): true}}}}
	for origin, want := range map[string]bool{
		"landscape.empty/virtual":      true,
		"landscape.has/virtual":        false,
		"landscape.asks/virtual":       false, // it deletes the object itself
		"landscape.gone/virtual":       false,
		"landscape.empty/runtime":      false,
		"garden local/empty":           false,
		"source:landscape.empty/other": false,
	} {
		assert.Equal(t, want, a.hasReleased(origin, ref("v1beta1")), origin)
	}
}
