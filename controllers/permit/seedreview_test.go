// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/change"
)

const (
	vpa      = "apps/Deployment {control-plane}/vpa-updater"
	etcd     = "apps/StatefulSet {control-plane}/etcd"
	ownerOne = "shoot garden-a/one"
	ownerTwo = "shoot garden-a/two"
)

func changeOf(id string, lost, made map[string][]string) SeedChange {
	c := SeedChange{ID: id}
	for object, owners := range lost {
		for _, owner := range owners {
			c.AddLost(object, owner)
		}
	}
	for object, owners := range made {
		for _, owner := range owners {
			c.AddCreated(object, owner)
		}
	}
	return c
}

// TestSeedReviewsAccumulate checks that a seed gets the reviewed deletions of all missed changes,
// without those that are created again, too old, or done.
func TestSeedReviewsAccumulate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	r := (&SeedReview{}).WithChange(changeOf("A..B", map[string][]string{vpa: {ownerOne, ownerTwo}}, nil), now)
	assert.True(t, r.HasLoss(ownerOne, true, vpa, 0))
	assert.False(t, r.HasLoss(ownerOne, true, etcd, 0))
	assert.False(t, r.HasLoss("shoot garden-a/other", true, vpa, 0), "one that is in Git, and does not lose it there")
	assert.True(t, r.HasLoss("shoot garden-a/other", false, vpa, 0), "one that is not in Git")
	assert.False(t, r.HasLoss("seed s", false, vpa, 0))
	assert.False(t, r.HasLoss(ownerOne, true, vpa, r.Number), "it was done")
	all := (&SeedReview{}).WithChange(changeOf("A..B", map[string][]string{vpa: {AllOwnersLike(ownerOne)}}, nil), now)
	assert.True(t, all.HasLoss(ownerOne, true, vpa, 0), "it is not of the sample")
	assert.False(t, all.HasLoss("seed s", true, vpa, 0))

	assert.Same(t, r, r.WithChange(changeOf("A..B", map[string][]string{vpa: {ownerOne, ownerTwo}}, nil), now.Add(100*24*time.Hour)), "nothing to write, and nothing that counts anew")
	again := r.WithChange(changeOf("A,B..C", map[string][]string{vpa: {ownerOne}}, nil), now)
	assert.True(t, again.HasLoss(ownerOne, true, vpa, r.Number), "it is to happen once more")
	assert.False(t, again.HasLoss(ownerTwo, true, vpa, r.Number))

	next := r.WithChange(changeOf("B..C", map[string][]string{etcd: {ownerOne}}, nil), now)
	assert.True(t, next.HasLoss(ownerOne, true, vpa, 0))
	assert.True(t, next.HasLoss(ownerOne, true, etcd, 0))
	back := next.WithChange(changeOf("C..D", nil, map[string][]string{vpa: {ownerOne}}), now)
	assert.False(t, back.HasLoss(ownerOne, true, vpa, 0), "it is made anew")
	assert.True(t, back.HasLoss(ownerTwo, true, vpa, 0))
	assert.False(t, all.WithChange(changeOf("B..C", nil, map[string][]string{vpa: {ownerTwo}}), now).HasLoss(ownerOne, true, vpa, 0), "one of them gets it again: the sample says nothing any more")
	old := next.WithChange(changeOf("C..D", nil, map[string][]string{"/ConfigMap garden/x": {ownerOne}}), now.Add(maxReviewAge+time.Second))
	assert.Empty(t, old.Entries)
	assert.Greater(t, (&SeedReview{}).WithChange(changeOf("D..E", map[string][]string{vpa: {ownerOne}}, nil), now.Add(time.Hour)).Number, r.Number, "numbers go on when all was taken back")
}

func TestObjectIn(t *testing.T) {
	for _, tt := range []struct {
		controlPlane string
		ref          change.Ref
		want         string
	}{
		{"shoot--a--b", change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shoot--a--b", Name: "x"}, "apps/Deployment {control-plane}/x"},
		{"shoot--a--b", change.Ref{APIVersion: "v1", Kind: "Namespace", Name: "shoot--a--b"}, "/Namespace {control-plane}"},
		{"shoot--a--b", change.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "gardener:shoot--a--b:x"}, "rbac.authorization.k8s.io/ClusterRole gardener:{control-plane}:x"},
		{"shoot--a--b", change.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "shoot--a--bc"}, "/Secret garden/shoot--a--bc"},
		{"shoot--a--b", change.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "shoot--a--b-x"}, "/Secret garden/{control-plane}-x"},
		{"", change.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "x"}, "/Secret garden/x"},
	} {
		assert.Equal(t, tt.want, NormalizedObject(tt.controlPlane, tt.ref))
	}
}
