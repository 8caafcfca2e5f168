// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// Impact is an effect of a plan beyond the changed objects, on one cluster, with the objects that
// cause it. Reviewers read it first. Effects on nodes are in Nodes.
type Impact struct {
	Cluster string       `json:"cluster"`
	Effect  string       `json:"what"`
	Objects []change.Ref `json:"objects"`

	weight int
}

// Impacts of actions without further explanation.
const (
	deleteText = "is deleted"
	holdText   = "is held"
	failText   = "would fail"
)

// impactsOf returns the impacts that list an item.
func impactsOf(i change.Item) []string {
	var out []string
	switch {
	case i.Action == change.Fail:
		out = append(out, strings.TrimSuffix(failText+": "+i.Reason, ": "))
	case i.Action == change.Hold:
		return []string{cmp.Or(i.Reason, holdText) + withPrefix("; once approved it ", strings.Join(i.Consequences, ", and "))}
	case i.Action == change.Delete && len(i.Consequences) == 0:
		out = append(out, deleteText)
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

// Impacts groups the consequences of a plan by cluster. Impacts and their objects are sorted by
// risk, highest first, because a line may be truncated.
func Impacts(p change.Plan) []Impact {
	return impactsExcept(p, func(change.Item, string) bool { return false })
}

// impactsExcept is Impacts except those for which told returns true.
func impactsExcept(p change.Plan, told func(change.Item, string) bool) []Impact {
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
			weight := riskOf(item)
			key := group{item.Cluster, what, weight}
			i, known := index[key]
			if !known {
				i = len(out)
				index[key] = i
				out = append(out, Impact{Cluster: item.Cluster, Effect: what, weight: weight})
			}
			out[i].Objects = append(out[i].Objects, item.Object)
		}
	}
	for _, impact := range out {
		slices.SortStableFunc(impact.Objects, func(a, b change.Ref) int { return cmp.Compare(displayRank(a), displayRank(b)) })
	}
	slices.SortStableFunc(out, func(a, b Impact) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// AffectedCluster is the set of owners (Gardens, Seeds, Shoots) and objects that a plan affects on
// one cluster.
type AffectedCluster struct {
	Cluster string         `json:"cluster"`
	Owners  []string       `json:"owners,omitempty"`
	Objects int            `json:"objects"`
	Summary change.Summary `json:"summary"`
}

// AffectedClusters returns the reach of a plan by cluster.
func AffectedClusters(p change.Plan) []AffectedCluster {
	byCluster := map[string][]change.Item{}
	for _, item := range p.Items {
		byCluster[item.Cluster] = append(byCluster[item.Cluster], item)
	}
	var out []AffectedCluster
	for cluster, items := range byCluster {
		r := AffectedCluster{Cluster: cluster, Objects: len(items), Summary: change.Summarize(items)}
		for _, item := range items {
			if item.Owner != "" {
				r.Owners = append(r.Owners, item.Owner)
			}
		}
		slices.Sort(r.Owners)
		r.Owners = slices.Compact(r.Owners)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b AffectedCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// ControlPlane is a Garden or Shoot whose control plane stops, restarts or starts.
type ControlPlane struct {
	Cluster string `json:"cluster"`
	Owner   string `json:"owner"`
	// Parts are the names of the parts that restart.
	Parts []string `json:"parts,omitempty"`
	// Stops are the parts that stop, such as on hibernation; Starts are the parts that start from
	// zero. Each part is in only one list.
	Stops  []string `json:"stops,omitempty"`
	Starts []string `json:"starts,omitempty"`
}

// partsOf returns the list of parts with a fate.
func (c *ControlPlane) partsOf(f podEffect) *[]string {
	return map[podEffect]*[]string{stopping: &c.Stops, restarting: &c.Parts, starting: &c.Starts}[f]
}

// controlPlaneParts are the workloads of a control plane, without the prefix of the virtual garden.
var controlPlaneParts = []string{"etcd-main", "etcd-events", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "gardener-apiserver"}

// ControlPlanes returns the control planes that a plan stops, restarts or starts.
func ControlPlanes(p change.Plan) []ControlPlane {
	var out []ControlPlane
	for _, item := range p.Items {
		name, what := controlPlanePartOf(item), podEffectOfItem(item)
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
		for _, f := range podEffects {
			parts := out[i].partsOf(f)
			slices.Sort(*parts)
			*parts = slices.Compact(*parts)
		}
	}
	return out
}

// controlPlanePartOf returns the control plane part of an item, or an empty string.
func controlPlanePartOf(i change.Item) string {
	kind, _, _ := strings.Cut(i.Owner, " ")
	name := strings.TrimPrefix(i.Object.Name, "virtual-garden-")
	if kind != "shoot" && kind != "garden" || !slices.Contains(controlPlaneParts, name) {
		return ""
	}
	return name
}

// podEffect is the effect of a change on all pods of a workload.
type podEffect string

const (
	stopping   podEffect = "stop"
	restarting podEffect = "restart"
	starting   podEffect = "start"
)

// podEffects are all fates, highest risk first.
var podEffects = []podEffect{stopping, restarting, starting}

// podEffectOf returns the fate in a consequence, or an empty string.
func podEffectOf(what string) podEffect {
	switch {
	case what == stopText:
		return stopping
	case what == startText:
		return starting
	case slices.Contains([]string{rollText, replaceText, rollEtcdText}, what), strings.HasPrefix(what, rollText+" from "):
		// a partial rollout, too
		return restarting
	}
	return ""
}

// podEffectOfItem returns the fate of a workload that remains; the result is empty for other items,
// and if its pods are not affected.
func podEffectOfItem(i change.Item) podEffect {
	if !slices.Contains([]string{"Deployment", "StatefulSet", "Etcd"}, i.Object.Kind) {
		return ""
	}
	switch {
	case i.Action == change.Delete, i.Action == change.Hold && len(i.Fields) == 0:
		return ""
	case i.Action == change.Recreate, i.Action == change.Hold:
		// a held item with fields is a recreation
		return restarting
	}
	for _, what := range i.Consequences {
		if f := podEffectOf(what); f != "" {
			return f
		}
	}
	return ""
}

// maxShownNames is the largest number of names in a line; the rest is counted.
const maxShownNames = 5

// shownList lists the first names and counts the others.
func shownList(names []string) string { return truncatedList(names, maxShownNames) }

func truncatedList(names []string, n int) string {
	text := strings.Join(names[:min(len(names), n)], ", ")
	if more := len(names) - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func refNames(refs []change.Ref) []string {
	out := make([]string, 0, len(refs))
	for _, ref := range refs {
		out = append(out, ref.String())
	}
	return out
}
