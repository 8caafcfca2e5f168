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

// Kubernetes are the resources of a group of Kubernetes by the names of the kinds in small letters;
// empty for a group of others.
func Kubernetes(group string) map[string]string { return kubernetes()[group] }

var kubernetes = sync.OnceValue(func() map[string]map[string]string {
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

// version is the form of the version of an API.
var version = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// shortGroups are the APIs of Kubernetes without a dot in their name; extensions is the one of
// former releases.
var shortGroups = []string{"", "apps", "autoscaling", "batch", "extensions", "policy"}

// Group says what is wrong with a group of APIs, "" if nothing is.
func Group(group string) string {
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
	if meant := suggest.Word(group, shortGroups); meant != "" && !strings.Contains(group, ".") && !slices.Contains(shortGroups, group) {
		return fmt.Sprintf("%q is no API that requests are for; did you mean %q?", group, meant)
	}
	if strings.Contains(group, ".") && !strings.Contains(group, "*") {
		known := append(slices.Collect(maps.Keys(kubernetes())), gardenerGroups...)
		if slices.Sort(known); !slices.Contains(known, group) {
			if meant := suggest.Within(group, known, 1); strings.Contains(meant, ".") {
				return fmt.Sprintf("%q is no API that requests are for; did you mean %q?", group, meant)
			}
		}
	}
	return ""
}

// gardenerGroups are the APIs of Gardener.
var gardenerGroups = []string{
	"authentication.gardener.cloud", "core.gardener.cloud", "extensions.gardener.cloud", "operations.gardener.cloud", "operator.gardener.cloud",
	"resources.gardener.cloud", "security.gardener.cloud", "seedmanagement.gardener.cloud", "settings.gardener.cloud", "views.gardener.cloud",
}

// Resource says what is wrong with a resource of groups, "" if nothing is; known are the resources
// of a group, as Kubernetes gives them.
func Resource(name string, groups []string, known func(group string) map[string]string) string {
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
		if meant := suggest.Word(resource, plurals); meant != "" {
			return fmt.Sprintf("%q is no resource that requests are for; did you mean %q?", name, meant+strings.TrimPrefix(name, resource))
		}
		if other, has := groupOf(resource, groups); has {
			return fmt.Sprintf("%q is no resource of the API %q, but of %q", name, strings.Join(groups, ", "), other)
		}
	}
	return ""
}

// groupOf gives the API of Kubernetes that has a resource, where the given APIs of Kubernetes do
// not have it.
func groupOf(resource string, groups []string) (string, bool) {
	if len(groups) == 0 || slices.ContainsFunc(groups, func(group string) bool { return !slices.Contains(shortGroups, group) || group == "extensions" }) {
		return "", false // an API of others, or of former releases, has what it likes
	}
	for _, group := range slices.Sorted(maps.Keys(kubernetes())) {
		if slices.Contains(slices.Collect(maps.Values(kubernetes()[group])), resource) {
			return group, true
		}
	}
	return "", false
}

// resourcesWithoutKind have rules only: for impersonation and for what may be signed
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
var resourcesWithoutKind = []string{"users", "groups", "uids", "userextras", "signers"}

func notPlural(name, resource, plural string) string {
	return fmt.Sprintf("%q is no resource that requests are for: they are named in the plural and in small letters; did you mean %q?", name, plural+strings.TrimPrefix(name, resource))
}

// knownVerbs are those of Kubernetes
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb).
// APIs may have others, such as manage-members of Projects, so only one that is written nearly like
// one of these is wrong.
var knownVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "escalate", "impersonate", "approve", "sign", "attest"}

// otherVerbs are words for what others of these verbs do.
var otherVerbs = map[string]string{
	"read": "get, list and watch", "view": "get, list and watch", "write": "create, update, patch and delete", "edit": "update and patch", "modify": "update and patch",
	"remove": "delete", "add": "create", "all": `"*"`,
}

// Verb says which verb was meant, "" if the one that is written may be.
func Verb(verb string) string {
	if slices.Contains(knownVerbs, verb) {
		return ""
	}
	if instead := otherVerbs[verb]; instead != "" {
		return fmt.Sprintf("%q is no verb that API servers ask about; write %s", verb, instead)
	}
	if meant := suggest.Word(verb, knownVerbs); meant != "" {
		return fmt.Sprintf("%q is no verb that API servers ask about; did you mean %q?", verb, meant)
	}
	return ""
}

// knownSubjects are users and groups of Kubernetes
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings)
// and of Gardener (pkg/apis/core/v1beta1/constants of upstream).
var knownSubjects = []string{
	"gardener.cloud:system:gardenadm-bootstrap", "gardener.cloud:system:seeds", "gardener.cloud:system:shoots", "gardener.cloud:system:viewers",
	"system:admin", "system:anonymous", "system:apiserver", "system:authenticated", "system:bootstrappers", "system:kube-controller-manager",
	"system:kube-proxy", "system:kube-scheduler", "system:masters", "system:monitoring", "system:nodes", "system:serviceaccounts", "system:unauthenticated",
}

// Subject says what is wrong with the name of a user or group, "" if nothing is: one that is nearly
// that of the system is for nobody.
func Subject(name string) string {
	if slices.Contains(knownSubjects, name) {
		return ""
	}
	if meant := suggest.Within(name, knownSubjects, 2); meant != "" && strings.Contains(name, ":") {
		return fmt.Sprintf("%q is no user or group of the system; did you mean %q?", name, meant)
	}
	return ""
}

// SubjectOf is Subject for one kind of subject of a binding: User or Group. The user of a
// ServiceAccount and the groups of ServiceAccounts differ by one letter
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens).
func SubjectOf(kind, name string) string {
	const one, all = "system:serviceaccount:", "system:serviceaccounts"
	namespace, account, isOne := strings.Cut(strings.TrimPrefix(name, one), ":")
	switch {
	case kind == "Group" && strings.HasPrefix(name, one) && isOne:
		return fmt.Sprintf("%q is no group, but a user; the kind is User, or write %q for all ServiceAccounts of the namespace", name, all+":"+namespace)
	case kind == "Group" && strings.HasPrefix(name, one):
		return fmt.Sprintf("%q is no group; did you mean %q?", name, all+":"+namespace)
	case kind == "User" && (name == all || strings.HasPrefix(name, all+":")):
		return fmt.Sprintf("%q is no user, but a group of ServiceAccounts; the kind is Group", name)
	case kind == "User" && strings.HasPrefix(name, one) && (namespace == "" || account == ""):
		return fmt.Sprintf("%q is no user: the user of a ServiceAccount is called %q", name, one+"NAMESPACE:NAME")
	}
	return Subject(name)
}
