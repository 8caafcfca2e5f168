// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// KubernetesResources maps the lower-case kinds of a Kubernetes group to resources; it is empty for
// other groups.
func KubernetesResources(group string) map[string]string { return resourcesByGroup()[group] }

var resourcesByGroup = sync.OnceValue(func() map[string]map[string]string {
	out := map[string]map[string]string{"apiextensions.k8s.io": {"customresourcedefinition": "customresourcedefinitions"}}
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		if _, has := of.FieldByName("ObjectMeta"); !has {
			continue
		}
		if out[kind.Group] == nil {
			out[kind.Group] = map[string]string{}
		}
		plural, singular := meta.UnsafeGuessKindToResource(kind)
		out[kind.Group][singular.Resource] = plural.Resource
	}
	return out
})

// apiVersionPattern matches API versions.
var apiVersionPattern = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// groupsWithoutDot are the Kubernetes groups without a dot; extensions is from old releases.
var groupsWithoutDot = []string{"", "apps", "autoscaling", "batch", "extensions", "policy"}

// CheckGroup returns the fault of an API group, or "" if there is none.
func CheckGroup(group string) string {
	name, _, versioned := strings.Cut(group, "/")
	if name == "core" || apiVersionPattern.MatchString(name) {
		return fmt.Sprintf("%q is not an API group of requests: the group of Pods and Secrets is \"\", without a version", group)
	}
	if versioned {
		return fmt.Sprintf("%q is not an API group of requests, because it has a version; write %q", group, name)
	}
	if lower := strings.ToLower(group); lower != group {
		return fmt.Sprintf("%q is not an API group of requests, because it has capital letters; did you mean %q?", group, lower)
	}
	if meant := suggest.Closest(group, groupsWithoutDot); meant != "" && !strings.Contains(group, ".") && !slices.Contains(groupsWithoutDot, group) {
		return fmt.Sprintf("%q is not an API group of requests; did you mean %q?", group, meant)
	}
	if strings.Contains(group, ".") && !strings.Contains(group, "*") {
		known := append(slices.Collect(maps.Keys(resourcesByGroup())), gardenerGroups...)
		if slices.Sort(known); !slices.Contains(known, group) {
			if meant := suggest.ClosestWithin(group, known, 1); strings.Contains(meant, ".") {
				return fmt.Sprintf("%q is not an API group of requests; did you mean %q?", group, meant)
			}
		}
	}
	return ""
}

// gardenerGroups are Gardener's API groups.
var gardenerGroups = []string{
	"authentication.gardener.cloud", "core.gardener.cloud", "extensions.gardener.cloud", "operations.gardener.cloud", "operator.gardener.cloud",
	"resources.gardener.cloud", "security.gardener.cloud", "seedmanagement.gardener.cloud", "settings.gardener.cloud", "views.gardener.cloud",
}

// CheckResource returns the fault of a resource in groups, or "" if there is none. known returns
// the resources of a group, like Kubernetes.
func CheckResource(name string, groups []string, known func(group string) map[string]string) string {
	if slices.ContainsFunc(groups, func(group string) bool { return strings.HasSuffix(group, "metrics.k8s.io") }) {
		return "" // metrics are resource names
	}
	resource, _, _ := strings.Cut(name, "/")
	var plurals []string
	for _, group := range groups {
		of := known(group)
		if plural := of[strings.ToLower(resource)]; plural != "" && plural != resource {
			return pluralMessage(name, resource, plural)
		}
		plurals = slices.AppendSeq(plurals, maps.Values(of))
	}
	if lower := strings.ToLower(resource); lower != resource {
		if !strings.HasSuffix(lower, "s") {
			plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: lower})
			lower = plural.Resource
		}
		return pluralMessage(name, resource, lower)
	}
	if plain, group, dotted := strings.Cut(resource, "."); dotted {
		return fmt.Sprintf("%q is not a resource of requests; write %q, and %q in apiGroups", name, plain, group)
	}
	if slices.Sort(plurals); !slices.Contains(plurals, resource) && !slices.Contains(resourcesWithoutKind, resource) {
		if meant := suggest.Closest(resource, plurals); meant != "" {
			return fmt.Sprintf("%q is not a resource of requests; did you mean %q?", name, meant+strings.TrimPrefix(name, resource))
		}
		if other, has := otherGroupOf(resource, groups); has {
			return fmt.Sprintf("%q is not a resource of the API %q, but of %q", name, strings.Join(groups, ", "), other)
		}
	}
	return ""
}

