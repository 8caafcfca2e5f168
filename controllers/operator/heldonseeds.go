// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// A gardenlet reports its held deletions in the report of its Seed. The operator, which knows
// nothing else of seeds, copies them to the Landscape's status, where people look for them and
// approve them.

// reportPollInterval is the polling interval of the reports, which are in the cache.
const reportPollInterval = 2 * time.Second

// isOnSeed reports whether a gardenlet holds a deletion.
func isOnSeed(h landscapev1alpha1.HeldDeletion) bool { return isClusterOfSeed(h.Cluster) }

// heldByOperator returns the deletions that the operator itself holds.
func heldByOperator(all []landscapev1alpha1.HeldDeletion) []landscapev1alpha1.HeldDeletion {
	return slices.DeleteFunc(slices.Clone(all), isOnSeed)
}

// heldByGardenlets returns the deletions that gardenlets hold.
func heldByGardenlets(all []landscapev1alpha1.HeldDeletion) []landscapev1alpha1.HeldDeletion {
	return slices.DeleteFunc(slices.Clone(all), func(h landscapev1alpha1.HeldDeletion) bool { return !isOnSeed(h) })
}

// seedReports returns the reports of all seeds of a revision, or false if a Seed cannot be read. A
// Seed that does not exist has none.
func (j *job) seedReports(ctx context.Context) (map[string]*seedpublication.SeedReport, bool) {
	seeds, err := j.revision.landscape.Seeds()
	virtual := j.converger.Cluster(landscape.Virtual)
	switch {
	case err != nil:
		return nil, false
	case virtual == nil:
		return nil, true // without a virtual garden there are none
	}
	out := map[string]*seedpublication.SeedReport{}
	for _, seed := range seeds {
		live, err := virtual.Get(ctx, seedRef(seed.Object.Name))
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, false
		}
		if err == nil {
			out[seed.Object.Name] = seedReportOf(live)
		}
	}
	return out, true
}

// seedReportOf returns the report of a Seed. For an unreadable report it has only the reason.
func seedReportOf(live *unstructured.Unstructured) *seedpublication.SeedReport {
	if why := seedpublication.ReportProblem(live); why != "" {
		return &seedpublication.SeedReport{ReadProblem: why}
	}
	return seedpublication.ReadSeedReport(live)
}

