package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// Impact is something that a plan does beyond the objects that it changes, on one cluster, and the
// objects by which it does. A reviewer reads this first. What happens to nodes is in Nodes.
type Impact struct {
	Cluster string       `json:"cluster"`
	What    string       `json:"what"`
	Objects []change.Ref `json:"objects"`

	weight int
}

// What happens to objects whose action says it all.
const (
	deletes = "is deleted"
	holds   = "is held"
	fails   = "would fail"
)

// impacts are what an item is listed under.
func impactsOf(i change.Item) []string {
	var out []string
	switch {
	case i.Action == change.Fail:
		out = append(out, strings.TrimSuffix(fails+": "+i.Reason, ": "))
	case i.Action == change.Hold:
		return []string{cmp.Or(i.Reason, holds) + prefixed("; once let through it ", strings.Join(i.Consequences, ", and "))}
	case i.Action == change.Delete && len(i.Consequences) == 0:
		out = append(out, deletes)
	}
	nodes := map[string]bool{}
	for _, c := range i.Pools {
		nodes[poolText(c)] = true
	}
	for _, what := range i.Consequences {
		if !nodes[what] {
			out = append(out, what)
		}
	}
	return out
}

// Impacts sums up the consequences of a plan by cluster, the worst first, and so are the objects of
// each: a line may be cut off.
func Impacts(p change.Plan) []Impact {
	return impactsBut(p, func(change.Item, string) bool { return false })
}

// impactsBut is Impacts without what is told elsewhere.
func impactsBut(p change.Plan, told func(change.Item, string) bool) []Impact {
	var out []Impact
	type group struct {
		cluster, what string
		weight        int
	}
	index := map[group]int{}
	for _, item := range p.Items {
		for _, what := range impactsOf(item) {
			if told(item, what) {
				continue
			}
			weight := weightOf(item)
			key := group{item.Cluster, what, weight}
			i, known := index[key]
			if !known {
				i = len(out)
				index[key] = i
				out = append(out, Impact{Cluster: item.Cluster, What: what, weight: weight})
			}
			out[i].Objects = append(out[i].Objects, item.Object)
		}
	}
	for _, impact := range out {
		slices.SortStableFunc(impact.Objects, func(a, b change.Ref) int { return cmp.Compare(rank(a), rank(b)) })
	}
	slices.SortStableFunc(out, func(a, b Impact) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.What, b.What), cmp.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// Reach is how far a plan goes: the Gardens, Seeds and Shoots whose bundles change, by the cluster
// that they are on.
type Reach struct {
	Cluster string         `json:"cluster"`
	Owners  []string       `json:"owners,omitempty"`
	Objects int            `json:"objects"`
	Summary change.Summary `json:"summary"`
}

// Reaches is the reach of a plan by cluster.
func Reaches(p change.Plan) []Reach {
	byCluster := map[string][]change.Item{}
	for _, item := range p.Items {
		byCluster[item.Cluster] = append(byCluster[item.Cluster], item)
	}
	var out []Reach
	for cluster, items := range byCluster {
		r := Reach{Cluster: cluster, Objects: len(items), Summary: change.Summarize(items)}
		for _, item := range items {
			if item.Owner != "" {
				r.Owners = append(r.Owners, item.Owner)
			}
		}
		slices.Sort(r.Owners)
		r.Owners = slices.Compact(r.Owners)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Reach) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// ControlPlane is a Garden, or a Shoot, whose API is interrupted or at least restarted, goes, or
// comes back.
type ControlPlane struct {
	Cluster string `json:"cluster"`
	Owner   string `json:"owner"`
	// Parts of the control plane that restart, by name.
	Parts []string `json:"parts,omitempty"`
	// Stops are the parts of which nothing runs any more, such as those of a cluster that
	// hibernates, and Starts those of which nothing ran until now. They are in no other list.
	Stops  []string `json:"stops,omitempty"`
	Starts []string `json:"starts,omitempty"`
}

// partsOf are those to which the same happens.
func (c *ControlPlane) partsOf(f fate) *[]string {
	return map[fate]*[]string{stopping: &c.Stops, restarting: &c.Parts, starting: &c.Starts}[f]
}

// controlPlaneParts are the workloads that serve the API of a Garden or Shoot, without the prefix
// of the virtual garden.
var controlPlaneParts = []string{"etcd-main", "etcd-events", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "gardener-apiserver"}

// ControlPlanes lists those that a plan stops, restarts or starts.
func ControlPlanes(p change.Plan) []ControlPlane {
	var out []ControlPlane
	for _, item := range p.Items {
		name, what := controlPlanePartOf(item), fateOfItem(item)
		if name == "" || what == "" {
			continue
		}
		i := slices.IndexFunc(out, func(c ControlPlane) bool { return c.Cluster == item.Cluster && c.Owner == item.Owner })
		if i < 0 {
			i = len(out)
			out = append(out, ControlPlane{Cluster: item.Cluster, Owner: item.Owner})
		}
		parts := out[i].partsOf(what)
		*parts = append(*parts, name)
	}
	for i := range out {
		for _, f := range fates {
			parts := out[i].partsOf(f)
			slices.Sort(*parts)
			*parts = slices.Compact(*parts)
		}
	}
	return out
}

// controlPlanePart is the part of a control plane that an item is about; empty for everything else.
func controlPlanePartOf(i change.Item) string {
	kind, _, _ := strings.Cut(i.Owner, " ")
	name := strings.TrimPrefix(i.Object.Name, "virtual-garden-")
	if kind != "shoot" && kind != "garden" || !slices.Contains(controlPlaneParts, name) {
		return ""
	}
	return name
}

// fate is what becomes of the pods of a workload as a whole: they do not go on as they are.
type fate string

const (
	stopping   fate = "stop"
	restarting fate = "restart"
	starting   fate = "start"
)

// fates are all of them, the worst first.
var fates = []fate{stopping, restarting, starting}

// fateOf is what a consequence says of pods; empty for one that is about something else.
func fateOf(what string) fate {
	switch {
	case what == stops:
		return stopping
	case what == starts:
		return starting
	case slices.Contains([]string{rolls, replaces, rollsEtcd}, what), strings.HasPrefix(what, rolls+" from "):
		// also where only some of them roll
		return restarting
	}
	return ""
}

// fate is that of the pods of a workload that stays; empty for one whose pods go on, and for
// everything else.
func fateOfItem(i change.Item) fate {
	if !slices.Contains([]string{"Deployment", "StatefulSet", "Etcd"}, i.Object.Kind) {
		return ""
	}
	switch {
	case i.Action == change.Delete, i.Action == change.Hold && len(i.Fields) == 0:
		return ""
	case i.Action == change.Recreate, i.Action == change.Hold:
		// of what is held a recreation has fields
		return restarting
	}
	for _, what := range i.Consequences {
		if f := fateOf(what); f != "" {
			return f
		}
	}
	return ""
}

// shownNames is how many objects or owners a line names; the rest is counted.
const shownNames = 5

// some lists the first of many names and counts the others.
func some(names []string) string { return first(names, shownNames) }

func first(names []string, n int) string {
	text := strings.Join(names[:min(len(names), n)], ", ")
	if more := len(names) - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func names(refs []change.Ref) []string {
	out := make([]string, 0, len(refs))
	for _, ref := range refs {
		out = append(out, ref.String())
	}
	return out
}
