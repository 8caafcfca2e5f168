package strict

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// IsRole tells whether objects of a kind have rules that Role looks at.
func IsRole(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "rbac.authorization.k8s.io" && (gvk.Kind == "Role" || gvk.Kind == "ClusterRole")
}

// Role looks at the rules of a Role or ClusterRole: API servers take any words, and grant nothing by those that no request has. An API is known
// by what Plurals gives for its kinds.
func Role(object map[string]any, known func(group string) map[string]string) []structure.Finding {
	var out []structure.Finding
	rules, _ := object["rules"].([]any)
	for i, item := range rules {
		var groups []string
		for _, check := range []struct {
			field string
			wrong func(string) string
		}{
			{"apiGroups", func(group string) string { groups = append(groups, group); return wrongGroup(group) }},
			{"resources", func(resource string) string { return wrongResource(resource, groups, known) }},
			{"verbs", wrongVerb},
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

// version is the form of the version of an API.
var version = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// shortGroups are the APIs of Kubernetes without a dot in their name; extensions is the one of former releases.
var shortGroups = []string{"", "apps", "autoscaling", "batch", "extensions", "policy"}

// wrongGroup says what is wrong with a group of APIs, "" if nothing is.
func wrongGroup(group string) string {
	name, _, versioned := strings.Cut(group, "/")
	if name == "core" || version.MatchString(name) {
		return fmt.Sprintf("%q is no API that requests are for: that of Pods and Secrets has the name \"\", without a version", group)
	}
	if versioned {
		return fmt.Sprintf("%q is no API that requests are for: the version is no part of it; write %q", group, name)
	}
	if lower := strings.ToLower(group); lower != group {
		return fmt.Sprintf("%q is no API that requests are for, since it has capital letters; did you mean %q?", group, lower)
	}
	if meant := structure.Suggest(group, shortGroups); meant != "" && !strings.Contains(group, ".") && !slices.Contains(shortGroups, group) {
		return fmt.Sprintf("%q is no API that requests are for; did you mean %q?", group, meant)
	}
	return ""
}

// wrongResource says what is wrong with a resource of groups, "" if nothing is.
func wrongResource(name string, groups []string, known func(group string) map[string]string) string {
	if slices.ContainsFunc(groups, func(group string) bool { return strings.HasSuffix(group, "metrics.k8s.io") }) {
		return "" // they are named after metrics
	}
	resource, _, _ := strings.Cut(name, "/")
	var plurals []string
	for _, group := range groups {
		of := known(group)
		if plural := of[strings.ToLower(resource)]; plural != "" && plural != resource {
			return notPlural(name, resource, plural)
		}
		plurals = slices.AppendSeq(plurals, maps.Values(of))
	}
	if lower := strings.ToLower(resource); lower != resource {
		if !strings.HasSuffix(lower, "s") {
			plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: lower})
			lower = plural.Resource
		}
		return notPlural(name, resource, lower)
	}
	if plain, group, dotted := strings.Cut(resource, "."); dotted {
		return fmt.Sprintf("%q is no resource that requests are for: write %q, and %q in apiGroups", name, plain, group)
	}
	if slices.Sort(plurals); !slices.Contains(plurals, resource) && !slices.Contains(resourcesWithoutKind, resource) {
		if meant := structure.Suggest(resource, plurals); meant != "" {
			return fmt.Sprintf("%q is no resource that requests are for; did you mean %q?", name, meant+strings.TrimPrefix(name, resource))
		}
	}
	return ""
}

// resourcesWithoutKind have rules only: for impersonation and for what may be signed
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
var resourcesWithoutKind = []string{"users", "groups", "uids", "userextras", "signers"}

// Plurals are the resources of a group of Kubernetes, and of the kinds that definitions make of it, by the names of the kinds in small letters.
func Plurals(group string, defined iter.Seq[*Kind]) map[string]string {
	out := map[string]string{}
	for _, kind := range KubernetesKinds() {
		if kind.Group == group {
			plural, singular := meta.UnsafeGuessKindToResource(kind)
			out[singular.Resource] = plural.Resource
		}
	}
	for kind := range defined {
		if kind.GVK.Group == group {
			out[strings.ToLower(kind.GVK.Kind)] = kind.Resource
		}
	}
	return out
}

func notPlural(name, resource, plural string) string {
	return fmt.Sprintf("%q is no resource that requests are for: they are named in the plural and in small letters; did you mean %q?", name, plural+strings.TrimPrefix(name, resource))
}

// knownVerbs are those of Kubernetes (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb). APIs may have
// others, such as manage-members of Projects, so only one that is written nearly like one of these is wrong.
var knownVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "escalate", "impersonate", "approve", "sign", "attest"}

// wrongVerb says which verb was meant, "" if the one that is written may be.
func wrongVerb(verb string) string {
	if slices.Contains(knownVerbs, verb) {
		return ""
	}
	if meant := structure.Suggest(verb, knownVerbs); meant != "" {
		return fmt.Sprintf("%q is no verb that API servers ask about; did you mean %q?", verb, meant)
	}
	return ""
}
