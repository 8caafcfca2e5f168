// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// The head of a report in any format: changes of nodes, control planes that stop, restart or start,
// other impacts, and the affected objects.

// nodeGroup is a group of nodes with the same change for the same reason.
type nodeGroup struct {
	Effect, Cause string
	Rows          []nodeRow
	// Nodes is the maximum; Pools and Shoots are counts.
	Nodes         int64
	Pools, Shoots int
}

// nodeRow has the pools of one Shoot.
type nodeRow struct {
	Landscape, Cluster, Shoot string
	Pools                     []string
	Nodes                     int64
	// RolloutStep is how many nodes are added and removed at a time.
	RolloutStep string
}

func (r Report) nodeGroups() []nodeGroup {
	var out []nodeGroup
	for _, l := range r.Landscapes {
		for _, n := range NodeChanges(l.Plan) {
			why := strings.Join(n.Causes, ", ")
			i := slices.IndexFunc(out, func(g nodeGroup) bool { return g.Effect == n.Effect && g.Cause == why })
			if i < 0 {
				i = len(out)
				out = append(out, nodeGroup{Effect: n.Effect, Cause: why})
			}
			out[i].add(l.Name, n)
		}
	}
	order := []string{change.NodesDeleted, change.NodesReplaced, change.NodesMaybeReplaced, change.NodesUpdatedInPlace, change.NodesUpdatedOnSelection}
	slices.SortStableFunc(out, func(a, b nodeGroup) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Effect), slices.Index(order, b.Effect)), cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Cause, b.Cause))
	})
	return out
}

func (g *nodeGroup) add(landscape string, n NodeChange) {
	step := ""
	if n.Surge != "" || n.Unavailable != "" {
		step = fmt.Sprintf("+%s −%s", cmp.Or(n.Surge, "0"), cmp.Or(n.Unavailable, "0"))
	}
	g.Nodes += n.PoolChange.MaxNodes
	g.Pools++
	last := len(g.Rows) - 1
	if last < 0 || g.Rows[last].Landscape != landscape || g.Rows[last].Cluster != n.Cluster || g.Rows[last].Shoot != n.Shoot || g.Rows[last].RolloutStep != step {
		if last < 0 || g.Rows[last].Landscape != landscape || g.Rows[last].Shoot != n.Shoot {
			g.Shoots++
		}
		g.Rows = append(g.Rows, nodeRow{Landscape: landscape, Cluster: n.Cluster, Shoot: n.Shoot, RolloutStep: step})
		last++
	}
	g.Rows[last].Pools = append(g.Rows[last].Pools, n.Pool)
	g.Rows[last].Nodes += n.PoolChange.MaxNodes
}

// mergeRows merges rows of a cluster whose pools have the same names and steps.
func mergeRows(rows []nodeRow) []nodeRow {
	index := map[string]int{}
	var out []nodeRow
	for _, row := range rows {
		key := strings.Join(append([]string{row.Landscape, row.Cluster, row.RolloutStep}, row.Pools...), "\x00")
		i, known := index[key]
		if !known {
			index[key] = len(out)
			out = append(out, row)
			continue
		}
		out[i].Shoot += ", " + row.Shoot
		out[i].Nodes += row.Nodes
	}
	return out
}

// Title describes the group: "Nodes are replaced (up to 12, in 3 shoots): machine image a 1 → a 2".
func (g nodeGroup) Title() string {
	return fmt.Sprintf("Nodes %s (up to %d, in %d %s): %s", nodeVerbPhrase(g.Effect), g.Nodes, g.Shoots, plural(g.Shoots, "shoot", "shoots"), g.Cause)
}

// tableRow is a line of a table: impact, place and objects.
type tableRow struct{ What, Where, Names string }

// clusterLabel names a cluster, with its landscape if there are several.
func (r Report) clusterLabel(landscape, cluster string) string {
	if r.hasNames() {
		return landscape + ": " + cluster
	}
	return cluster
}

// controlPlaneRows groups the control planes whose same parts have one fate.
func (r Report) controlPlaneRows(f podEffect, shown int) []tableRow {
	type group struct{ landscape, cluster, parts string }
	var order []group
	owners := map[group][]string{}
	for _, l := range r.Landscapes {
		for _, c := range ControlPlanes(l.Plan) {
			parts := *c.partsOf(f)
			if len(parts) == 0 {
				continue
			}
			g := group{l.Name, c.Cluster, strings.Join(parts, ", ")}
			if owners[g] == nil {
				order = append(order, g)
			}
			owners[g] = append(owners[g], c.Owner)
		}
	}
	var out []tableRow
	for _, g := range order {
		out = append(out, tableRow{g.parts, r.clusterLabel(g.landscape, g.cluster), truncatedList(owners[g], shown)})
	}
	return out
}

// isControlPlaneImpact reports whether the control plane table already shows an impact.
func isControlPlaneImpact(item change.Item, what string) bool {
	return podEffectOf(what) != "" && controlPlanePartOf(item) != "" && podEffectOfItem(item) != ""
}

// controlPlaneTitle is the heading for control planes with one fate.
func controlPlaneTitle(f podEffect) string { return "Control planes that " + string(f) }

