package seedpublication

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/plan"
)

const (
	vpa  = "apps/Deployment {control-plane}/vpa-updater"
	etcd = "apps/StatefulSet {control-plane}/etcd"
	one  = "shoot garden-a/one"
	two  = "shoot garden-a/two"
)

func change(base string, lost, made map[string][]string) Change {
	c := Change{Base: base}
	for object, owners := range lost {
		for _, owner := range owners {
			Note(&c.Lost, object, owner)
		}
	}
	for object, owners := range made {
		for _, owner := range owners {
			Note(&c.Made, object, owner)
		}
	}
	return c
}

// TestReviewsAddUp: a seed that was away knows what was seen meanwhile, but not what was never applied, is there again, or is too old.
func TestReviewsAddUp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	r := (&Review{}).after(change("A", map[string][]string{vpa: {one, two}}, nil), now)
	assert.True(t, r.Has(one, true, vpa))
	assert.False(t, r.Has(one, true, etcd))
	assert.False(t, r.Has("shoot garden-a/other", true, vpa), "one that is in Git, and does not lose it there")
	assert.True(t, r.Has("shoot garden-a/other", false, vpa), "one that is not in Git")
	assert.False(t, r.Has("seed s", false, vpa))

	again := r.after(change("A", map[string][]string{vpa: {one, two}}, nil), now.Add(time.Hour))
	assert.Equal(t, r, again, "nothing to write")

	superseded := r.after(change("A", map[string][]string{etcd: {two}}, nil), now)
	assert.False(t, superseded.Has(one, true, vpa), "the commit that showed it was not applied")
	assert.True(t, superseded.Has(two, true, etcd))
	fewer := r.after(change("A", map[string][]string{vpa: {two}}, nil), now)
	assert.False(t, fewer.Has(one, true, vpa))
	assert.True(t, fewer.Has(two, true, vpa))

	next := r.after(change("B", map[string][]string{etcd: {one}}, nil), now)
	assert.True(t, next.Has(one, true, vpa))
	assert.True(t, next.Has(one, true, etcd))
	back := next.after(change("C", nil, map[string][]string{vpa: {one}}), now)
	assert.False(t, back.Has(one, true, vpa), "it is made anew")
	assert.True(t, back.Has(two, true, vpa))
	old := next.after(change("C", nil, nil), now.Add(reviewAge+time.Second))
	assert.Empty(t, old.entries)
}

func TestObjectIn(t *testing.T) {
	for _, tt := range []struct {
		controlPlane string
		ref          plan.Ref
		want         string
	}{
		{"shoot--a--b", plan.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shoot--a--b", Name: "x"}, "apps/Deployment {control-plane}/x"},
		{"shoot--a--b", plan.Ref{APIVersion: "v1", Kind: "Namespace", Name: "shoot--a--b"}, "/Namespace {control-plane}"},
		{"shoot--a--b", plan.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "gardener:shoot--a--b:x"}, "rbac.authorization.k8s.io/ClusterRole gardener:{control-plane}:x"},
		{"shoot--a--b", plan.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "shoot--a--bc"}, "/Secret garden/shoot--a--bc"},
		{"shoot--a--b", plan.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "shoot--a--b-x"}, "/Secret garden/{control-plane}-x"},
		{"", plan.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "x"}, "/Secret garden/x"},
	} {
		assert.Equal(t, tt.want, ObjectIn(tt.controlPlane, tt.ref))
	}
}

// TestReviewIsWritten: what was written is read again, the newest of what is too much; what cannot be read has shown nothing.
func TestReviewIsWritten(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &Review{}
	long := strings.Repeat("x", 200)
	for i := range 40 {
		lost := map[string][]string{}
		for k := range 100 {
			lost[fmt.Sprintf("%d-%d-%s", i, k, long)] = []string{one}
		}
		r = r.after(change(fmt.Sprint(i), lost, nil), now.Add(time.Duration(i)*time.Minute))
	}
	o, err := r.configMap("s")
	require.NoError(t, err)
	got, err := ReadReview(o)
	require.NoError(t, err)
	assert.True(t, got.Has(one, true, "39-0-"+long))
	assert.False(t, got.Has(one, true, "0-0-"+long))
	assert.Less(t, len(got.entries), len(r.entries))
	text, _, _ := unstructured.NestedString(o.Object, "data", keySeen)
	assert.Less(t, len(text), 1<<20)

	small := (&Review{}).after(change("A", map[string][]string{vpa: {one}}, nil), now)
	o, err = small.configMap("s")
	require.NoError(t, err)
	got, err = ReadReview(o)
	require.NoError(t, err)
	assert.Equal(t, small, got)

	require.NoError(t, unstructured.SetNestedField(o.Object, "[{", "data", keySeen))
	got, err = ReadReview(o)
	require.ErrorContains(t, err, "data.seen is no list of what was seen")
	assert.False(t, got.Has(one, true, vpa))
}
