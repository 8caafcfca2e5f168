// SPDX-License-Identifier: Apache-2.0

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

// AnnotationReport on a Seed is the Report of its gardenlet, in JSON. The operator, which has no
// access to seeds, reads from it the held deletions and the progress of a publication.
const AnnotationReport = "landscape.pergola.dev/seed-report"

// ConditionSettingsUpToDate says whether a Seed uses the last published settings and overlays.
const ConditionSettingsUpToDate gardencorev1beta1.ConditionType = "SettingsUpToDate"

// Limits of a Report: the annotations of an object have 256 KiB at most.
const (
	maxReportHeld   = 50
	maxReportOwners = 10
	maxReportText   = 300
	// maxReportCount exceeds any count of a seed. The sum over all seeds fits into 32 bits.
	maxReportCount = 1_000_000
)

// SeedReport is the state of a seed.
type SeedReport struct {
	// Digest is the digest of the publication in use; it is empty without one.
	Digest string `json:"digest,omitempty"`
	// Converging are owners, "Shoot namespace/name", that are not reconciled yet with the current
	// declarations and publication, 10 at most; ConvergingMore counts the rest. Failing are the
	// owners whose last reconciliation failed; FailingMore counts the rest.
	Converging     []string `json:"converging,omitempty"`
	ConvergingMore int      `json:"convergingMore,omitempty"`
	Failing        []string `json:"failing,omitempty"`
	FailingMore    int      `json:"failingMore,omitempty"`
	// Held are the deletions and recreations that wait for an approval, 50 at most; HeldMore counts
	// the rest.
	Held     []HeldObject `json:"held,omitempty"`
	HeldMore int          `json:"heldMore,omitempty"`
	// ReadProblem is why the report cannot be read, for messages; ReadSeedReport does not set it.
	ReadProblem string `json:"-"`
	// Dropped counts the entries that were dropped while reading, because gardenlets do not write
	// their form.
	Dropped int `json:"-"`
}

// HeldObject is a held object on a seed.
type HeldObject struct {
	// Owner is the owner of the object, as in Converging.
	Owner string `json:"owner"`
	// Cluster is the cluster of the object: the seed, or a cluster beyond it.
	Cluster string `json:"cluster"`
	// Object, as "Kind namespace/name", and the reason why it is held.
	Object string        `json:"object"`
	Reason change.Reason `json:"why"`
	// LegacyReason replaces Why in reports of older gardenlets; ReadSeedReport clears it.
	LegacyReason string `json:"reason,omitempty"`
	// Approval is the id that approves this object alone; it is empty if none exists. Together
	// approves all objects that are held with it, if there are more.
	Approval      string `json:"approval,omitempty"`
	GroupApproval string `json:"together,omitempty"`
}

// truncate limits the report, and normalizes it.
func (r *SeedReport) truncate() {
	r.dropInvalidEntries()
	r.Converging, r.ConvergingMore = firstOwners(r.Converging, r.ConvergingMore)
	r.Failing, r.FailingMore = firstOwners(r.Failing, r.FailingMore)
	switch n := len(r.Held); {
	case n > maxReportHeld:
		r.Held, r.HeldMore = r.Held[:maxReportHeld], r.HeldMore+n-maxReportHeld
	case n == 0:
		r.Held = nil // as ReadSeedReport returns it
	}
	for i := range r.Held {
		if detail := []rune(r.Held[i].Reason.Detail); len(detail) > maxReportText {
			r.Held[i].Reason.Detail = string(detail[:maxReportText-1]) + "…"
		}
	}
}

func firstOwners(owners []string, more int) ([]string, int) {
	if n := len(owners) - maxReportOwners; n > 0 {
		return slices.Clone(owners[:maxReportOwners]), more + n
	}
	if len(owners) == 0 {
		return nil, more // as ReadSeedReport returns it
	}
	return owners, more
}

// ReadSeedReport returns the report of a Seed, or nil if it has none or an unreadable one
// (ReportProblem), for example of another version.
func ReadSeedReport(seed *unstructured.Unstructured) *SeedReport {
	if seed == nil {
		return nil
	}
	text := seed.GetAnnotations()[AnnotationReport]
	out := &SeedReport{}
	if text == "" || json.Unmarshal([]byte(text), out) != nil {
		return nil
	}
	for i := range out.Held {
		if h := &out.Held[i]; h.Reason.IsZero() {
			h.Reason.Detail = h.LegacyReason
		}
		out.Held[i].LegacyReason = ""
	}
	// The status of other objects shows it, and anybody who may patch the Seed can have written it.
	out.truncate()
	return out
}

// ReportProblem returns why the report of a Seed cannot be read, or "" if it has none or a readable
// one.
func ReportProblem(seed *unstructured.Unstructured) string {
	if seed == nil {
		return ""
	}
	text := seed.GetAnnotations()[AnnotationReport]
	if text == "" {
		return ""
	}
	if err := json.Unmarshal([]byte(text), &SeedReport{}); err != nil {
		why := []rune(err.Error()) // it may quote the content
		return printable.Line(fmt.Sprintf("the annotation %s of Seed %s cannot be read (%s), so the held deletions and the settings of its gardenlet are unknown. A running gardenlet rewrites it: check that it runs and has this version",
			AnnotationReport, seed.GetName(), string(why[:min(len(why), maxReportText)])))
	}
	return ""
}

// ReportPatch returns the patch that gives a Seed this report; differs is false if the Seed has it
// already.
func ReportPatch(seed *unstructured.Unstructured, r SeedReport) (patch map[string]any, differs bool, err error) {
	r.Held = slices.Clone(r.Held)
	for i := range r.Held {
		r.Held[i].Reason.Detail = printable.Line(r.Held[i].Reason.Detail)
	}
	r.truncate()
	r.Dropped = 0 // only set while reading
	if former := ReadSeedReport(seed); former != nil && reflect.DeepEqual(*former, r) {
		return nil, false, nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, false, err
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationReport: string(text)}}}, true, nil
}
