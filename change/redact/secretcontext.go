// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// Context may mark a value as secret: the name in the same item, the path of its file, or the
// schema with this default.

// nameFields are the fields of an item that name its value, in lower case; valueFields are the
// fields with the value.
var (
	nameFields  = []string{"name", "key", "id", "variable", "parameter", "parameterkey"}
	valueFields = []string{"value", "val", "values", "default", "parametervalue", "inline_string", "inlinestring", "plain", "defaultvalue"}
	// contentFields are the fields with the content of a file.
	contentFields = []string{"content", "contents", "data", "inline"}
	// privateKeyFields are the private parts of a key in JSON (RFC 7518).
	privateKeyFields = []string{"k", "d", "p", "q", "dp", "dq", "qi"}
	// schemaValueFields are the fields of a schema that have values.
	schemaValueFields = []string{"default", "example", "examples", "enum", "const"}
)

// isNamedBySibling reports whether sibling fields mark the value of a key as secret.
func isNamedBySibling(key string, item map[string]any) bool {
	lower := strings.ToLower(key)
	if _, isSelector := item["operator"]; slices.Contains(valueFields, lower) && !isSelector {
		for field, v := range item {
			name, ok := v.(string)
			if !ok {
				continue
			}
			f := strings.ToLower(field)
			if text, ok := item[key].(string); ok && slices.Contains(nameFields, f) && isCredential([]string{name}, text) {
				return true
			}
			if slices.Contains(nameFields, f) && (secretwords.IsSecret(name) || isAuthorization(name)) || f == "type" && (lower == "value" || lower == "val") && secretwords.IsSecret(name) {
				return true
			}
		}
	}
	if _, ofSNMP := item["version"]; ofSNMP && lower == "community" {
		return true
	}
	if path, ok := item["path"].(string); ok && key == "value" && item["op"] != nil {
		last := path[strings.LastIndexByte(path, '/')+1:]
		return strings.HasPrefix(path, "/stringData/") || secretwords.IsSecret(strings.ReplaceAll(last, "~1", "/"))
	}
	_, isKey := item["kty"].(string)
	return isKey && slices.Contains(privateKeyFields, key)
}

// isAuthorization reports whether the whole value of a header is a credential.
func isAuthorization(name string) bool {
	name = strings.ToLower(name)
	return name == "authorization" || name == "proxy-authorization" || name == "cookie"
}

// isSecretContent reports whether a key has the content of a file with a secret name.
func isSecretContent(key string, file map[string]any) bool {
	path, ok := file["path"].(string)
	return ok && slices.Contains(contentFields, key) && secretwords.IsSecret(path[strings.LastIndexByte(path, '/')+1:])
}

// isSecretSelector reports whether a value selects a key of a Secret: {name: s, key: password}.
func isSecretSelector(v any) bool {
	m, _ := v.(map[string]any)
	for k, v := range m {
		switch k {
		case "name", "key", "namespace", "apiVersion", "kind":
			if _, ok := v.(string); !ok {
				return false
			}
		case "optional":
		default:
			return false
		}
	}
	return m["name"] != nil && m["key"] != nil
}

// isSchema reports whether a value is a schema.
func isSchema(v any) bool {
	m, _ := v.(map[string]any)
	switch m["type"] {
	case "string", "object", "integer", "number", "array", "boolean":
		return true
	}
	return slices.ContainsFunc([]string{"description", "properties", "$ref", "oneOf", "anyOf", "allOf", "items", "x-kubernetes-preserve-unknown-fields"},
		func(key string) bool { return m[key] != nil })
}

// isEveryValue reports whether a key has values and all of them satisfy is.
func isEveryValue(key string, containers []map[string]any, is func(any) bool) bool {
	found := false
	for _, m := range containers {
		if v, ok := m[key]; ok && v != nil {
			if !is(v) {
				return false
			}
			found = true
		}
	}
	return found
}

// isPrivateKeyText reports whether tls: {key: …} has the key itself.
func isPrivateKeyText(v any) bool {
	text, ok := v.(string)
	return ok && !isSecretPath("tlskey", text) && !keyFileNamePattern.MatchString(text)
}