// impactRows returns the impacts of all landscapes, highest risk first.
func (r Report) impactRows(shown int) []tableRow {
	type impact struct {
		Impact
		landscape string
	}
	var all []impact
	for _, l := range r.Landscapes {
		for _, i := range impactsExcept(l.Plan, isControlPlaneImpact) {
			all = append(all, impact{i, l.Name})
		}
	}
	slices.SortStableFunc(all, func(a, b impact) int { return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.Effect, b.Effect)) })
	var out []tableRow
	for _, i := range all {
		out = append(out, tableRow{i.Effect, r.clusterLabel(i.landscape, i.Cluster), truncatedList(refNames(i.Objects), shown)})
	}
	return out
}

// isHarmless reports whether only the objects themselves change. It returns false if that is
// unknown: for a changed Shoot without rendered seed objects, and for a landscape with notes.
func (r Report) isHarmless() bool {
	for _, l := range r.Landscapes {
		if len(l.Notes) > 0 || len(NodeChanges(l.Plan)) > 0 || len(ControlPlanes(l.Plan)) > 0 || len(Impacts(l.Plan)) > 0 || hasUnrenderedShoot(l.Plan) {
			return false
		}
	}
	return true
}

// hasUnrenderedShoot reports whether a plan has a changed Shoot without objects on a seed, so
// consequences are missing.
func hasUnrenderedShoot(p change.Plan) bool {
	owners := map[string]bool{}
	for _, item := range p.Items {
		owners[item.Owner] = true
	}
	return slices.ContainsFunc(p.Items, func(i change.Item) bool {
		return i.Object.Kind == "Shoot" && isKnownGroup(i.Object) && i.Action != change.Create && !owners["shoot "+i.Object.Namespace+"/"+i.Object.Name]
	})
}

// affectedRow counts the affected objects on one cluster.
type affectedRow struct {
	Location, Owners                 string
	Objects, Added, Changed, Removed int
}

func (r Report) affectedRows() []affectedRow {
	var out []affectedRow
	for _, l := range r.Landscapes {
		for _, reach := range AffectedClusters(l.Plan) {
			s := reach.Summary
			out = append(out, affectedRow{Location: r.clusterLabel(l.Name, reach.Cluster), Owners: shownList(reach.Owners), Objects: reach.Objects,
				Added: s.Create, Changed: s.Change + s.Recreate + s.Adopt, Removed: s.Delete + s.Keep})
		}
	}
	return out
}

// notes returns the notes of all landscapes, once if all have the same.
func (r Report) notes() []string {
	count := map[string]int{}
	for _, l := range r.Landscapes {
		for _, note := range l.Notes {
			count[note]++
		}
	}
	var out []string
	for _, l := range r.Landscapes {
		for _, note := range l.Notes {
			switch {
			case !r.hasNames():
			case count[note] == len(r.Landscapes):
				if slices.Contains(out, note) {
					continue
				}
			default:
				note = "landscape " + l.Name + ": " + note
			}
			out = append(out, note)
		}
	}
	return out
}

// handedOver describes the declared fields that controllers own.
func (r Report) handedOver() []string {
	var out []string
	for _, l := range r.Landscapes {
		for _, h := range l.HandedOver {
			text := HandedOverText(h)
			if r.hasNames() {
				text = "landscape " + l.Name + ": " + text
			}
			out = append(out, text)
		}
	}
	return out
}

// revisions returns the compared revisions, "main → work tree", if all landscapes have the same.
func (r Report) revisions() string {
	out := ""
	for i, l := range r.Landscapes {
		text := ""
		if l.From != "" || l.To != "" {
			text = l.From + " → " + l.To
		}
		if i > 0 && text != out {
			return ""
		}
		out = text
	}
	return out
}

// summaryLine returns the summary in one line.
func (r Report) summaryLine() string {
	text := SummaryLine(change.Plan{Items: make([]change.Item, min(1, r.itemCount())), Summary: r.Summary(), Unchanged: r.unchangedCount(), ChangedSettings: r.settingCount()})
	if !slices.ContainsFunc(r.Landscapes, func(l LandscapePlan) bool { return !l.HasNoBaseline }) && len(r.Landscapes) > 0 {
		text = "Nothing was compared: the changes are unknown."
	}
	unreached := withPrefix(" ", unaffectedText(r.unaffected()))
	if !r.hasNames() {
		return text + unreached
	}
	var changed, same, unknown []string
	for _, l := range r.Landscapes {
		switch {
		case l.HasNoBaseline:
			unknown = append(unknown, l.Name)
		case l.Plan.IsEmpty() && l.ChangedSettings == 0:
			same = append(same, l.Name)
		default:
			changed = append(changed, l.Name)
		}
	}
	if len(changed) > 0 {
		text += fmt.Sprintf(" %d %s: %s.", len(changed), plural(len(changed), "landscape changes", "landscapes change"), truncatedList(changed, 20))
	}
	if len(same) > 0 {
		text += fmt.Sprintf(" No changes in %s.", truncatedList(same, 20))
	}
	if len(unknown) > 0 {
		text += fmt.Sprintf(" Not compared: %s.", truncatedList(unknown, 20))
	}
	return text + unreached
}

func (r Report) settingCount() int {
	n := 0
	for _, l := range r.Landscapes {
		n += l.ChangedSettings
	}
	return n
}

func (r Report) itemCount() int {
	n := 0
	for _, l := range r.Landscapes {
		n += len(l.Items)
	}
	return n
}
