package redact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// lists compares items by the fields that name them, and sets without regard to order. It compares
// other lists as a whole, or item by item if they have objects and the same length.
func (c comparison) lists(at location, old, new []any) {
	key := listKey(old, new)
	if key == nil {
		if at.orderMatters() {
			c.positions(at, old, new)
		} else {
			c.sets(at, old, new)
		}
		return
	}
	before, after := keyed(old, key), keyed(new, key)
	names := slices.Concat(before.names, after.names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		o, wasThere := before.items[name]
		n, isThere := after.items[name]
		inner := at.item("[" + name + "]")
		if wasThere && isThere {
			c.value(inner, o, n)
		} else {
			c.add(inner, o, n)
		}
	}
	if !at.orderMatters() {
		return
	}
	if o, n := before.common(after), after.common(before); !slices.Equal(o, n) {
		c.add(at.item(" (order)"), asAny(o), asAny(n))
	}
}

func (c comparison) positions(at location, old, new []any) {
	if len(old) == len(new) && allMaps(old) && allMaps(new) {
		for i := range old {
			c.value(at.item(fmt.Sprintf("[%d]", i)), old[i], new[i])
		}
		return
	}
	same := len(old) == len(new)
	for i := 0; same && i < len(old); i++ {
		same = !c.differ(at.item(fmt.Sprintf("[%d]", i)), old[i], new[i])
	}
	if !same {
		c.add(at, old, new)
	}
}

// sets compares lists whose order means nothing. Common items are not a difference at any position.
// A reviewer sees the one changed item, or both lists ordered by their text.
func (c comparison) sets(at location, old, new []any) {
	before, after := texts(old), texts(new)
	gone, added := without(before, after), without(after, before)
	switch {
	case len(gone) == 0 && len(added) == 0:
	case len(gone) == 1 && len(added) == 1 && allMaps(old) && allMaps(new):
		c.value(at.item(fmt.Sprintf("[%d]", gone[0])), old[gone[0]], new[added[0]])
	default:
		o, n := ordered(old, before), ordered(new, after)
		same := len(o) == len(n)
		for i := 0; same && i < len(o); i++ {
			same = !c.differ(at.item(fmt.Sprintf("[%d]", i)), o[i], n[i])
		}
		if !same {
			c.add(at, o, n)
		}
	}
}

// texts returns the items of a list as text.
func texts(list []any) []string {
	out := make([]string, 0, len(list))
	for _, item := range list {
		raw, _ := json.Marshal(item) // cannot fail: the item comes from JSON
		out = append(out, string(raw))
	}
	return out
}

// without returns the indexes of items that a list has more often than another.
func without(list, other []string) []int {
	have := map[string]int{}
	for _, text := range other {
		have[text]++
	}
	var out []int
	for i, text := range list {
		if have[text]--; have[text] < 0 {
			out = append(out, i)
		}
	}
	return out
}

func ordered(list []any, texts []string) []any {
	index := make([]int, len(list))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int { return strings.Compare(texts[a], texts[b]) })
	out := make([]any, 0, len(list))
	for _, i := range index {
		out = append(out, list[i])
	}
	return out
}

func (c comparison) add(at location, old, new any) { *c.out = append(*c.out, at.field(old, new)) }

// unorderedLists are fields of Kubernetes' own APIs whose items mean the same in any order, by
// their last key.
var unorderedLists = map[string]bool{
	"verbs": true, "apiGroups": true, "resources": true, "resourceNames": true, "nonResourceURLs": true, "subjects": true,
	"finalizers": true, "ownerReferences": true, "accessModes": true, "policyTypes": true, "ingress": true, "egress": true,
	"from": true, "to": true, "ports": true, "imagePullSecrets": true, "secrets": true, "operations": true,
	"apiVersions": true, "webhooks": true, "shortNames": true, "categories": true, "versions": true, "conditions": true,
	"loadBalancerSourceRanges": true, "externalIPs": true, "matchExpressions": true, "values": true,
	"additionalPrinterColumns": true, "metrics": true, "tls": true,
}

