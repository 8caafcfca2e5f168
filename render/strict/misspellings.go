// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// This file finds misspelt words that programs read.

// misspeltWord returns the known word that is similar to word, or "" for a known word.
func misspeltWord(word string, known []string, limit int) string {
	if slices.Contains(known, word) || strings.Contains(word, SymbolicMark) {
		return ""
	}
	return suggest.ClosestWithin(word, known, limit)
}

// knownWordsHint is the end of a message about an unknown word.
func knownWordsHint(word string, known []string) string {
	if meant := suggest.Closest(word, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return "; known are " + strings.Join(known, ", ")
}

func numberAt(value any, path fieldpath.Path) (float64, bool) {
	switch v := valueAt(value, path).(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// podSecurityLabels are labels of Namespaces
// (https://kubernetes.io/docs/concepts/security/pod-security-admission/).
var podSecurityLabels = []string{
	"pod-security.kubernetes.io/audit", "pod-security.kubernetes.io/audit-version", "pod-security.kubernetes.io/enforce",
	"pod-security.kubernetes.io/enforce-version", "pod-security.kubernetes.io/warn", "pod-security.kubernetes.io/warn-version",
}

// aggregationLabels let ClusterRoles of Kubernetes and Gardener aggregate rules
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings).
var aggregationLabels = []string{
	"rbac.authorization.k8s.io/aggregate-to-admin", "rbac.authorization.k8s.io/aggregate-to-edit", "rbac.authorization.k8s.io/aggregate-to-view",
	"rbac.gardener.cloud/aggregate-to-project-member", "rbac.gardener.cloud/aggregate-to-project-serviceaccountmanager", "rbac.gardener.cloud/aggregate-to-project-viewer",
}

// namespaceLabels are labels that Kubernetes and Gardener set on Namespaces.
var namespaceLabels = []string{
	"gardener.cloud/purpose", "gardener.cloud/role", "high-availability-config.resources.gardener.cloud/consider", "kubernetes.io/metadata.name",
	"project.gardener.cloud/name", "shoot.gardener.cloud/no-cleanup",
}

// misspeltKeys finds keys of a map that are similar to known ones.
func misspeltKeys(at fieldpath.Path, object map[string]any, known []string) []structure.Finding {
	var out []structure.Finding
	keys, _ := valueAt(object, at).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if meant := misspeltWord(name, known, 2); meant != "" {
			out = append(out, structure.Finding{Path: at.Append(fieldpath.Key(name)), Type: "NotSupported", Message: fmt.Sprintf("nothing reads this label; did you mean %q?", meant)})
		}
	}
	return out
}

// checkNamespaceSelectors finds labels in selectors of webhooks and policies that are similar to
// system labels.
func checkNamespaceSelectors(at fieldpath.Path, value any) []structure.Finding {
	var out []structure.Finding
	wrong := func(path fieldpath.Path, name string) {
		if meant := misspeltWord(name, namespaceLabels, 2); meant != "" {
			out = append(out, structure.Finding{Path: path, Type: "NotSupported", Message: fmt.Sprintf("no Namespace has the label %q; did you mean %q?", name, meant)})
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "namespaceSelector" {
				out = append(out, checkNamespaceSelectors(at.Append(name), v[name])...)
				continue
			}
			labels, _ := valueAt(v, fieldpath.Path{name, "matchLabels"}).(map[string]any)
			for _, label := range slices.Sorted(maps.Keys(labels)) {
				wrong(slices.Concat(at, fieldpath.Path{name, "matchLabels", fieldpath.Key(label)}), label)
			}
			expressions, _ := valueAt(v, fieldpath.Path{name, "matchExpressions"}).([]any)
			for i, expression := range expressions {
				label, _ := valueAt(expression, fieldpath.Path{"key"}).(string)
				wrong(slices.Concat(at, fieldpath.Path{name, "matchExpressions", i, "key"}), label)
			}
		}
	case []any:
		for i, item := range v {
			out = append(out, checkNamespaceSelectors(at.Append(i), item)...)
		}
	}
	return out
}

var knownAccessModes = []string{"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}

// checkAccessModes checks volumes that operators claim: definitions accept any text, but the claim
// is rejected. Outside of claims the field may mean something else, so it reports only similar
// words there.
func checkAccessModes(at fieldpath.Path, value any, claim bool) []structure.Finding {
	var out []structure.Finding
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			modes, isList := v[name].([]any)
			if name != "accessModes" || !isList {
				out = append(out, checkAccessModes(at.Append(name), v[name], claim || name == "volumeClaimTemplate" || name == "volumeClaimTemplates")...)
				continue
			}
			for i, item := range modes {
				mode, isText := item.(string)
				if !isText || slices.Contains(knownAccessModes, mode) || strings.Contains(mode, SymbolicMark) || !claim && misspeltWord(mode, knownAccessModes, 3) == "" {
					continue
				}
				out = append(out, structure.Finding{Path: slices.Concat(at, fieldpath.Path{name, i}), Type: "NotSupported", Message: fmt.Sprintf("%q is not an access mode of a volume%s", mode, knownWordsHint(mode, knownAccessModes))})
			}
		}
	case []any:
		for i, item := range v {
			out = append(out, checkAccessModes(at.Append(i), item, claim)...)
		}
	}
	return out
}

// checkMinReplicas checks minReplicas of a VerticalPodAutoscaler, which must be positive.
func checkMinReplicas(object map[string]any) []structure.Finding {
	path := fieldpath.Path{"spec", "updatePolicy", "minReplicas"}
	if count, given := numberAt(object, path); given && count <= 0 {
		return []structure.Finding{{Path: path, Type: "Invalid", Message: fmt.Sprintf("%v is not above 0; remove the field to use the updater's default", count)}}
	}
	return nil
}
