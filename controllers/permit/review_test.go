// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/change"
)

// TestReviewOnSeed checks that a seed gets the lost and created objects of its owners, and the lost
// objects of sampled Shoots for all Shoots.
func TestReviewOnSeed(t *testing.T) {
	item := func(action change.Action, owner, namespace string) change.Item {
		return change.Item{Action: action, Owner: owner, Object: change.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "x"}}
	}
	const object = "/Secret {control-plane}/x"
	a, b := SeedLocation{Seed: "a", ControlPlane: "shoot--p--one"}, SeedLocation{Seed: "b", ControlPlane: "shoot--p--two"}
	only := map[string]map[string]bool{object: {"shoot p/one": true}}
	for name, test := range map[string]struct {
		action       change.Action
		sampled      bool
		lost, made   map[string]map[string]bool
		lostOnOthers map[string]map[string]bool
	}{
		"deleted":   {action: change.Delete, lost: only},
		"recreated": {action: change.Recreate, lost: only},
		"held":      {action: change.Hold, lost: only},
		"created":   {action: change.Create, made: only},
		"changed":   {action: change.Change},
		"sampled": {action: change.Delete, sampled: true, lost: map[string]map[string]bool{object: {"shoot p/one": true, "shoot *": true}},
			lostOnOthers: map[string]map[string]bool{object: {"shoot *": true}}},
		"created in a sample": {action: change.Create, sampled: true, made: only},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReview("a..b", change.Plan{})
			r.AddSeedItem(item(test.action, "shoot p/one", a.ControlPlane), a, test.sampled)
			for range 2 { // asking changes nothing
				assert.Equal(t, SeedChange{ID: "a..b", LostObjects: test.lost, CreatedObjects: test.made}, r.ForSeed("a"))
				assert.Equal(t, SeedChange{ID: "a..b", LostObjects: test.lostOnOthers}, r.ForSeed("other"))
			}
		})
	}
	r := NewReview("a..b", change.Plan{})
	r.AddSeedItem(item(change.Delete, "shoot p/one", a.ControlPlane), a, true)
	r.AddSeedItem(item(change.Delete, "shoot p/two", b.ControlPlane), b, false)
	assert.Equal(t, map[string]map[string]bool{object: {"shoot p/two": true, "shoot *": true}}, r.ForSeed("b").LostObjects)
	assert.Equal(t, map[string]map[string]bool{object: {"shoot p/one": true, "shoot *": true}}, r.ForSeed("a").LostObjects)
}