var (
	keyFileNamePattern = regexp.MustCompile(`^[A-Za-z0-9._-]+\.(?:key|pem|crt)$`)
	// parameterValuePattern matches values of parameters: times, sizes, algorithms.
	parameterValuePattern = regexp.MustCompile(`^(?:(?:[0-9.]+(?:ns|us|ms|s|m|h|d|w)?)+|[Rr][Ss][Aa]|ECDSA|Ed25519|AES|PKCS[18]|Always|Never|b64|base64|gzip|RS256|HS256|ES256)$`)
	// userAndPasswordPattern matches credentials in a field auth.
	userAndPasswordPattern = regexp.MustCompile(`^[^\s:/]+:[^\s/:@]+$`)
	authSchemePattern      = regexp.MustCompile(`(?i)^(?:basic|bearer|token|apikey|api-key|digest|negotiate|bot|key)\s+\S`)
)

// isCredential reports whether a text is a credential under a name such as authorization or auth,
// which mostly names a method instead.
func isCredential(keys []string, text string) bool {
	if len(keys) == 0 || len(text) < 6 || notSecretValues[strings.ToLower(text)] || variablePattern.MatchString(text) {
		return false
	}
	name := strings.ToLower(keys[len(keys)-1])
	switch {
	case isAuthorization(name):
		return authSchemePattern.MatchString(text) || len(text) >= shortestSecret && !strings.ContainsAny(text, " /:,") && strings.ContainsAny(text, "0123456789")
	case strings.HasSuffix(name, "auth"), name == "basic" && len(keys) > 1 && strings.HasSuffix(strings.ToLower(keys[len(keys)-2]), "auth"):
		raw, isEncoded := decodedAuth(text)
		return userAndPasswordPattern.MatchString(text) && !numbersPattern.MatchString(text[strings.IndexByte(text, ':')+1:]) || isEncoded && isText(raw)
	}
	return false
}

// shortestSecret is the minimum length in characters of a word with digits to be a token.
const shortestSecret = 8

// isSecretParameter reports whether a field describes a secret without having its value.
func isSecretParameter(key string) bool {
	return slices.Contains(parameterFields, key) || durationNamePattern.MatchString(key)
}

// isNotSecret reports whether a value below a secret name is not a secret after all.
func (l valueLocation) isNotSecret(v any) bool {
	text := fmt.Sprint(v)
	name := l.lastKey()
	if isSecretParameter(name) && parameterValuePattern.MatchString(text) || isSecretPath(name, text) && secretwords.SecrecyOf(name) != secretwords.AlwaysSecret || strings.EqualFold(name, "kubeconfig") && isSecretPath(name, text) {
		return true
	}
	if strings.HasPrefix(text, "ssh-") && publicKeyPattern.MatchString(text) {
		return true
	}
	_, isText := v.(string)
	if !isText && secretwords.SecrecyOf(name) != secretwords.MaybeSecret {
		return false
	}
	return hasNoSecretContent(name, text)
}

var publicKeyPattern = regexp.MustCompile(`^ssh-(?:rsa|ed25519|dss) AAAA`)

// parameterFields are fields that describe a secret without its value.
var parameterFields = []string{"algorithm", "size", "encoding", "rotationPolicy", "audience", "audiences", "optional", "mode", "defaultMode", "enabled", "create", "automount"}

// durationNamePattern matches names of durations and counts, such as the syncPeriod of a controller
// named token.
var durationNamePattern = regexp.MustCompile(`(?:Period|Seconds|Interval|Timeout|Duration|Syncs|Workers|Limit|Count)$|^(?:period|seconds|interval|timeout|duration)$`)

// referenceFields are fields of objects that refer to a Secret or a file.
var referenceFields = []string{"name", "namespace", "kind", "apiVersion", "apiGroup", "path", "mountPath"}

// childSecrecy returns the secrecy of the value of a key, given the secrecy of its object. In a
// Docker registry configuration auth is a password.
func childSecrecy(s secretwords.Secrecy, key, parent string, inRegistry bool) secretwords.Secrecy {
	switch {
	case secretwords.IsReference(key), isSecretParameter(key) && s != secretwords.AlwaysSecret:
		return secretwords.NotSecret
	case s == secretwords.MaybeSecret && (key == "labels" || key == "annotations" || slices.Contains(referenceFields, key) || key == "key" && parent == "items"):
		return secretwords.NotSecret
	case key == "auth" && inRegistry:
		return secretwords.AlwaysSecret
	}
	return max(s, secretwords.SecrecyOf(key))
}
