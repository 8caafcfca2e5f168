package redact

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
	"github.com/pergola-dev/pergola/internal/secretwords"
)

// location is the position of a value in an object and the properties of that position.
type location struct {
	path string
	// keys lead here from the innermost object with a kind; list items add none.
	keys []string
	// secret is set inside a Secret, builtin inside an object of Kubernetes' own APIs, and gardener
	// inside an object of Gardener's.
	secret, builtin, gardener bool
	kind                      string
	// named is set for the value of an item such as {name: DB_PASSWORD, value: …}, whose name is
	// secret.
	named bool
	// commands are possible command lines before the arguments here.
	commands [][]any
	// below is the secrecy that the names of the enclosing objects imply.
	below secretwords.Secrecy
	// schema is set for a schema of values with a secret name.
	schema bool
	// masking makes the replacements of secret values.
	masking Masking
	// meaning is set if equivalent notations are not a difference.
	meaning bool
	// typ is the declared Go type of the value here, if known. Only meaning needs it.
	typ reflect.Type
}

// enter marks the value here as an object of its own: the whole, or one in a List or a template.
func (l location) enter(obj map[string]any) location {
	kind, _ := obj["kind"].(string)
	apiVersion, _ := obj["apiVersion"].(string)
	_, hasData := obj["data"].(map[string]any)
	_, hasText := obj["stringData"].(map[string]any)
	switch {
	case l.kind == "SecretList" && len(l.keys) == 1 && l.keys[0] == "items",
		// items of a list need not declare their kind
		apiVersion == "" && isSecret(obj) && (hasData || hasText):
		l.keys, l.kind, l.below, l.secret = nil, "Secret", secretwords.NotSecret, true
		return l
	case kind == "" || apiVersion == "", l.path != "" && isReference(obj):
		return l
	}
	l.keys, l.kind, l.below = nil, kind, secretwords.NotSecret
	l.secret = l.secret || isSecret(obj)
	l.builtin = isBuiltin(apiVersion)
	l.gardener = change.Ref{APIVersion: apiVersion}.IsGardener()
	if l.meaning {
		l.typ = typeOf(apiVersion, kind)
	}
	return l
}

// isReference reports whether an object only names another one: {apiVersion: v1, kind: Secret,
// name: a, namespace: b}.
func isReference(obj map[string]any) bool {
	for k := range obj {
		if !slices.Contains([]string{"apiVersion", "kind", "name", "namespace", "apiGroup", "group", "uid", "resourceVersion", "fieldPath", "key", "optional",
			"controller", "blockOwnerDeletion"}, k) {
			return false
		}
	}
	return obj["name"] != nil
}

// isBuiltin reports whether a group is one of Kubernetes, except CRDs: their schemas hold any key.
func isBuiltin(apiVersion string) bool {
	group := change.Ref{APIVersion: apiVersion}.Group()
	return group != "apiextensions.k8s.io" && (!strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"))
}

func (l location) child(key string, containers ...map[string]any) location {
	l.path = join(l.path, key)
	parent, inSchema := l.last(), l.schema
	l.schema = false
	switch {
	case secretwords.IsSecret(key) && every(key, containers, isSelector):
		l.below = secretwords.NotSecret
	case parent == "properties" && every(key, containers, isSchema):
		l.schema = secretwords.IsSecret(key)
	case key == "key" && parent == "tls" && every(key, containers, isPrivate) && !slices.ContainsFunc(containers, func(m map[string]any) bool { return m["name"] != nil }),
		(key == "data" || key == "stringData") && strings.HasSuffix(l.kind, "Secret") && (len(l.keys) == 0 || parent == "template") && !l.secret,
		strings.EqualFold(key, "key") && strings.HasPrefix(strings.ToLower(parent), "jwt") && every(key, containers, isPrivate),
		key == "api_url" && slices.Contains(l.keys, "slack_configs"),
		inSchema && slices.Contains(examples, key), slices.ContainsFunc(containers, func(m map[string]any) bool { return isContent(key, m) }):
		l.below = secretwords.AlwaysSecret
	default:
		l.below = below(l.below, key, parent, slices.Contains(l.keys, "auths"))
	}
	l.keys = append(slices.Clip(l.keys), key)
	l.named = false
	l.typ = childType(l.typ, key)
	l.commands = nil
	for _, m := range containers {
		if command, ok := m["command"].([]any); ok && key == "args" {
			l.commands = append(l.commands, command)
		}
		l.named = l.named || namedBeside(key, m)
	}
	return l
}

func (l location) item(suffix string) location {
	l.path += suffix
	l.typ = itemType(l.typ)
	return l
}

func (l location) last() string {
	if len(l.keys) == 0 {
		return ""
	}
	return l.keys[len(l.keys)-1]
}

func join(path, key string) string {
	if strings.ContainsAny(key, "./ []") {
		return path + "[" + key + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// emptyIsAbsent are fields of Kubernetes' own APIs that mean the same when empty and when absent.
// In other fields the difference counts: emptyDir {}, namespaceSelector {}, subresources.status {}.
var emptyIsAbsent = map[string]bool{
	"labels": true, "annotations": true, "finalizers": true, "ownerReferences": true, "data": true, "binaryData": true,
	"stringData": true, "securityContext": true, "nodeSelector": true, "tolerations": true, "affinity": true,
	"resources": true, "limits": true, "requests": true, "args": true, "command": true, "env": true, "envFrom": true,
	"ports": true, "volumes": true, "volumeMounts": true, "volumeDevices": true, "imagePullSecrets": true,
	"initContainers": true, "hostAliases": true, "topologySpreadConstraints": true, "strategy": true,
	"updateStrategy": true, "secrets": true, "volumeClaimTemplates": true, "mountOptions": true, "dnsConfig": true,
}

// isEmpty reports whether a value is null, or an empty map or list without a meaning of its own.
func (l location) isEmpty(v any) bool {
	if v != nil && l.typ != nil && (l.builtin || l.kind == "CustomResourceDefinition") {
		return isZero(l.typ, v)
	}
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0 && l.emptyMeansNothing()
	case []any:
		return len(x) == 0 && l.emptyMeansNothing()
	}
	return false
}

func (l location) emptyMeansNothing() bool {
	if len(l.keys) == 2 && l.keys[0] == "metadata" {
		return true
	}
	return l.builtin && emptyIsAbsent[l.last()]
}

// sameScalar compares values that are not both maps or both lists.
func (l location) sameScalar(a, b any) bool {
	if x, ok := jsonvalue.Number(a); ok {
		if y, ok := jsonvalue.Number(b); ok {
			return x.Cmp(y) == 0
		}
	}
	if l.typ != nil {
		if same, known := sameOfType(indirect(l.typ), a, b); known {
			return same
		}
	}
	if l.isQuantity() {
		x, err := jsonvalue.Quantity(a)
		y, err2 := jsonvalue.Quantity(b)
		if err == nil && err2 == nil {
			return x.Cmp(y) == 0
		}
	}
	return reflect.DeepEqual(a, b)
}

// quantities are fields whose values, or nested values, are quantities.
var quantities = []string{"requests", "limits", "hard", "capacity", "allocatable", "minAllowed", "maxAllowed",
	"defaultRequest", "podFixed", "storage", "sizeLimit", "divisor"}

func (l location) isQuantity() bool {
	return slices.Contains(quantities, l.last()) || len(l.keys) > 1 && slices.Contains(quantities, l.keys[len(l.keys)-2])
}
