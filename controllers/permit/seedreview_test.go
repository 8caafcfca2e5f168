package permit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/change"
)

const (
	vpa  = "apps/Deployment {control-plane}/vpa-updater"
	etcd = "apps/StatefulSet {control-plane}/etcd"
	one  = "shoot garden-a/one"
	two  = "shoot garden-a/two"
)

func changeOf(id string, lost, made map[string][]string) SeedChange {
	c := SeedChange{ID: id}
	for object, owners := range lost {
		for _, owner := range owners {
			c.Lose(object, owner)
		}
	}
	for object, owners := range made {
		for _, owner := range owners {
			c.Make(object, owner)
		}
	}
	return c
}

// TestReviewsAddUp checks that a seed gets the reviewed deletions of all missed changes, without
// those that are created again, too old, or done.
func TestReviewsAddUp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	r := (&SeedReview{}).After(changeOf("A..B", map[string][]string{vpa: {one, two}}, nil), now)
	assert.True(t, r.Has(one, true, vpa, 0))
	assert.False(t, r.Has(one, true, etcd, 0))
	assert.False(t, r.Has("shoot garden-a/other", true, vpa, 0), "one that is in Git, and does not lose it there")
	assert.True(t, r.Has("shoot garden-a/other", false, vpa, 0), "one that is not in Git")
	assert.False(t, r.Has("seed s", false, vpa, 0))
	assert.False(t, r.Has(one, true, vpa, r.Number), "it was done")
	all := (&SeedReview{}).After(changeOf("A..B", map[string][]string{vpa: {AllOf(one)}}, nil), now)
	assert.True(t, all.Has(one, true, vpa, 0), "it is not of the sample")
	assert.False(t, all.Has("seed s", true, vpa, 0))

	assert.Same(t, r, r.After(changeOf("A..B", map[string][]string{vpa: {one, two}}, nil), now.Add(100*24*time.Hour)), "nothing to write, and nothing that counts anew")
	again := r.After(changeOf("A,B..C", map[string][]string{vpa: {one}}, nil), now)
	assert.True(t, again.Has(one, true, vpa, r.Number), "it is to happen once more")
	assert.False(t, again.Has(two, true, vpa, r.Number))

	next := r.After(changeOf("B..C", map[string][]string{etcd: {one}}, nil), now)
	assert.True(t, next.Has(one, true, vpa, 0))
	assert.True(t, next.Has(one, true, etcd, 0))
	back := next.After(changeOf("C..D", nil, map[string][]string{vpa: {one}}), now)
	assert.False(t, back.Has(one, true, vpa, 0), "it is made anew")
	assert.True(t, back.Has(two, true, vpa, 0))
	assert.False(t, all.After(changeOf("B..C", nil, map[string][]string{vpa: {two}}), now).Has(one, true, vpa, 0), "one of them gets it again: the sample says nothing any more")
	old := next.After(changeOf("C..D", nil, map[string][]string{"/ConfigMap garden/x": {one}}), now.Add(reviewAge+time.Second))
	assert.Empty(t, old.Entries)
	assert.Greater(t, (&SeedReview{}).After(changeOf("D..E", map[string][]string{vpa: {one}}, nil), now.Add(time.Hour)).Number, r.Number, "numbers go on when all was taken back")
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
		assert.Equal(t, tt.want, ObjectIn(tt.controlPlane, tt.ref))
	}
}
