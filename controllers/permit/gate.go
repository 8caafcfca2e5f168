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

// Gate holds deletions and recreations that go beyond an ordinary change. The diff before a merge
// and the engine use the same gate. The zero value holds nothing.
type Gate struct {
	// MaxDeletions in one run on one cluster; nil is no limit, 0 holds every deletion.
	MaxDeletions *int
	// MaxShare of the objects of a cluster in one run, in percent; nil is no limit, 0 holds every
	// deletion. Other shares say nothing about up to SmallSet deletions, and do not hold them.
	MaxShare *int
	// Protected kinds are never deleted without approval, whatever the numbers: `Kind` in any API
	// group, or `Kind.group`; `Kind.` is the core group.
	Protected []string
	// Approved holds the ids (see ApprovalID) that a person has approved: of single objects, or of
	// all that are held together.
	Approved map[string]bool
	// Ledger is asked before objects pass by an approved id. Objects that it refuses stay held.
	// Without one every approved object passes.
	Ledger Ledger
	// Reviewed tells whether a deletion or recreation was in the difference that people have
	// reviewed; what was not is held. nil asks for no review.
	Reviewed func(cluster string, ref change.Ref) bool
	// Before has the reasons why a former run held objects. Those that it held for their number
	// stay held until somebody approves them or the limit changes, however few they are now: the
	// run let as many pass as are expected of one.
	Before map[change.Ref]change.Reason

	spent int // deletions of this run that were let through before
}

// SmallSet is the number of deletions up to which a share says nothing.
const SmallSet = 10

// DefaultGate is used where a landscape does not set its own: 100 deletions, 50 %, and the kinds
// whose deletion loses data or clusters.
func DefaultGate() Gate {
	return Gate{
		MaxDeletions: Limit(100), MaxShare: Limit(50),
		Protected: []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "Etcd",
			"Garden", "Seed", "Shoot", "Project"},
	}
}

// Limit is a value for MaxDeletions or MaxShare.
func Limit(n int) *int { return &n }

// ParseShare reads a percentage as "25%" or "25".
func ParseShare(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(s), "%"))
	if err != nil || n < 0 || n > 100 {
		return 0, fmt.Errorf("share %q: want a percentage between 0%% and 100%%", s)
	}
	return n, nil
}

// After is the gate for the rest of a run in which n deletions on the cluster have been let
// through: limits count for the run as a whole.
func (g Gate) After(n int) Gate {
	g.spent += n
	return g
}

// Verdict is what the gate says about the deletions of one cluster.
type Verdict struct {
	// Held objects with the reason; all others may go.
	Held map[change.Ref]change.Reason
	// ID approves exactly these held objects.
	ID string
}

// Judge decides over deletions and recreations of one run on one cluster; total is the number of
// objects that are managed there. It asks the Ledger, which notes that an approval is used.
func (g Gate) Judge(cluster string, refs []change.Ref, total int) Verdict {
	v := Verdict{Held: map[change.Ref]change.Reason{}}
	beyond := g.beyond(cluster, len(refs), total)
	// together has those that are approved by ids of their own, too: they were held with the others
	// when people were shown the id of all.
	together := map[change.Ref]change.Reason{}
	for _, ref := range refs {
		var reason change.Reason
		switch {
		case g.stillHeld(cluster, ref):
			reason = g.Before[ref]
			reason.Earlier = true
		case g.Reviewed != nil && !g.Reviewed(cluster, ref):
			reason.Code = landscapev1alpha1.HeldNotReviewed
		case g.protects(ref):
			reason.Code, reason.Kind = landscapev1alpha1.HeldProtectedKind, ref.Kind
		default:
			reason = beyond
		}
		if !reason.IsZero() {
			together[ref] = reason
		}
		if !g.Approves(ApprovalID(cluster, ref), ref) && !reason.IsZero() {
			v.Held[ref] = reason
		}
	}
	left := slices.Collect(maps.Keys(v.Held))
	v.ID = ApprovalID(cluster, left...)
	if all := ApprovalID(cluster, slices.Collect(maps.Keys(together))...); g.Approves(v.ID, left...) || all != v.ID && g.Approves(all, left...) {
		v.Held = map[change.Ref]change.Reason{}
	}
	return v
}

// Approves reports whether these objects pass by an approved id. It asks the Ledger, which notes
// that the approval is used.
func (g Gate) Approves(id string, refs ...change.Ref) bool {
	return g.Approved[id] && (g.Ledger == nil || g.Ledger(id, refs))
}

// beyond says which limit a number of deletions exceeds.
func (g Gate) beyond(cluster string, deletions, total int) change.Reason {
	n := deletions + g.spent
	switch {
	case deletions == 0:
		return change.Reason{}
	case g.MaxDeletions != nil && n > 0 && *g.MaxDeletions == 0:
		return change.Reason{Code: landscapev1alpha1.HeldEveryDeletion, Cluster: cluster}
	case g.MaxDeletions != nil && n > *g.MaxDeletions:
		return change.Reason{Code: landscapev1alpha1.HeldTooManyDeletions, Cluster: cluster, Count: n, Limit: *g.MaxDeletions}
	case g.MaxShare != nil && (n > SmallSet || *g.MaxShare == 0) && n*100 > total*(*g.MaxShare):
		return change.Reason{Code: landscapev1alpha1.HeldTooLargeShare, Cluster: cluster, Count: n, Total: total, Limit: *g.MaxShare}
	}
	return change.Reason{}
}

// stillHeld reports whether an object was held because there were too many, by a limit that holds
// still. Inventories of former versions have no codes: an object that such an inventory held stays
// held until it is approved.
func (g Gate) stillHeld(cluster string, ref change.Ref) bool {
	before := g.Before[ref]
	if before.Code == "" {
		return !before.IsZero()
	}
	limit := map[landscapev1alpha1.HeldCode]*int{
		landscapev1alpha1.HeldTooManyDeletions: g.MaxDeletions, landscapev1alpha1.HeldTooLargeShare: g.MaxShare,
	}[before.Code]
	return limit != nil && *limit == before.Limit && cluster == before.Cluster
}

// StillHeld keeps the reason for which an object was held before. A review counts for one sync
// only, so the gate says in the next one that no review has shown the object, although the former
// one did.
func StillHeld(reason, before change.Reason) change.Reason {
	if reason.Code != landscapev1alpha1.HeldNotReviewed || before.IsZero() || before.Code == landscapev1alpha1.HeldNotReviewed {
		return reason
	}
	before.Earlier = true
	return before
}

func (g Gate) protects(ref change.Ref) bool {
	return slices.ContainsFunc(g.Protected, func(p string) bool {
		kind, group, qualified := strings.Cut(p, ".")
		return kind == ref.Kind && (!qualified || group == ref.Group())
	})
}

// Mark marks the items of a plan that the gate holds. totals gives the number of managed objects by
// cluster. It returns the approval ids by cluster.
func (g Gate) Mark(p *change.Plan, totals map[string]int) map[string]string {
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
	p.Sort()
	return ids
}
