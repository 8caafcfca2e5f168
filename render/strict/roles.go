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

// IsRole tells whether objects of a kind have rules that Role looks at.
func IsRole(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "rbac.authorization.k8s.io" && (gvk.Kind == "Role" || gvk.Kind == "ClusterRole")
}

// Role looks at the rules of a Role or ClusterRole: API servers take any words, and grant nothing
// by those that no request has. An API is known by what Plurals gives for its kinds.
func Role(object map[string]any, known func(group string) map[string]string) []structure.Finding {
	var out []structure.Finding
	rules, _ := object["rules"].([]any)
	for i, item := range rules {
		var groups []string
		for _, check := range []struct {
			field string
			wrong func(string) string
		}{
			{"apiGroups", func(group string) string { groups = append(groups, group); return requests.Group(group) }},
			{"resources", func(resource string) string { return requests.Resource(resource, groups, known) }},
			{"verbs", requests.Verb},
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

// Plurals are the resources of a group of Kubernetes, and of the kinds that definitions make of it,
// by the names of the kinds in small letters.
func Plurals(group string, defined iter.Seq[*Kind]) map[string]string {
	out := map[string]string{}
	maps.Copy(out, requests.Kubernetes(group))
	for kind := range defined {
		if kind.GVK.Group == group {
			out[strings.ToLower(kind.GVK.Kind)] = kind.Resource
		}
	}
	return out
}