func seedRef(name string) apply.Ref {
	return apply.Ref{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Seed", Name: name}
}

// heldInReports returns the held deletions of reports, sorted by seed.
func heldInReports(reports map[string]*seedpublication.SeedReport) []landscapev1alpha1.HeldDeletion {
	var out []landscapev1alpha1.HeldDeletion
	for seed, r := range reports {
		// If a seed has the name of an operator's cluster, only its Events report it.
		if r == nil || !isClusterOfSeed(seed) {
			continue
		}
		incomplete := func(text string, more int) {
			why := change.Reason{Code: landscapev1alpha1.HeldIncompleteReport, Count: more, Detail: text}
			out = append(out, landscapev1alpha1.HeldDeletion{Cluster: seed, Object: "Seed " + seed, Reason: text, Why: why})
		}
		if r.ReadProblem != "" {
			incomplete(r.ReadProblem, 0)
		}
		if r.Dropped > 0 {
			incomplete(fmt.Sprintf("the report of seed %s has invalid entries, which are ignored: %d", seed, r.Dropped), 0)
		}
		if r.HeldMore > 0 {
			incomplete(landscape.MoreHeldText(r.HeldMore), r.HeldMore)
		}
		for _, h := range r.Held {
			out = append(out, landscapev1alpha1.HeldDeletion{Cluster: seed, Object: h.Object, Reason: h.Reason.String(), Why: h.Reason, Approval: h.Approval, Together: h.GroupApproval})
		}
	}
	slices.SortStableFunc(out, func(a, b landscapev1alpha1.HeldDeletion) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

// pollSeedReports polls the reports until ctx ends, and processes changes.
func (s *landscapeReconciler) pollSeedReports(ctx context.Context, j *job) {
	tick := s.operator.role.Clock.NewTicker(reportPollInterval)
	defer tick.Stop()
	var last []landscapev1alpha1.HeldDeletion
	for first := true; ; first = false {
		if reports, ok := j.seedReports(ctx); ok {
			if held := heldInReports(reports); first || !slices.Equal(held, last) {
				last = held
				s.enqueue(func() {
					if s.jobs.activeJob == j {
						s.recordHeldOnSeeds(held)
					}
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
	}
}

// recordHeldOnSeeds records the deletions that gardenlets hold, and notifies about new ones.
func (s *landscapeReconciler) recordHeldOnSeeds(held []landscapev1alpha1.HeldDeletion) {
	before := s.findings.heldOnSeeds
	s.findings.heldOnSeeds = held
	s.updateHeldStatus(heldByOperator(s.status.desired.Held))
	var fresh []landscapev1alpha1.HeldDeletion
	for _, h := range held {
		if !slices.Contains(before, h) {
			fresh = append(fresh, h)
		}
	}
	if len(fresh) == 0 || s.jobs.activeJob == nil {
		return
	}
	var texts []string
	for _, h := range fresh {
		texts = append(texts, fmt.Sprintf("%s on seed %s: %s", h.Object, h.Cluster, h.Reason))
	}
	s.notify(notification.Neutral, notification.Warning, reasonHeld, "held: "+joinWithLimit(texts)+s.approveCommand(), s.jobs.activeJob.revision.Commit, s.jobs.activeJob.revision.Revision())
}

// updateHeldStatus updates the held deletions in the status, here and on seeds.
func (s *landscapeReconciler) updateHeldStatus(here []landscapev1alpha1.HeldDeletion) {
	all := append(slices.Clone(here), s.findings.heldOnSeeds...)
	s.status.desired.Held = all[:min(len(all), landscapev1alpha1.MaxHeldDeletions)]
}

// restoreHeldReasons restores the original reason of held deletions if the gate only says that this
// difference does not show them.
func restoreHeldReasons(now, before []landscapev1alpha1.HeldDeletion) []landscapev1alpha1.HeldDeletion {
	for i := range now {
		for _, h := range before {
			// An IsMoveSuspected reason is obsolete: it says that the object goes once other
			// landscapes are synced, and they are.
			if h.Approval != "" && h.Cluster == now[i].Cluster && h.Object == now[i].Object && !h.Why.IsMoveSuspected() {
				now[i].Why = permit.HeldReason(now[i].Why, h.Why)
				now[i].Reason = now[i].Why.String()
			}
		}
	}
	return now
}

// heldOnSeedsText counts the deletions that wait on seeds, and lists the ones without an approval
// id; the result is empty for none.
func heldOnSeedsText(held []landscapev1alpha1.HeldDeletion) string {
	waiting := map[string]int{}
	var seeds, parts, stuck []string
	for _, h := range held {
		if h.Approval == "" {
			stuck = append(stuck, fmt.Sprintf("%s on seed %s: %s", h.Object, h.Cluster, h.Reason))
			continue
		}
		if waiting[h.Cluster]++; waiting[h.Cluster] == 1 {
			seeds = append(seeds, h.Cluster)
		}
	}
	for _, seed := range seeds {
		text := fmt.Sprintf("%d deletions and recreations on seed %s wait for an approval", waiting[seed], seed)
		if waiting[seed] == 1 {
			text = fmt.Sprintf("1 deletion or recreation on seed %s waits for an approval", seed)
		}
		parts = append(parts, text)
	}
	if len(parts) > maxShownProblems {
		parts = append(parts[:maxShownProblems:maxShownProblems], fmt.Sprintf("others on %d more seeds", len(parts)-maxShownProblems))
	}
	if len(stuck) > 0 {
		parts = append(parts, joinWithLimit(stuck))
	}
	return strings.Join(parts, "; ")
}

// heldRepairsText counts the repairs that wait; the result is empty for none.
func heldRepairsText(held []landscapev1alpha1.HeldDeletion) string {
	switch len(held) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("the repair of %s on cluster %s waits for an approval", held[0].Object, held[0].Cluster)
	}
	return fmt.Sprintf("%d repairs wait for an approval", len(held))
}

// heldText describes everything that is held.
func (s *landscapeReconciler) heldText() string {
	return joinNonEmpty(s.jobs.lastOutcome.openItems.heldText, heldRepairsText(s.findings.heldRepairs), heldOnSeedsText(s.findings.heldOnSeeds))
}

// joinNonEmpty joins the texts that are not empty.
func joinNonEmpty(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}
