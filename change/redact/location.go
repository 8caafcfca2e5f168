// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
	"github.com/pergola-dev/pergola/internal/secretwords"
)

// valueLocation is the position of a value in an object and the properties of that position.
type valueLocation struct {
	path string
	// keys lead here from the innermost object with a kind; list items add none.
	keys []string
	// isInSecret is set inside a Secret, builtin inside an object of Kubernetes' own APIs, and
	// gardener inside an object of Gardener's.
	isInSecret, isInBuiltinAPI, isInGardenerAPI bool
	kind                                        string
	// isNamedSecret is set for the value of an item such as {name: DB_PASSWORD, value: …}, whose
	// name is secret.
	isNamedSecret bool
	// commandPrefixes are possible command lines before the arguments here.
	commandPrefixes [][]any
	// inheritedSecrecy is the secrecy that the names of the enclosing objects imply.
	inheritedSecrecy secretwords.Secrecy
	// isSecretSchema is set for a schema of values with a secret name.
	isSecretSchema bool
	// masking makes the replacements of secret values.
	masking Masking
	// ignoresNotation is set if equivalent notations are not a difference.
	ignoresNotation bool
	// goType is the declared Go type of the value here, if known. Only meaning needs it.
	goType reflect.Type
}

// enterObject marks the value here as an object of its own: the whole, or one in a List or a
// template.
func (l valueLocation) enterObject(obj map[string]any) valueLocation {
	kind, _ := obj["kind"].(string)
	apiVersion, _ := obj["apiVersion"].(string)
	_, hasData := obj["data"].(map[string]any)
	_, hasText := obj["stringData"].(map[string]any)
	switch {
	case l.kind == "SecretList" && len(l.keys) == 1 && l.keys[0] == "items",
		// items of a list need not declare their kind
		apiVersion == "" && isSecret(obj) && (hasData || hasText):
		l.keys, l.kind, l.inheritedSecrecy, l.isInSecret = nil, "Secret", secretwords.NotSecret, true
		return l
	case kind == "" || apiVersion == "", l.path != "" && isReference(obj):
		return l
	}
	l.keys, l.kind, l.inheritedSecrecy = nil, kind, secretwords.NotSecret
	l.isInSecret = l.isInSecret || isSecret(obj)
	l.isInBuiltinAPI = isBuiltin(apiVersion)
	l.isInGardenerAPI = change.Ref{APIVersion: apiVersion}.IsGardener()
	if l.ignoresNotation {
		l.goType = apiTypeOf(apiVersion, kind)
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

func (l valueLocation) child(key string, containers ...map[string]any) valueLocation {
	l.path = joinPath(l.path, key)
	parent, inSchema := l.lastKey(), l.isSecretSchema
	l.isSecretSchema = false
	switch {
	case secretwords.IsSecret(key) && isEveryValue(key, containers, isSecretSelector):
		l.inheritedSecrecy = secretwords.NotSecret
	case parent == "properties" && isEveryValue(key, containers, isSchema):
		l.isSecretSchema = secretwords.IsSecret(key)
	case key == "key" && parent == "tls" && isEveryValue(key, containers, isPrivateKeyText) && !slices.ContainsFunc(containers, func(m map[string]any) bool { return m["name"] != nil }),
		(key == "data" || key == "stringData") && strings.HasSuffix(l.kind, "Secret") && (len(l.keys) == 0 || parent == "template") && !l.isInSecret,
		strings.EqualFold(key, "key") && strings.HasPrefix(strings.ToLower(parent), "jwt") && isEveryValue(key, containers, isPrivateKeyText),
		key == "api_url" && slices.Contains(l.keys, "slack_configs"),
		inSchema && slices.Contains(schemaValueFields, key), slices.ContainsFunc(containers, func(m map[string]any) bool { return isSecretContent(key, m) }):
		l.inheritedSecrecy = secretwords.AlwaysSecret
	default:
		l.inheritedSecrecy = childSecrecy(l.inheritedSecrecy, key, parent, slices.Contains(l.keys, "auths"))
	}
	l.keys = append(slices.Clip(l.keys), key)
	l.isNamedSecret = false
	l.goType = childType(l.goType, key)
	l.commandPrefixes = nil
	for _, m := range containers {
		if command, ok := m["command"].([]any); ok && key == "args" {
			l.commandPrefixes = append(l.commandPrefixes, command)
		}
		l.isNamedSecret = l.isNamedSecret || isNamedBySibling(key, m)
	}
	return l
}

func (l valueLocation) enterItem(suffix string) valueLocation {
	l.path += suffix
	l.goType = itemType(l.goType)
	return l
}

func (l valueLocation) lastKey() string {
	if len(l.keys) == 0 {
		return ""
	}
	return l.keys[len(l.keys)-1]
}

func joinPath(path, key string) string {
	if strings.ContainsAny(key, "./ []") {
		return path + "[" + key + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// emptyEqualsAbsentFields are fields of Kubernetes' own APIs that mean the same when empty and when
// absent. In other fields the difference counts: emptyDir {}, namespaceSelector {},
// subresources.status {}.
var emptyEqualsAbsentFields = map[string]bool{
	"labels": true, "annotations": true, "finalizers": true, "ownerReferences": true, "data": true, "binaryData": true,
	"stringData": true, "securityContext": true, "nodeSelector": true, "tolerations": true, "affinity": true,
	"resources": true, "limits": true, "requests": true, "args": true, "command": true, "env": true, "envFrom": true,
	"ports": true, "volumes": true, "volumeMounts": true, "volumeDevices": true, "imagePullSecrets": true,
	"initContainers": true, "hostAliases": true, "topologySpreadConstraints": true, "strategy": true,
	"updateStrategy": true, "secrets": true, "volumeClaimTemplates": true, "mountOptions": true, "dnsConfig": true,
}

// isEmpty reports whether a value is null, or an empty map or list without its own meaning.
func (l valueLocation) isEmpty(v any) bool {
	if v != nil && l.goType != nil && (l.isInBuiltinAPI || l.kind == "CustomResourceDefinition") {
		return isZero(l.goType, v)
	}
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0 && l.isEmptyAbsent()
	case []any:
		return len(x) == 0 && l.isEmptyAbsent()
	}
	return false
}

func (l valueLocation) isEmptyAbsent() bool {
	if len(l.keys) == 2 && l.keys[0] == "metadata" {
		return true
	}
	return l.isInBuiltinAPI && emptyEqualsAbsentFields[l.lastKey()]
}

// isEqualScalar compares values that are not both maps or both lists.
func (l valueLocation) isEqualScalar(a, b any) bool {
	if x, ok := jsonvalue.Number(a); ok {
		if y, ok := jsonvalue.Number(b); ok {
			return x.Cmp(y) == 0
		}
	}
	if l.goType != nil {
		if same, known := equalByType(indirect(l.goType), a, b); known {
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

// quantityFields are fields whose values, or nested values, are quantities.
var quantityFields = []string{"requests", "limits", "hard", "capacity", "allocatable", "minAllowed", "maxAllowed",
	"defaultRequest", "podFixed", "storage", "sizeLimit", "divisor"}

func (l valueLocation) isQuantity() bool {
	return slices.Contains(quantityFields, l.lastKey()) || len(l.keys) > 1 && slices.Contains(quantityFields, l.keys[len(l.keys)-2])
}
