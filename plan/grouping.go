// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// itemGroup is a set of items with the same change, which is printed once.
type itemGroup struct {
	// Item is the first of the items.
	change.Item
	Landscape string
	// Locations are the places of all items, with the first.
	Locations []itemLocation
}

// itemLocation is the place of an item.
type itemLocation struct {
	Landscape, Cluster, Owner string
	Object                    change.Ref
}

// itemGroups groups items with the same change, in the order of their first items.
func (r Report) itemGroups() []itemGroup {
	index := map[string]int{}
	var out []itemGroup
	for _, l := range r.Landscapes {
		for _, item := range l.Items {
			key := changeSignature(item)
			i, known := index[key]
			if !known {
				i = len(out)
				index[key] = i
				out = append(out, itemGroup{Item: item, Landscape: l.Name})
			}
			out[i].Locations = append(out[i].Locations, itemLocation{l.Name, item.Cluster, item.Owner, item.Object})
		}
	}
	return out
}

// changeSignature is equal for items with the same change: the same action on the same kind of
// object and component, with the same fields. The namespace of a Shoot's control plane does not
// count, because many values contain it. The object name counts only without fields.
func changeSignature(item change.Item) string {
	same := struct {
		Action                       change.Action
		Kind, Group, Component, Name string
		Reason, Approval             string
		Consequences                 []string
		Fields                       []change.Field
	}{item.Action, item.Object.Kind, item.Object.Group(), item.Component, "", item.Reason, item.Approval, item.Consequences, item.Fields}
	if item.Component == "" {
		same.Component = item.Bundle
	}
	if len(item.Fields) == 0 {
		same.Name = hashSuffixPattern.ReplaceAllString(item.Object.Name, "$1")
	}
	raw, err := json.Marshal(same)
	if err != nil {
		return item.Cluster + item.Object.String() // unique
	}
	return strings.ReplaceAll(string(raw), controlPlaneNamespace(item), "shoot--")
}

// controlPlaneNamespace returns the namespace of a Shoot's control plane on its seed, or a text
// that never occurs.
func controlPlaneNamespace(item change.Item) string {
	for _, name := range []string{item.Object.Namespace, item.Object.Name} {
		if strings.HasPrefix(name, "shoot--") {
			return name
		}
	}
	return "\x00"
}

// risk of a block: the risk of overlooking it, highest risk first.
func (b itemGroup) risk() int { return riskOf(b.Item) }

// compareGroups orders by weight, and up to maxRemovalRisk also by rank; worst first.
func compareGroups(a, b itemGroup) int {
	if c := cmp.Compare(a.risk(), b.risk()); c != 0 || a.risk() > maxRemovalRisk {
		return c
	}
	return cmp.Compare(displayRank(a.Object), displayRank(b.Object))
}

// maxRemovalRisk is the last weight of objects that do not remain, or whose outcome is unknown.
const maxRemovalRisk = 4

func riskOf(item change.Item) int {
	switch {
	case item.Action == change.Fail:
		return 0
	case item.Action == change.Hold:
		return 1
	case item.Action == change.Delete && len(item.Consequences) > 0:
		return 2
	case item.Action == change.Delete:
		return 3
	case item.Action == change.Recreate:
		return maxRemovalRisk
	case len(item.Pools) > 0:
		return 5
	case len(item.Consequences) > 0:
		return 6
	}
	return 7
}

// section is a unit of the report: changes that occur in several places, or the changes of one
// component of one owner on one cluster.
type section struct {
	Landscape, Cluster, Owner, Component string
	Blocks                               []itemGroup
}

// isShared reports whether the changes of a section occur in several places.
func (s section) isShared() bool { return s.Cluster == "" }

// sections groups the blocks by place, highest risk first, and each cluster together.
func (r Report) sections() []section {
	var out []section
	index := map[[4]string]int{}
	for _, b := range r.itemGroups() {
		s := section{Landscape: b.Landscape, Cluster: b.Cluster, Owner: b.Owner, Component: b.Component}
		if s.Component == "" {
			s.Component = b.Bundle
		}
		if len(b.Locations) > 1 {
			s = section{}
		}
		key := [4]string{s.Landscape, s.Cluster, s.Owner, s.Component}
		i, known := index[key]
		if !known {
			i = len(out)
			index[key] = i
			out = append(out, s)
		}
		out[i].Blocks = append(out[i].Blocks, b)
	}
	return sortSections(out)
}

// sortSections orders sections by risk, highest first. Sections of one cluster stay together, after
// the shared ones.
func sortSections(sections []section) []section {
	type group struct {
		weight int
		all    []section
	}
	var groups []group
	index := map[[2]string]int{}
	for _, s := range sections {
		key := [2]string{s.Landscape, s.Cluster}
		i, known := index[key]
		if !known {
			i = len(groups)
			index[key] = i
			groups = append(groups, group{weight: 9})
			if s.isShared() {
				groups[i].weight = -1
			}
		}
		slices.SortStableFunc(s.Blocks, compareGroups)
		groups[i].all = append(groups[i].all, s)
		groups[i].weight = min(groups[i].weight, s.Blocks[0].risk())
	}
	slices.SortStableFunc(groups, func(a, b group) int { return a.weight - b.weight })
	var out []section
	for _, g := range groups {
		slices.SortStableFunc(g.all, func(a, b section) int { return compareGroups(a.Blocks[0], b.Blocks[0]) })
		out = append(out, g.all...)
	}
	return out
}

// summary counts the changes of a section in all their places.
func (s section) summary() change.Summary {
	var out change.Summary
	for _, b := range s.Blocks {
		if n := out.Counter(b.Action); n != nil {
			*n += len(b.Locations)
		}
	}
	return out
}

// title returns the owner and component of a section.
func (s section) title() string {
	var parts []string
	for _, part := range []string{s.Owner, s.Component} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// clusterLabel returns the cluster of a section, with its landscape if there are several.
func (s section) clusterLabel(named bool) string {
	if named {
		return "landscape " + s.Landscape + ", cluster " + s.Cluster
	}
	return "cluster " + s.Cluster
}
