// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// compareLists compares items by the fields that name them, and sets without regard to order. It
// compares other lists as a whole, or item by item if they have objects and the same length.
func (c comparison) compareLists(at valueLocation, old, new []any) {
	key := listKey(old, new)
	if key == nil {
		if at.isOrdered() {
			c.comparePositions(at, old, new)
		} else {
			c.compareSets(at, old, new)
		}
		return
	}
	before, after := indexByName(old, key), indexByName(new, key)
	names := slices.Concat(before.names, after.names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		o, wasThere := before.items[name]
		n, isThere := after.items[name]
		inner := at.enterItem("[" + name + "]")
		if wasThere && isThere {
			c.compareValues(inner, o, n)
		} else {
			c.addField(inner, o, n)
		}
	}
	if !at.isOrdered() {
		return
	}
	if o, n := before.commonNames(after), after.commonNames(before); !slices.Equal(o, n) {
		c.addField(at.enterItem(" (order)"), toAnySlice(o), toAnySlice(n))
	}
}

func (c comparison) comparePositions(at valueLocation, old, new []any) {
	if len(old) == len(new) && areAllMaps(old) && areAllMaps(new) {
		for i := range old {
			c.compareValues(at.enterItem(fmt.Sprintf("[%d]", i)), old[i], new[i])
		}
		return
	}
	same := len(old) == len(new)
	for i := 0; same && i < len(old); i++ {
		same = !c.hasDifference(at.enterItem(fmt.Sprintf("[%d]", i)), old[i], new[i])
	}
	if !same {
		c.addField(at, old, new)
	}
}

// compareSets compares lists whose order means nothing. Common items are not a difference at any
// position. A reviewer sees the one changed item, or both lists ordered by their text.
func (c comparison) compareSets(at valueLocation, old, new []any) {
	before, after := marshalItems(old), marshalItems(new)
	gone, added := missingIndexes(before, after), missingIndexes(after, before)
	switch {
	case len(gone) == 0 && len(added) == 0:
	case len(gone) == 1 && len(added) == 1 && areAllMaps(old) && areAllMaps(new):
		c.compareValues(at.enterItem(fmt.Sprintf("[%d]", gone[0])), old[gone[0]], new[added[0]])
	default:
		o, n := sortByText(old, before), sortByText(new, after)
		same := len(o) == len(n)
		for i := 0; same && i < len(o); i++ {
			same = !c.hasDifference(at.enterItem(fmt.Sprintf("[%d]", i)), o[i], n[i])
		}
		if !same {
			c.addField(at, o, n)
		}
	}
}

// marshalItems returns the items of a list as text.
func marshalItems(list []any) []string {
	out := make([]string, 0, len(list))
	for _, item := range list {
		raw, _ := json.Marshal(item) // cannot fail: the item comes from JSON
		out = append(out, string(raw))
	}
	return out
}

// missingIndexes returns the indexes of items that a list has more often than another.
func missingIndexes(list, other []string) []int {
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

func sortByText(list []any, texts []string) []any {
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

func (c comparison) addField(at valueLocation, old, new any) {
	*c.out = append(*c.out, at.redactedField(old, new))
}

// unorderedListFields are fields of Kubernetes' own APIs whose items mean the same in any order, by
// their last key.
var unorderedListFields = map[string]bool{
	"verbs": true, "apiGroups": true, "resources": true, "resourceNames": true, "nonResourceURLs": true, "subjects": true,
	"finalizers": true, "ownerReferences": true, "accessModes": true, "policyTypes": true, "ingress": true, "egress": true,
	"from": true, "to": true, "ports": true, "imagePullSecrets": true, "secrets": true, "operations": true,
	"apiVersions": true, "webhooks": true, "shortNames": true, "categories": true, "versions": true, "conditions": true,
	"loadBalancerSourceRanges": true, "externalIPs": true, "matchExpressions": true, "values": true,
	"additionalPrinterColumns": true, "metrics": true, "tls": true,
}

// isOrdered reports whether the order of a list has a meaning. In a pod template it always has:
// a new order replaces the pods. In Gardener's APIs every list whose items have names is a map.
func (l valueLocation) isOrdered() bool {
	if !l.ignoresNotation || l.isInPodTemplate() {
		return true
	}
	if l.kind == "MutatingWebhookConfiguration" && l.lastKey() == "webhooks" {
		return true // webhooks change the object one after another
	}
	if l.isInBuiltinAPI {
		return !unorderedListFields[l.lastKey()] && !(l.lastKey() == "rules" && strings.HasSuffix(l.kind, "Role"))
	}
	return !l.isInGardenerAPI || !gardenerMapLists[l.lastKey()]
}

// gardenerMapLists are lists in Gardener's APIs that have map keys in their definitions.
var gardenerMapLists = map[string]bool{
	"workers": true, "pools": true, "machineImages": true, "machineTypes": true, "versions": true, "volumeTypes": true,
	"regions": true, "resources": true, "extensions": true, "admissionPlugins": true, "members": true, "providers": true,
	"conditions": true, "constraints": true, "dataVolumes": true, "capabilities": true, "subjects": true, "addresses": true,
	"namespaces": true, "settings": true,
}

func (l valueLocation) isInPodTemplate() bool {
	if l.kind == "Pod" || l.kind == "PodTemplate" {
		return true
	}
	return l.isInBuiltinAPI && slices.Contains(l.keys, "template")
}

// listKeys are fields that name list items in Kubernetes' APIs, tried in this order.
var listKeys = [][]string{{"name"}, {"mountPath"}, {"containerPort"}, {"containerPort", "protocol"}, {"port"},
	{"port", "protocol"}, {"key"}, {"type"}, {"version"}, {"path"}, {"ip"}, {"topologyKey"}, {"kind", "namespace", "name"},
	{"kind", "type"}, {"host"}}

// listKey returns the first key that all items of all lists have, with distinct values in each.
func listKey(lists ...[]any) []string {
	for _, list := range lists {
		if !areAllMaps(list) {
			return nil
		}
	}
candidates:
	for _, key := range listKeys {
		for _, list := range lists {
			seen := map[string]bool{}
			for _, item := range list {
				name, ok := itemName(item.(map[string]any), key)
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

// optionalKeyDefaults are parts of an item's name that default to these values if absent.
var optionalKeyDefaults = map[string]string{"protocol": "TCP", "namespace": ""}

// itemName returns the name of a list item: "name=app" or "port=53,protocol=UDP".
func itemName(item map[string]any, key []string) (string, bool) {
	parts := make([]string, 0, len(key))
	for _, k := range key {
		v, ok := item[k]
		if standard, optional := optionalKeyDefaults[k]; !ok && optional && len(key) > 1 {
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

// itemsByName is a list by the names of its items.
type itemsByName struct {
	names []string
	items map[string]any
}

func indexByName(list []any, key []string) itemsByName {
	out := itemsByName{items: map[string]any{}}
	for _, item := range list {
		name, _ := itemName(item.(map[string]any), key)
		out.names, out.items[name] = append(out.names, name), item
	}
	return out
}

// commonNames returns the names that another list has too, in the order of this one.
func (l itemsByName) commonNames(other itemsByName) []string {
	var out []string
	for _, name := range l.names {
		if _, ok := other.items[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

func toAnySlice(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

func areAllMaps(items []any) bool {
	return !slices.ContainsFunc(items, func(item any) bool {
		_, ok := item.(map[string]any)
		return !ok
	})
}
