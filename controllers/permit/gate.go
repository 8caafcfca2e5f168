// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
)

// Gate holds deletions and recreations beyond an ordinary change. The diff before a merge and the
// engine use the same gate. The zero value holds nothing.
type Gate struct {
	// MaxDeletions is the maximum number of deletions in one run on one cluster; nil means
	// unlimited, 0 holds every deletion.
	MaxDeletions *int
	// MaxShare is the maximum share of the objects of a cluster in one run, in percent; nil means
	// unlimited, 0 holds every deletion. A share above 0 does not hold up to MinDeletionsForShare
	// deletions.
	MaxShare *int
	// Protected kinds are never deleted without approval: `Kind` in any API group, or `Kind.group`;
	// `Kind.` is the core group.
	Protected []string
	// Approved holds the ids (see ApprovalID) that a person has approved: of single objects, or of
	// all held objects together.
	Approved map[string]bool
	// Ledger is asked before approved objects pass, and may refuse them. Without a ledger every
	// approved object passes.
	Ledger Ledger
	// Reviewed reports whether people have reviewed a deletion or recreation; the gate holds the
	// others. nil requires no review.
	Reviewed func(cluster string, ref change.Ref) bool
	// PreviouslyHeld has the reasons of the previous run. Objects that exceeded a limit then stay
	// held until they are approved or the limit changes. Their number does not matter: the previous
	// run has used up the limit.
	PreviouslyHeld map[change.Ref]change.Reason

	earlierDeletions int // deletions allowed earlier in this run
}

// MinDeletionsForShare is the number of deletions that no share above 0 holds.
const MinDeletionsForShare = 10

// DefaultGate is used if a landscape configures none: 100 deletions, 50 %, and the kinds whose
// deletion loses data or clusters.
func DefaultGate() Gate {
	return Gate{
		MaxDeletions: Limit(100), MaxShare: Limit(50),
		Protected: []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "Etcd",
			"Garden", "Seed", "Shoot", "Project"},
	}
}

// Limit returns a value for MaxDeletions or MaxShare.
func Limit(n int) *int { return &n }

// ParseShare parses a percentage such as "25%" or "25".
func ParseShare(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(s), "%"))
	if err != nil || n < 0 || n > 100 {
		return 0, fmt.Errorf("share %q is not a percentage between 0%% and 100%%", s)
	}
	return n, nil
}

// WithEarlierDeletions returns the gate for the rest of a run that has already allowed n deletions
// on the cluster: limits count for the whole run.
func (g Gate) WithEarlierDeletions(n int) Gate {
	g.earlierDeletions += n
	return g
}

// Verdict is the decision of the gate about the deletions of one cluster.
type Verdict struct {
	// Held objects with the reason; all others may be deleted.
	Held map[change.Ref]change.Reason
	// ID approves exactly the held objects.
	ID string
}

// Judge decides about the deletions and recreations of one run on one cluster. total is the number
// of managed objects there. It asks the Ledger, which records the use of approvals.
func (g Gate) Judge(cluster string, refs []change.Ref, total int) Verdict {
	v := Verdict{Held: map[change.Ref]change.Reason{}}
	beyond := g.exceededLimit(cluster, len(refs), total)
	// together includes objects with their own approvals: the id of all that people saw covers
	// them, too.
	together := map[change.Ref]change.Reason{}
	for _, ref := range refs {
		var reason change.Reason
		switch {
		case g.isStillHeld(cluster, ref):
			reason = g.PreviouslyHeld[ref]
			reason.Earlier = true
		case g.Reviewed != nil && !g.Reviewed(cluster, ref):
			reason.Code = landscapev1alpha1.HeldNotReviewed
		case g.isProtected(ref):
			reason.Code, reason.Kind = landscapev1alpha1.HeldProtectedKind, ref.Kind
		default:
			reason = beyond
		}
		if !reason.IsZero() {
			together[ref] = reason
		}
		if !g.UseApproval(ApprovalID(cluster, ref), ref) && !reason.IsZero() {
			v.Held[ref] = reason
		}
	}
	left := slices.Collect(maps.Keys(v.Held))
	v.ID = ApprovalID(cluster, left...)
	if all := ApprovalID(cluster, slices.Collect(maps.Keys(together))...); g.UseApproval(v.ID, left...) || all != v.ID && g.UseApproval(all, left...) {
		v.Held = map[change.Ref]change.Reason{}
	}
	return v
}

