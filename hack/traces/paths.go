// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// ignoredPaths are fields that the server sets with every write, and fields that identify the
// object.
var ignoredPaths = map[string]bool{
	".apiVersion": true, ".kind": true, ".metadata.name": true, ".metadata.namespace": true, ".metadata.uid": true, ".metadata.creationTimestamp": true,
	".metadata.resourceVersion": true, ".metadata.generation": true, ".metadata.managedFields": true,
}

var timestampPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)

// flattenObject returns the values of an object by path. All times are equal.
func flattenObject(o map[string]any) map[string]any {
	out := map[string]any{}
	addLeaves(out, "", o)
	return out
}

func addLeaves(out map[string]any, path string, value any) {
	if ignoredPaths[path] {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			child := v[key]
			if strings.ContainsAny(key, "./[] ") {
				addLeaves(out, path+"["+normaliseName(strings.ReplaceAll(key, " ", "_"))+"]", child)
			} else {
				addLeaves(out, path+"."+normaliseName(key), child)
			}
		}
		if len(v) > 0 || path == "" {
			return
		}
	case []any:
		// versions of a CustomResourceDefinition have thousands of fields
		if keys := listKeys(v); len(keys) > 0 && path != ".spec.versions" {
			for i, child := range v {
				addLeaves(out, path+"["+keys[i]+"]", child)
			}
			return
		}
	case string:
		if timestampPattern.MatchString(v) {
			value = "a time"
		}
		if entries := parseInventory(v); entries != nil && strings.HasSuffix(path, "[entries.json]") {
			addLeaves(out, path, entries)
			return
		}
	}
	// Keys that differ only in normalised parts share a path.
	if other, shared := out[path]; shared {
		value = fmt.Sprint(other, value)
	}
	out[path] = value
}

// parseInventory returns the entries of an inventory, one JSON object a line. It is nil for other
// texts.
func parseInventory(inventory string) (out []any) {
	for line := range strings.Lines(inventory) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) != nil {
			return nil
		}
		out = append(out, entry)
	}
	return out
}

// listKeys returns keys for a list of objects: type, kind, namespace and name. A number follows if
// the key is empty or repeats an earlier one. It is nil for other lists.
func listKeys(list []any) (keys []string) {
	number := map[string]int{}
	for _, element := range list {
		o, is := element.(map[string]any)
		if !is {
			return nil
		}
		var words []string
		for _, field := range []string{"type", "kind", "namespace", "name"} {
			if s := stringAt(o, field); s != "" {
				words = append(words, strings.ReplaceAll(normaliseName(s), " ", "_"))
			}
		}
		key := strings.Join(words, "/")
		if number[key]++; number[key] > 1 || key == "" {
			key += fmt.Sprint("#", number[key])
		}
		keys = append(keys, key)
	}
	return keys
}

// changedPaths returns the paths whose values differ, after + (added), - (removed) or ~ (changed).
func changedPaths(before, after map[string]any) []string {
	var out []string
	for path, value := range after {
		if was, there := before[path]; !there {
			out = append(out, "+"+path)
		} else if !reflect.DeepEqual(was, value) {
			out = append(out, "~"+path)
		}
	}
	for path := range before {
		if _, there := after[path]; !there {
			out = append(out, "-"+path)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(a[1:], b[1:]) })
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
