// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/controllers/permit"
)

const (
	vpa = "apps/Deployment {control-plane}/vpa-updater"
	one = "shoot garden-a/one"
)

// changeWithLosses is a change in which a Shoot loses objects.
func changeWithLosses(id string, objects ...string) permit.SeedChange {
	c := permit.SeedChange{ID: id}
	for _, object := range objects {
		c.AddLost(object, one)
	}
	return c
}

// TestReviewRoundTrip checks that a review is read as it was written, limited to the newest
// entries, and that an unreadable one is empty.
func TestReviewRoundTrip(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &permit.SeedReview{}
	long := strings.Repeat("x", 200)
	for i := range 40 {
		var objects []string
		for k := range 100 {
			objects = append(objects, fmt.Sprintf("%d-%d-%s", i, k, long))
		}
		r = r.WithChange(changeWithLosses(fmt.Sprint(i), objects...), now.Add(time.Duration(i)*time.Minute))
	}
	o, err := reviewConfigMap(r, "s")
	require.NoError(t, err)
	got, err := ReadReview(o)
	require.NoError(t, err)
	assert.True(t, got.HasLoss(one, true, "39-0-"+long, 0))
	assert.False(t, got.HasLoss(one, true, "0-0-"+long, 0))
	assert.Equal(t, r, got)
	text, _, _ := unstructured.NestedString(o.Object, "data", keyEntries)
	assert.Less(t, len(text), 1<<20)

	small := (&permit.SeedReview{}).WithChange(changeWithLosses("A..B", vpa), now)
	small.CompleteNumber = small.Number
	o, err = reviewConfigMap(small, "s")
	require.NoError(t, err)
	got, err = ReadReview(o)
	require.NoError(t, err)
	assert.Equal(t, small, got)
	for key, text := range map[string]string{keyEntries: "[{", keyNumber: "x", keyComplete: "99999999999"} {
		broken := o.DeepCopy()
		require.NoError(t, unstructured.SetNestedField(broken.Object, text, "data", key))
		got, err = ReadReview(broken)
		require.ErrorContains(t, err, "data."+key)
		assert.False(t, got.HasLoss(one, true, vpa, 0))
	}
}