// otherGroupOf returns the Kubernetes group of a resource, if the given groups are other Kubernetes
// groups.
func otherGroupOf(resource string, groups []string) (string, bool) {
	if len(groups) == 0 || slices.ContainsFunc(groups, func(group string) bool { return !slices.Contains(groupsWithoutDot, group) || group == "extensions" }) {
		return "", false // other APIs and those of old releases may have any resource
	}
	for _, group := range slices.Sorted(maps.Keys(resourcesByGroup())) {
		if slices.Contains(slices.Collect(maps.Values(resourcesByGroup()[group])), resource) {
			return group, true
		}
	}
	return "", false
}

// resourcesWithoutKind are resources only for rules: for impersonation and signing
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
var resourcesWithoutKind = []string{"users", "groups", "uids", "userextras", "signers"}

func pluralMessage(name, resource, plural string) string {
	return fmt.Sprintf("%q is not a resource of requests, which have plural names in lower case; did you mean %q?", name, plural+strings.TrimPrefix(name, resource))
}

// knownVerbs are verbs of Kubernetes
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb).
// APIs may define others, such as manage-members of Projects, so only similar words are faults.
var knownVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "escalate", "impersonate", "approve", "sign", "attest"}

// verbSynonyms maps common words to verbs.
var verbSynonyms = map[string]string{
	"read": "get, list and watch", "view": "get, list and watch", "write": "create, update, patch and delete", "edit": "update and patch", "modify": "update and patch",
	"remove": "delete", "add": "create", "all": `"*"`,
}

// CheckVerb returns a message with the intended verb, or "" if the verb may exist.
func CheckVerb(verb string) string {
	if slices.Contains(knownVerbs, verb) {
		return ""
	}
	if instead := verbSynonyms[verb]; instead != "" {
		return fmt.Sprintf("%q is not a verb of API requests; write %s", verb, instead)
	}
	if meant := suggest.Closest(verb, knownVerbs); meant != "" {
		return fmt.Sprintf("%q is not a verb of API requests; did you mean %q?", verb, meant)
	}
	return ""
}

// knownSubjects are users and groups of Kubernetes
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings)
// and Gardener (upstream pkg/apis/core/v1beta1/constants).
var knownSubjects = []string{
	"gardener.cloud:system:gardenadm-bootstrap", "gardener.cloud:system:seeds", "gardener.cloud:system:shoots", "gardener.cloud:system:viewers",
	"system:admin", "system:anonymous", "system:apiserver", "system:authenticated", "system:bootstrappers", "system:kube-controller-manager",
	"system:kube-proxy", "system:kube-scheduler", "system:masters", "system:monitoring", "system:nodes", "system:serviceaccounts", "system:unauthenticated",
}

// CheckSubject returns the fault of a user or group name, or "" if there is none. A misspelt system
// name grants nothing to anyone.
func CheckSubject(name string) string {
	if slices.Contains(knownSubjects, name) {
		return ""
	}
	if meant := suggest.ClosestWithin(name, knownSubjects, 2); meant != "" && strings.Contains(name, ":") {
		return fmt.Sprintf("%q is not a user or group of the system; did you mean %q?", name, meant)
	}
	return ""
}

// CheckSubjectOfKind is Subject for kind User or Group. The user of a ServiceAccount and the group
// of all ServiceAccounts differ by one letter
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens).
func CheckSubjectOfKind(kind, name string) string {
	const one, all = "system:serviceaccount:", "system:serviceaccounts"
	namespace, account, isOne := strings.Cut(strings.TrimPrefix(name, one), ":")
	switch {
	case kind == "Group" && strings.HasPrefix(name, one) && isOne:
		return fmt.Sprintf("%q is not a group but a user; set the kind User, or write %q for all ServiceAccounts of the namespace", name, all+":"+namespace)
	case kind == "Group" && strings.HasPrefix(name, one):
		return fmt.Sprintf("%q is not a group; did you mean %q?", name, all+":"+namespace)
	case kind == "User" && (name == all || strings.HasPrefix(name, all+":")):
		return fmt.Sprintf("%q is not a user but a group of ServiceAccounts; set the kind Group", name)
	case kind == "User" && strings.HasPrefix(name, one) && (namespace == "" || account == ""):
		return fmt.Sprintf("%q is not a user: the user of a ServiceAccount is called %q", name, one+"NAMESPACE:NAME")
	}
	return CheckSubject(name)
}