// orderMatters reports whether the order of a list has a meaning. In a pod template it always has:
// a new order replaces the pods. In Gardener's APIs every list whose items have names is a map.
func (l location) orderMatters() bool {
	if !l.meaning || l.inPodTemplate() {
		return true
	}
	if l.kind == "MutatingWebhookConfiguration" && l.last() == "webhooks" {
		return true // webhooks change the object one after another
	}
	if l.builtin {
		return !unorderedLists[l.last()] && !(l.last() == "rules" && strings.HasSuffix(l.kind, "Role"))
	}
	return !l.gardener || !gardenerMaps[l.last()]
}

// gardenerMaps are lists in Gardener's APIs that have map keys in their definitions.
var gardenerMaps = map[string]bool{
	"workers": true, "pools": true, "machineImages": true, "machineTypes": true, "versions": true, "volumeTypes": true,
	"regions": true, "resources": true, "extensions": true, "admissionPlugins": true, "members": true, "providers": true,
	"conditions": true, "constraints": true, "dataVolumes": true, "capabilities": true, "subjects": true, "addresses": true,
	"namespaces": true, "settings": true,
}

func (l location) inPodTemplate() bool {
	if l.kind == "Pod" || l.kind == "PodTemplate" {
		return true
	}
	return l.builtin && slices.Contains(l.keys, "template")
}

// listKeys are fields that name list items in Kubernetes' APIs, tried in this order.
var listKeys = [][]string{{"name"}, {"mountPath"}, {"containerPort"}, {"containerPort", "protocol"}, {"port"},
	{"port", "protocol"}, {"key"}, {"type"}, {"version"}, {"path"}, {"ip"}, {"topologyKey"}, {"kind", "namespace", "name"},
	{"kind", "type"}, {"host"}}

// listKey returns the first key that all items of all lists have, with distinct values in each.
func listKey(lists ...[]any) []string {
	for _, list := range lists {
		if !allMaps(list) {
			return nil
		}
	}
candidates:
	for _, key := range listKeys {
		for _, list := range lists {
			seen := map[string]bool{}
			for _, item := range list {
				name, ok := nameOf(item.(map[string]any), key)
				if !ok || seen[name] {
					continue candidates
				}
				seen[name] = true
			}
		}
		return key
	}
	return nil
}

// optionalKeys are parts of an item's name that default to these values if absent.
var optionalKeys = map[string]string{"protocol": "TCP", "namespace": ""}

// nameOf returns the name of a list item: "name=app" or "port=53,protocol=UDP".
func nameOf(item map[string]any, key []string) (string, bool) {
	parts := make([]string, 0, len(key))
	for _, k := range key {
		v, ok := item[k]
		if standard, optional := optionalKeys[k]; !ok && optional && len(key) > 1 {
			v, ok = standard, true
		}
		switch v.(type) {
		case nil, map[string]any, []any:
			return "", false
		}
		if !ok {
			return "", false
		}
		if v == "" && k == "namespace" {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s=%v", k, v))
	}
	return strings.Join(parts, ","), true
}

// keyedList is a list by the names of its items.
type keyedList struct {
	names []string
	items map[string]any
}

func keyed(list []any, key []string) keyedList {
	out := keyedList{items: map[string]any{}}
	for _, item := range list {
		name, _ := nameOf(item.(map[string]any), key)
		out.names, out.items[name] = append(out.names, name), item
	}
	return out
}

// common returns the names that another list has too, in the order of this one.
func (l keyedList) common(other keyedList) []string {
	var out []string
	for _, name := range l.names {
		if _, ok := other.items[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

func asAny(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

func allMaps(items []any) bool {
	return !slices.ContainsFunc(items, func(item any) bool {
		_, ok := item.(map[string]any)
		return !ok
	})
}
