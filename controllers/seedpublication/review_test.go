package seedpublication

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

const (
	vpa  = "apps/Deployment {control-plane}/vpa-updater"
	etcd = "apps/StatefulSet {control-plane}/etcd"
	one  = "shoot garden-a/one"
	two  = "shoot garden-a/two"
)

func changeOf(id string, lost, made map[string][]string) Change {
	c := Change{ID: id}
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

// TestReviewsAddUp: a seed that was away knows what was seen meanwhile, but not what is there again, is too old, or was done before.
func TestReviewsAddUp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	r := (&Review{}).after(changeOf("A..B", map[string][]string{vpa: {one, two}}, nil), now)
	assert.True(t, r.Has(one, true, vpa, 0))
	assert.False(t, r.Has(one, true, etcd, 0))
	assert.False(t, r.Has("shoot garden-a/other", true, vpa, 0), "one that is in Git, and does not lose it there")
	assert.True(t, r.Has("shoot garden-a/other", false, vpa, 0), "one that is not in Git")
	assert.False(t, r.Has("seed s", false, vpa, 0))
	assert.False(t, r.Has(one, true, vpa, r.number), "it was done")
	all := (&Review{}).after(changeOf("A..B", map[string][]string{vpa: {AllOf(one)}}, nil), now)
	assert.True(t, all.Has(one, true, vpa, 0), "it is not of the sample")
	assert.False(t, all.Has("seed s", true, vpa, 0))

	assert.Same(t, r, r.after(changeOf("A..B", map[string][]string{vpa: {one, two}}, nil), now.Add(100*24*time.Hour)), "nothing to write, and nothing that counts anew")
	again := r.after(changeOf("A,B..C", map[string][]string{vpa: {one}}, nil), now)
	assert.True(t, again.Has(one, true, vpa, r.number), "it is to happen once more")
	assert.False(t, again.Has(two, true, vpa, r.number))

	next := r.after(changeOf("B..C", map[string][]string{etcd: {one}}, nil), now)
	assert.True(t, next.Has(one, true, vpa, 0))
	assert.True(t, next.Has(one, true, etcd, 0))
	back := next.after(changeOf("C..D", nil, map[string][]string{vpa: {one}}), now)
	assert.False(t, back.Has(one, true, vpa, 0), "it is made anew")
	assert.True(t, back.Has(two, true, vpa, 0))
	assert.False(t, all.after(changeOf("B..C", nil, map[string][]string{vpa: {two}}), now).Has(one, true, vpa, 0), "one of them gets it again: the sample says nothing any more")
	old := next.after(changeOf("C..D", nil, map[string][]string{"/ConfigMap garden/x": {one}}), now.Add(reviewAge+time.Second))
	assert.Empty(t, old.entries)
	assert.Greater(t, (&Review{}).after(changeOf("D..E", map[string][]string{vpa: {one}}, nil), now.Add(time.Hour)).number, r.number, "numbers go on when all was taken back")
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
		r = r.after(changeOf(fmt.Sprint(i), lost, nil), now.Add(time.Duration(i)*time.Minute))
	}
	o, err := r.configMap("s")
	require.NoError(t, err)
	got, err := ReadReview(o)
	require.NoError(t, err)
	assert.True(t, got.Has(one, true, "39-0-"+long, 0))
	assert.False(t, got.Has(one, true, "0-0-"+long, 0))
	assert.Equal(t, r, got)
	text, _, _ := unstructured.NestedString(o.Object, "data", keySeen)
	assert.Less(t, len(text), 1<<20)

	small := (&Review{}).after(changeOf("A..B", map[string][]string{vpa: {one}}, nil), now)
	small.complete = small.number
	o, err = small.configMap("s")
	require.NoError(t, err)
	got, err = ReadReview(o)
	require.NoError(t, err)
	assert.Equal(t, small, got)
	for key, text := range map[string]string{keySeen: "[{", keyNumber: "x", keyComplete: "99999999999"} {
		broken := o.DeepCopy()
		require.NoError(t, unstructured.SetNestedField(broken.Object, text, "data", key))
		got, err = ReadReview(broken)
		require.ErrorContains(t, err, "data."+key)
		assert.False(t, got.Has(one, true, vpa, 0))
	}
}
