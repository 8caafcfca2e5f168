// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"iter"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/requests"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// IsRole reports whether Role can check objects of a kind.
func IsRole(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "rbac.authorization.k8s.io" && (gvk.Kind == "Role" || gvk.Kind == "ClusterRole")
}

// CheckRole checks the rules of a Role or ClusterRole: API servers accept any words, but unknown
// ones grant nothing. known returns Plurals of a group.
func CheckRole(object map[string]any, known func(group string) map[string]string) []structure.Finding {
	var out []structure.Finding
	rules, _ := object["rules"].([]any)
	for i, item := range rules {
		var groups []string
		for _, check := range []struct {
			field string
			wrong func(string) string
		}{
			{"apiGroups", func(group string) string { groups = append(groups, group); return requests.CheckGroup(group) }},
			{"resources", func(resource string) string { return requests.CheckResource(resource, groups, known) }},
			{"verbs", requests.CheckVerb},
		} {
			list, _ := valueAt(item, fieldpath.Path{check.field}).([]any)
			for j, word := range list {
				text, _ := word.(string)
				if wrong := check.wrong(text); wrong != "" && !strings.Contains(text, SymbolicMark) {
					out = append(out, structure.Finding{Path: fieldpath.Path{"rules", i, check.field, j}, Type: "NotSupported", Message: wrong})
				}
			}
		}
	}
	return out
}

// Plurals returns the resources of a group by lower-case kind, from Kubernetes and from
// definitions.
func Plurals(group string, defined iter.Seq[*Kind]) map[string]string {
	out := map[string]string{}
	maps.Copy(out, requests.KubernetesResources(group))
	for kind := range defined {
		if kind.GVK.Group == group {
			out[strings.ToLower(kind.GVK.Kind)] = kind.Resource
		}
	}
	return out
}
