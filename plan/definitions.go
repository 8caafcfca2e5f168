// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
)

// storageVersionLoss describes which stored fields another storage version of a definition loses.
// Fields that its schema does not have are pruned on reads, and lost on writes. With a conversion
// webhook the result is unknown.
func storageVersionLoss(old, new map[string]any) string {
	before, after := storageVersion(old), storageVersion(new)
	if before == nil || after == nil || before["name"] == after["name"] || nestedValue(new, "spec", "preserveUnknownFields") == true ||
		nestedValue(new, "spec", "conversion", "strategy") == "Webhook" {
		return ""
	}
	var lost []string
	schemaLoss("", nestedMap(before, "schema", "openAPIV3Schema"), nestedMap(after, "schema", "openAPIV3Schema"), true, &lost)
	if len(lost) == 0 {
		return ""
	}
	return "prunes stored values, which version " + nestedText(after, "name") + " does not have: " + shownList(lost)
}

// storageVersion returns the storage version of a definition.
func storageVersion(definition map[string]any) map[string]any {
	versions, _ := nestedValue(definition, "spec", "versions").([]any)
	for _, v := range versions {
		if version, _ := v.(map[string]any); version["storage"] == true {
			return version
		}
	}
	return nil
}

// commonFields are fields that every object has, independent of its schema.
var commonFields = []string{"apiVersion", "kind", "metadata"}

// schemaLoss adds the paths of values that the old schema preserves and the new one prunes.
func schemaLoss(path string, old, new map[string]any, object bool, lost *[]string) {
	const unknown, embedded = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
	before, after := nestedMap(old, "properties"), nestedMap(new, "properties")
	others, takesOthers := new["additionalProperties"].(map[string]any)
	keepsAll := new[unknown] == true || new["additionalProperties"] == true
	object = object || new[embedded] == true
	names := make([]string, 0, len(before))
	for name := range before {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		at := strings.TrimPrefix(path+"."+name, ".")
		inner, _ := before[name].(map[string]any)
		known, isKnown := after[name].(map[string]any)
		switch {
		case object && slices.Contains(commonFields, name):
		case isKnown:
			schemaLoss(at, inner, known, false, lost)
		case takesOthers:
			schemaLoss(at, inner, others, false, lost)
		case !keepsAll:
			*lost = append(*lost, at)
		}
	}
	values, hadOthers := old["additionalProperties"].(map[string]any)
	hadOthers = hadOthers || old["additionalProperties"] == true || old[unknown] == true
	switch {
	case hadOthers && takesOthers && values != nil:
		schemaLoss(path+"[]", values, others, false, lost)
	case hadOthers && !takesOthers && !keepsAll:
		*lost = append(*lost, strings.TrimSpace("fields outside its schema "+withPrefix("of ", path)))
	}
	if items, ok := old["items"].(map[string]any); ok {
		schemaLoss(path+"[]", items, nestedMap(new, "items"), false, lost)
	}
}

func nestedMap(m map[string]any, keys ...string) map[string]any {
	out, _ := nestedValue(m, keys...).(map[string]any)
	return out
}
