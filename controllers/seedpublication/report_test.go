package seedpublication

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestReport: what a gardenlet says is read as it was written, costs a write only when it is another one, and stays small.
func TestReport(t *testing.T) {
	seed := &unstructured.Unstructured{Object: map[string]any{}}
	assert.Nil(t, ReadReport(nil))
	assert.Nil(t, ReadReport(seed))
	write := func(r Report) bool {
		t.Helper()
		patch, differs, err := NoteReport(seed, r)
		require.NoError(t, err)
		if differs {
			text, _, err := unstructured.NestedString(patch, "metadata", "annotations", AnnotationReport)
			require.NoError(t, err)
			seed.SetAnnotations(map[string]string{AnnotationReport: text})
		}
		return differs
	}
	small := Report{Digest: "abc", Converging: []string{"Seed one"}, Held: []Held{{Owner: "Seed one", Cluster: "one", Object: "ConfigMap a/b", Reason: "because", Approval: "1a"}}}
	assert.True(t, write(small))
	assert.False(t, write(small))
	assert.Equal(t, small, *ReadReport(seed))
	small.Converging = nil
	assert.True(t, write(small))

	var large Report
	for i := range 1000 {
		large.Converging = append(large.Converging, fmt.Sprintf("Shoot garden-a/%d", i))
		large.Failing = append(large.Failing, fmt.Sprintf("Shoot garden-a/%d", i))
		large.Held = append(large.Held, Held{Owner: "Seed one", Cluster: "one", Object: fmt.Sprintf("ConfigMap %s/%d", strings.Repeat("n", 63), i), Reason: strings.Repeat("ü", 2000)})
	}
	assert.True(t, write(large))
	assert.False(t, write(large), "it is the same as far as it goes")
	read := ReadReport(seed)
	assert.Equal(t, []int{10, 990, 10, 990, 50}, []int{len(read.Converging), read.ConvergingMore, len(read.Failing), read.FailingMore, len(read.Held)})
	assert.Less(t, len(seed.GetAnnotations()[AnnotationReport]), 64<<10)
	assert.Len(t, large.Held, 1000, "the one who reports keeps his own")

	seed.SetAnnotations(map[string]string{AnnotationReport: "{"})
	assert.Nil(t, ReadReport(seed), "what cannot be read is none")
	assert.True(t, write(small))
}
