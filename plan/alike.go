package plan

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// block is what is printed of an item, once for all places in which the same happens.
type block struct {
	// Item is the first of them.
	change.Item
	Landscape string
	// Places are all of them, the first too.
	Places []spot
}

// spot is where an item stands.
type spot struct {
	Landscape, Cluster, Owner string
	Object                    change.Ref
}

// alike gathers the items in which the same happens, in the order of the first of each.
func (r Report) alike() []block {
	index := map[string]int{}
	var out []block
	for _, l := range r.Landscapes {
		for _, item := range l.Items {
			key := signature(item)
			i, known := index[key]
			if !known {
				i = len(out)
				index[key] = i
				out = append(out, block{Item: item, Landscape: l.Name})
			}
			out[i].Places = append(out[i].Places, spot{l.Name, item.Cluster, item.Owner, item.Object})
		}
	}
	return out
}

// signature is equal for items in which the same happens: the same action on the same kind of
// object of the same component, with the same fields. The namespace of a Shoot's control plane does
// not count, it stands in many values; nor does the name of an object whose fields say what
// happens.
func signature(item change.Item) string {
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
		same.Name = hashSuffix.ReplaceAllString(item.Object.Name, "$1")
	}
	raw, err := json.Marshal(same)
	if err != nil {
		return item.Cluster + item.Object.String() // alike nothing
	}
	return strings.ReplaceAll(string(raw), technical(item), "shoot--")
}

// technical is the name that the control plane of a Shoot goes by on its seed, or something that is
// in no text.
func technical(item change.Item) string {
	for _, name := range []string{item.Object.Namespace, item.Object.Name} {
		if strings.HasPrefix(name, "shoot--") {
			return name
		}
	}
	return "\x00"
}

// weight of a block: how bad it is to overlook it, the worst first.
func (b block) weight() int { return weightOf(b.Item) }

// compareBlocks puts the worst first, and of what goes or may go that with data and pods.
func compareBlocks(a, b block) int {
	if c := cmp.Compare(a.weight(), b.weight()); c != 0 || a.weight() > weightRecreated {
		return c
	}
	return cmp.Compare(rank(a.Object), rank(b.Object))
}

// weightRecreated is the weight up to which an object does not stay, or it is not known what
// becomes of it.
const weightRecreated = 4

func weightOf(item change.Item) int {
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
		return weightRecreated
	case len(item.Pools) > 0:
		return 5
	case len(item.Consequences) > 0:
		return 6
	}
	return 7
}

// section is what a reader looks at together: what happens alike in several places, or what happens
// to one component of one owner on one cluster.
type section struct {
	Landscape, Cluster, Owner, Component string
	Blocks                               []block
}

// shared is true for the section of what happens in several places.
func (s section) shared() bool { return s.Cluster == "" }

// sections are the blocks by where they belong, the worst first, and clusters together.
func (r Report) sections() []section {
	var out []section
	index := map[[4]string]int{}
	for _, b := range r.alike() {
		s := section{Landscape: b.Landscape, Cluster: b.Cluster, Owner: b.Owner, Component: b.Component}
		if s.Component == "" {
			s.Component = b.Bundle
		}
		if len(b.Places) > 1 {
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
	return sorted(out)
}

// sorted are the sections with the worst first; those of one cluster stay together, what is shared
// begins.
func sorted(sections []section) []section {
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
			if s.shared() {
				groups[i].weight = -1
			}
		}
		slices.SortStableFunc(s.Blocks, compareBlocks)
		groups[i].all = append(groups[i].all, s)
		groups[i].weight = min(groups[i].weight, s.Blocks[0].weight())
	}
	slices.SortStableFunc(groups, func(a, b group) int { return a.weight - b.weight })
	var out []section
	for _, g := range groups {
		slices.SortStableFunc(g.all, func(a, b section) int { return compareBlocks(a.Blocks[0], b.Blocks[0]) })
		out = append(out, g.all...)
	}
	return out
}

// summary counts what happens in a section, as often as it happens.
func (s section) summary() change.Summary {
	var out change.Summary
	for _, b := range s.Blocks {
		if n := out.Of(b.Action); n != nil {
			*n += len(b.Places)
		}
	}
	return out
}

// title names the owner and component of a section.
func (s section) title() string {
	var parts []string
	for _, part := range []string{s.Owner, s.Component} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// where names the cluster of a section, and its landscape where there are several.
func (s section) where(named bool) string {
	if named {
		return "landscape " + s.Landscape + ", cluster " + s.Cluster
	}
	return "cluster " + s.Cluster
}