// UseApproval reports whether these objects pass by an approved id. It asks the Ledger, which
// records the use of the approval.
func (g Gate) UseApproval(id string, refs ...change.Ref) bool {
	return g.Approved[id] && (g.Ledger == nil || g.Ledger(id, refs))
}

// exceededLimit returns the limit that a number of deletions exceeds.
func (g Gate) exceededLimit(cluster string, deletions, total int) change.Reason {
	n := deletions + g.earlierDeletions
	switch {
	case deletions == 0:
		return change.Reason{}
	case g.MaxDeletions != nil && n > 0 && *g.MaxDeletions == 0:
		return change.Reason{Code: landscapev1alpha1.HeldEveryDeletion, Cluster: cluster}
	case g.MaxDeletions != nil && n > *g.MaxDeletions:
		return change.Reason{Code: landscapev1alpha1.HeldTooManyDeletions, Cluster: cluster, Count: n, Limit: *g.MaxDeletions}
	case g.MaxShare != nil && (n > MinDeletionsForShare || *g.MaxShare == 0) && n*100 > total*(*g.MaxShare):
		return change.Reason{Code: landscapev1alpha1.HeldTooLargeShare, Cluster: cluster, Count: n, Total: total, Limit: *g.MaxShare}
	}
	return change.Reason{}
}

// isStillHeld reports whether an object exceeded a limit in the previous run and the limit is
// unchanged. Inventories of old versions have no codes: their held objects stay held until they are
// approved.
func (g Gate) isStillHeld(cluster string, ref change.Ref) bool {
	before := g.PreviouslyHeld[ref]
	if before.Code == "" {
		return !before.IsZero()
	}
	limit := map[landscapev1alpha1.HeldCode]*int{
		landscapev1alpha1.HeldTooManyDeletions: g.MaxDeletions, landscapev1alpha1.HeldTooLargeShare: g.MaxShare,
	}[before.Code]
	return limit != nil && *limit == before.Limit && cluster == before.Cluster
}

// HeldReason returns the reason of the previous run if the new one is only a missing review. A
// review counts for one sync, so the next sync always lacks it.
func HeldReason(reason, before change.Reason) change.Reason {
	if reason.Code != landscapev1alpha1.HeldNotReviewed || before.IsZero() || before.Code == landscapev1alpha1.HeldNotReviewed {
		return reason
	}
	before.Earlier = true
	return before
}

func (g Gate) isProtected(ref change.Ref) bool {
	return slices.ContainsFunc(g.Protected, func(p string) bool {
		kind, group, qualified := strings.Cut(p, ".")
		return kind == ref.Kind && (!qualified || group == ref.Group())
	})
}

// MarkHeld marks the items of a plan that the gate holds, and returns the approval ids by cluster.
// totals has the number of managed objects by cluster.
func (g Gate) MarkHeld(p *change.Plan, totals map[string]int) map[string]string {
	byCluster := map[string][]change.Ref{}
	for _, item := range p.Items {
		if item.Action == change.Delete || item.Action == change.Recreate {
			byCluster[item.Cluster] = append(byCluster[item.Cluster], item.Object)
		}
	}
	ids := map[string]string{}
	held := map[string]map[change.Ref]change.Reason{}
	for cluster, refs := range byCluster {
		v := g.Judge(cluster, refs, totals[cluster])
		held[cluster] = v.Held
		if len(v.Held) > 0 {
			ids[cluster] = v.ID
		}
	}
	for i := range p.Items {
		item := &p.Items[i]
		if item.Action != change.Delete && item.Action != change.Recreate {
			continue
		}
		if reason, ok := held[item.Cluster][item.Object]; ok {
			item.Reason = string(item.Action) + " is held: " + reason.String()
			item.Action, item.Approval = change.Hold, ApprovalID(item.Cluster, item.Object)
		}
	}
	p.SortAndCount()
	return ids
}
