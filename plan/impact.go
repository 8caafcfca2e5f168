package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Impact is something that a plan does beyond the objects that it changes, on one cluster, and the objects by which it does. A
// reviewer reads this first.
type Impact struct {
	Cluster string `json:"cluster"`
	What    string `json:"what"`
	Objects []Ref  `json:"objects"`

	weight int
}

// weights order what happens by how bad it is to overlook it; what is not here comes last.
var weights = []func(Item, string) bool{
	func(i Item, _ string) bool { return i.Action == Fail },
	func(i Item, _ string) bool { return i.Action == Hold },
	func(i Item, what string) bool { return i.Action == Delete && what != deletes },
	func(i Item, _ string) bool { return i.Action == Delete },
	func(i Item, _ string) bool { return i.Action == Recreate },
}

// What happens to objects whose action says it all.
const (
	deletes = "is deleted"
	holds   = "is held"
	fails   = "would fail"
)

// Impacts sums up the consequences of a plan by cluster, the worst first.
func (p Plan) Impacts() []Impact {
	var out []Impact
	add := func(item Item, what string) {
		weight := slices.IndexFunc(weights, func(is func(Item, string) bool) bool { return is(item, what) })
		if weight < 0 {
			weight = len(weights)
		}
		i := slices.IndexFunc(out, func(have Impact) bool {
			return have.Cluster == item.Cluster && have.What == what && have.weight == weight
		})
		if i < 0 {
			i = len(out)
			out = append(out, Impact{Cluster: item.Cluster, What: what, weight: weight})
		}
		out[i].Objects = append(out[i].Objects, item.Object)
	}
	for _, item := range p.Items {
		switch {
		case item.Action == Fail:
			add(item, strings.TrimSuffix(fails+": "+item.Reason, ": "))
		case item.Action == Hold:
			add(item, cmp.Or(item.Reason, holds))
		case item.Action == Delete && len(item.Consequences) == 0:
			add(item, deletes)
		}
		for _, what := range item.Consequences {
			add(item, what)
		}
	}
	slices.SortStableFunc(out, func(a, b Impact) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.What, b.What), cmp.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// Reach is how far a plan goes: the Gardens, Seeds and Shoots whose bundles change, by the cluster that they are on.
type Reach struct {
	Cluster string   `json:"cluster"`
	Owners  []string `json:"owners,omitempty"`
	Objects int      `json:"objects"`
}

// Reaches is the reach of a plan by cluster.
func (p Plan) Reaches() []Reach {
	var out []Reach
	for _, item := range p.Items {
		i := slices.IndexFunc(out, func(r Reach) bool { return r.Cluster == item.Cluster })
		if i < 0 {
			i = len(out)
			out = append(out, Reach{Cluster: item.Cluster})
		}
		out[i].Objects++
		if item.Owner != "" && !slices.Contains(out[i].Owners, item.Owner) {
			out[i].Owners = append(out[i].Owners, item.Owner)
		}
	}
	for i := range out {
		slices.Sort(out[i].Owners)
	}
	slices.SortFunc(out, func(a, b Reach) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// shownNames is how many objects or owners a line names; the rest is counted.
const shownNames = 5

// some lists the first of many names and counts the others.
func some(names []string) string {
	text := strings.Join(names[:min(len(names), shownNames)], ", ")
	if more := len(names) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// objects that an impact is about, named.
func (i Impact) objects() string {
	names := make([]string, 0, len(i.Objects))
	for _, ref := range i.Objects {
		names = append(names, ref.String())
	}
	return some(names)
}

// extent says how many objects of whom a plan changes on a cluster.
func (r Reach) extent() string {
	text := fmt.Sprintf("%d %s", r.Objects, plural(r.Objects, "object", "objects"))
	if len(r.Owners) > 0 {
		text += ": " + some(r.Owners)
	}
	return text
}
