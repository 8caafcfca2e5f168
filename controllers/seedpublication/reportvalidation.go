// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"regexp"
	"slices"
	"sync"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/printable"
)

// The status of the Landscape, messages, and commands that people copy contain parts of a report.
// Anyone who may patch a Seed can write it. So entries of a different form than gardenlets write
// are dropped and counted.

// reportPatterns are the patterns for the texts of a report.
type reportPatterns struct{ digest, approval, cluster, object, code *regexp.Regexp }

var compilePatterns = sync.OnceValue(func() reportPatterns {
	const label, name = `[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?`, `[A-Za-z0-9](?:[-A-Za-z0-9._:]{0,251}[A-Za-z0-9])?`
	return reportPatterns{
		digest:   regexp.MustCompile(`^(?:[0-9a-f]{64})?$`),
		approval: regexp.MustCompile(`^(?:[0-9a-f]{12}(?:-[0-9]{1,6})?)?$`),
		cluster:  regexp.MustCompile(`^` + name + `$`),
		object:   regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62} (?:` + label + `/)?` + name + `$`),
		code:     regexp.MustCompile(`^[A-Za-z]{0,40}$`),
	}
})

// dropInvalidEntries drops entries that do not match their pattern.
func (r *SeedReport) dropInvalidEntries() {
	is := compilePatterns()
	drop := func(n int) { r.Dropped += n }
	if !is.digest.MatchString(r.Digest) {
		r.Digest = ""
		drop(1)
	}
	for _, owners := range []*[]string{&r.Converging, &r.Failing} {
		n := len(*owners)
		*owners = slices.DeleteFunc(slices.Clone(*owners), func(owner string) bool { return !is.object.MatchString(owner) })
		drop(n - len(*owners))
	}
	for _, more := range []*int{&r.ConvergingMore, &r.FailingMore, &r.HeldMore} {
		if !isValidCount(*more) {
			*more = 0
			drop(1)
		}
	}
	n := len(r.Held)
	r.Held = slices.DeleteFunc(r.Held, func(h HeldObject) bool {
		return !is.object.MatchString(h.Owner) || !is.cluster.MatchString(h.Cluster) || !is.object.MatchString(h.Object) ||
			!is.approval.MatchString(h.Approval) || !is.approval.MatchString(h.GroupApproval) || !is.isValidReason(h.Reason)
	})
	drop(n - len(r.Held))
}

// isValidReason reports whether a gardenlet may hold a deletion for this reason.
// HeldIncompleteReport is only for readers of reports.
func (is reportPatterns) isValidReason(why change.Reason) bool {
	return is.code.MatchString(string(why.Code)) && why.Code != landscapev1alpha1.HeldIncompleteReport && isValidCount(why.Count) && isValidCount(why.Total) && isValidCount(why.Limit) &&
		why.String() == printable.Line(why.String()) && len(why.Cluster)+len(why.Kind) <= maxReportText
}

func isValidCount(n int) bool { return n >= 0 && n <= maxReportCount }
