package seedpublication

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/printable"
)

// AnnotationReport on a Seed says what its gardenlet has made of what was published, as a Report in
// JSON. The gardenlet writes it, and the operator, which never reaches a seed, knows by it what is
// held there and what goes on.
const AnnotationReport = "landscape.pergola.dev/seed-report"

// ConditionSettings says whether a Seed uses the settings and overlays that were published for it
// last.
const ConditionSettings gardencorev1beta1.ConditionType = "SettingsUpToDate"

// Bounds of a Report: it stands in an annotation, of which an object has 256 KiB at most.
const (
	maxReportHeld   = 50
	maxReportOwners = 10
	maxReportText   = 300
	// maxReportNumber is more than a seed has of anything. The sum over all seeds fits into 32
	// bits.
	maxReportNumber = 1_000_000
)

// Report is how a seed stands.
type Report struct {
	// Digest is that of the publication in use; empty before one is.
	Digest string `json:"digest,omitempty"`
	// Converging are owners, "Shoot namespace/name", that were not converged yet with what is
	// declared and published now; ten at most, and ConvergingMore others. Failing are those of
	// which that went wrong last, and FailingMore others.
	Converging     []string `json:"converging,omitempty"`
	ConvergingMore int      `json:"convergingMore,omitempty"`
	Failing        []string `json:"failing,omitempty"`
	FailingMore    int      `json:"failingMore,omitempty"`
	// Held is not deleted, or not recreated, before somebody approves it; 50 at most, and HeldMore
	// others.
	Held     []Held `json:"held,omitempty"`
	HeldMore int    `json:"heldMore,omitempty"`
	// Unread says why nothing of it is known, for those who tell people; ReadReport gives none like
	// that.
	Unread string `json:"-"`
	// Dropped is how many entries were left out when it was read, because they are not of the form
	// that gardenlets write.
	Dropped int `json:"-"`
}

// Held is an object on a seed.
type Held struct {
	// Owner that it belongs to, as in Converging.
	Owner string `json:"owner"`
	// Cluster of the object: the seed, or a cluster beyond it.
	Cluster string `json:"cluster"`
	// Object, as "Kind namespace/name", and why it is held.
	Object string        `json:"object"`
	Why    change.Reason `json:"why"`
	// Text is what gardenlets of former versions have in the place of Why; ReadReport gives none.
	Text string `json:"reason,omitempty"`
	// Approval is the id that lets it alone pass; empty where none does. Together is the one of all
	// that is held with it, if that is more.
	Approval string `json:"approval,omitempty"`
	Together string `json:"together,omitempty"`
}

// bound keeps the report small, and the same for the same content.
func (r *Report) bound() {
	r.dropUnknown()
	r.Converging, r.ConvergingMore = first(r.Converging, r.ConvergingMore)
	r.Failing, r.FailingMore = first(r.Failing, r.FailingMore)
	switch n := len(r.Held); {
	case n > maxReportHeld:
		r.Held, r.HeldMore = r.Held[:maxReportHeld], r.HeldMore+n-maxReportHeld
	case n == 0:
		r.Held = nil // as it is read
	}
	for i := range r.Held {
		if detail := []rune(r.Held[i].Why.Detail); len(detail) > maxReportText {
			r.Held[i].Why.Detail = string(detail[:maxReportText-1]) + "…"
		}
	}
}

func first(owners []string, more int) ([]string, int) {
	if n := len(owners) - maxReportOwners; n > 0 {
		return slices.Clone(owners[:maxReportOwners]), more + n
	}
	if len(owners) == 0 {
		return nil, more // as it is read
	}
	return owners, more
}

// ReadReport reads the report of a Seed: nil of one that has none, or none that can be read
// (UnreadReport), as from a gardenlet of another version.
func ReadReport(seed *unstructured.Unstructured) *Report {
	if seed == nil {
		return nil
	}
	text := seed.GetAnnotations()[AnnotationReport]
	out := &Report{}
	if text == "" || json.Unmarshal([]byte(text), out) != nil {
		return nil
	}
	for i := range out.Held {
		if h := &out.Held[i]; h.Why.IsZero() {
			h.Why.Detail = h.Text
		}
		out.Held[i].Text = ""
	}
	// it is passed on into the status of others, and whoever may patch the Seed may have written it
	out.bound()
	return out
}

// UnreadReport says why the report of a Seed cannot be read; empty of one that has none, or one
// that can.
func UnreadReport(seed *unstructured.Unstructured) string {
	if seed == nil {
		return ""
	}
	text := seed.GetAnnotations()[AnnotationReport]
	if text == "" {
		return ""
	}
	if err := json.Unmarshal([]byte(text), &Report{}); err != nil {
		why := []rune(err.Error()) // it may quote what is there
		return printable.Line(fmt.Sprintf("the annotation %s of Seed %s cannot be read (%s): what its gardenlet holds, and what it has taken up, is not known. A gardenlet that runs writes it anew: see whether it does, and is of this version",
			AnnotationReport, seed.GetName(), string(why[:min(len(why), maxReportText)])))
	}
	return ""
}

// NoteReport is the patch that gives a Seed this report, if it has another one.
func NoteReport(seed *unstructured.Unstructured, r Report) (patch map[string]any, differs bool, err error) {
	r.Held = slices.Clone(r.Held)
	for i := range r.Held {
		r.Held[i].Why.Detail = printable.Line(r.Held[i].Why.Detail)
	}
	r.bound()
	r.Dropped = 0 // of what is read there
	if former := ReadReport(seed); former != nil && reflect.DeepEqual(*former, r) {
		return nil, false, nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, false, err
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationReport: string(text)}}}, true, nil
}
