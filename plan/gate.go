package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Gate keeps deletions and recreations back that go beyond what is expected of
// an ordinary change. The same gate judges the diff before a merge and the engine.
type Gate struct {
	// MaxDeletions in one run on one cluster.
	MaxDeletions int
	// MaxShare of the objects of a cluster, in percent; it counts only above SmallSet objects.
	MaxShare int
	// Protected kinds are never deleted without approval, whatever the numbers.
	Protected []string
	// Approved holds the ids (see ApprovalID) that a person has approved.
	Approved map[string]bool
}

// SmallSet is the number of deletions below which a share says nothing.
const SmallSet = 10

// DefaultGate is used where a landscape does not set its own.
func DefaultGate() Gate {
	return Gate{
		MaxDeletions: 100, MaxShare: 50,
		Protected: []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "Etcd", "Garden", "Seed", "Shoot", "Project"},
	}
}

// ParseShare reads a percentage as "25%" or "25".
func ParseShare(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(s), "%"))
	if err != nil || n < 0 || n > 100 {
		return 0, fmt.Errorf("share %q: want a percentage between 0%% and 100%%", s)
	}
	return n, nil
}

// Verdict is what the gate says about the deletions of one cluster.
type Verdict struct {
	// Held objects with the reason; all others may go.
	Held map[Ref]string
	// ID approves exactly these held objects.
	ID string
}

// Judge decides over all deletions and recreations of one run on one cluster; total is the
// number of objects that are managed there.
func (g Gate) Judge(cluster string, refs []Ref, total int) Verdict {
	v := Verdict{Held: map[Ref]string{}}
	protected := map[string]bool{}
	for _, kind := range g.Protected {
		protected[kind] = true
	}
	for _, ref := range refs {
		if protected[ref.Kind] {
			v.Held[ref] = "kind " + ref.Kind + " is protected"
		}
	}
	reason := ""
	switch {
	case g.MaxDeletions > 0 && len(refs) > g.MaxDeletions:
		reason = fmt.Sprintf("%d deletions on cluster %s are more than the %d allowed in one run", len(refs), cluster, g.MaxDeletions)
	case g.MaxShare > 0 && len(refs) > SmallSet && total > 0 && len(refs)*100 > total*g.MaxShare:
		reason = fmt.Sprintf("%d of %d objects on cluster %s are more than the %d%% allowed in one run", len(refs), total, cluster, g.MaxShare)
	}
	if reason != "" {
		for _, ref := range refs {
			if _, ok := v.Held[ref]; !ok {
				v.Held[ref] = reason
			}
		}
	}
	v.ID = ApprovalID(cluster, v.Held)
	if g.Approved[v.ID] {
		v.Held = map[Ref]string{}
	}
	return v
}

// ApprovalID names a set of held objects: approving it approves these and no others.
func ApprovalID(cluster string, held map[Ref]string) string {
	if len(held) == 0 {
		return ""
	}
	lines := make([]string, 0, len(held))
	for ref := range held {
		lines = append(lines, ref.Group()+"/"+ref.String())
	}
	sort.Strings(lines)
	sum := sha256.Sum256([]byte(cluster + "\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])[:12]
}

// Apply marks the items of a plan that the gate holds. totals gives the number of managed
// objects by cluster. It returns the approval ids by cluster.
func (g Gate) Apply(p *Plan, totals map[string]int) map[string]string {
	byCluster := map[string][]Ref{}
	for _, item := range p.Items {
		if item.Action == Delete || item.Action == Recreate {
			byCluster[item.Cluster] = append(byCluster[item.Cluster], item.Object)
		}
	}
	ids := map[string]string{}
	held := map[string]map[Ref]string{}
	for cluster, refs := range byCluster {
		v := g.Judge(cluster, refs, totals[cluster])
		held[cluster] = v.Held
		if len(v.Held) > 0 {
			ids[cluster] = v.ID
		}
	}
	for i := range p.Items {
		item := &p.Items[i]
		if item.Action != Delete && item.Action != Recreate {
			continue
		}
		if reason, ok := held[item.Cluster][item.Object]; ok {
			item.Reason = string(item.Action) + " is held: " + reason
			item.Action = Hold
		}
	}
	p.Sort()
	return ids
}
