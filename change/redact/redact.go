// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/secretwords"
)

// isSecret reports whether an object is a Secret, in any spelling of the kind, or Gardener's
// InternalSecret.
func isSecret(obj map[string]any) bool {
	kind, _ := obj["kind"].(string)
	return strings.EqualFold(kind, "Secret") || strings.EqualFold(kind, "InternalSecret")
}

// stringDataToData does what the server does, so that equal values are not a difference. It
// replaces maps instead of changing them.
func stringDataToData(obj map[string]any) {
	plain, ok := obj["stringData"].(map[string]any)
	if !ok {
		return
	}
	data, ok := obj["data"].(map[string]any)
	if !ok && obj["data"] != nil {
		return
	}
	merged := make(map[string]any, len(data)+len(plain))
	for k, v := range data {
		merged[k] = v
	}
	for k, v := range plain {
		if text, ok := v.(string); ok {
			v = base64.StdEncoding.EncodeToString([]byte(text))
		}
		merged[k] = v
	}
	obj["data"] = merged
	delete(obj, "stringData")
}

// ConcealField hides the values of a field that was not found by Compare, if they are secret. obj
// is the object and keys lead to the field.
func ConcealField(obj map[string]any, keys []string, f change.Field) change.Field {
	at := valueLocation{}.enterObject(obj)
	for _, k := range keys {
		at = at.child(k, obj)
		obj, _ = obj[k].(map[string]any)
		at = at.enterObject(obj)
	}
	if slices.Contains(keys, lastAppliedAnnotation) {
		at.isNamedSecret = true
	}
	out := at.redactedField(f.Old, f.New)
	out.Path, out.Manager = f.Path, f.Manager
	return out
}

// redactedField returns a difference at a location without hidden values.
func (l valueLocation) redactedField(old, new any) change.Field {
	f := change.Field{Path: l.path}
	if !l.isFullyHidden() {
		f.Old, f.New = l.maskValue(old), l.maskValue(new)
		if !reflect.DeepEqual(f.Old, f.New) && !(isMaskOrNil(f.Old) && isMaskOrNil(f.New)) {
			return f
		}
	}
	f.Old, f.New, f.Hidden = nil, nil, true
	if f.Encrypted = isEncrypted(old) || isEncrypted(new); f.Encrypted {
		return f // the ciphertext is public; its hash would look like that of the value
	}
	if l.isInSecret {
		old, new = decodeSecretValue(old), decodeSecretValue(new)
	}
	f.OldHash, f.NewHash = l.masking.hashValue(old), l.masking.hashValue(new)
	return f
}

func isMaskOrNil(v any) bool { return v == nil || isMask(v) }

// isComparedByKey reports whether a map that is added or removed as a whole is reported by its
// keys.
func (l valueLocation) isComparedByKey() bool {
	return l.isInSecret && len(l.keys) == 1 && l.keys[0] != "metadata"
}

// isFullyHidden reports whether a value is hidden completely, with its structure.
func (l valueLocation) isFullyHidden() bool {
	if l.isNamedSecret || l.kind == "ShootState" && len(l.keys) > 1 && l.keys[0] == "spec" {
		return true // the state of extensions and the secrets of a shoot
	}
	return l.isInSecret && len(l.keys) > 1 && !isVisibleInSecret(l.keys)
}

// isVisibleInSecret reports whether a field of a Secret never has a secret value. All other fields
// may have one by mistake.
func isVisibleInSecret(keys []string) bool {
	switch keys[0] {
	case "apiVersion", "kind", "type", "immutable":
		return true
	case "metadata":
		if len(keys) == 1 {
			return true
		}
		if keys[1] == "annotations" {
			return len(keys) == 2 || isHarmlessAnnotation(keys[2])
		}
		return slices.Contains([]string{"name", "namespace", "labels", "finalizers", "ownerReferences"}, keys[1])
	}
	return false
}

// isHarmlessAnnotation reports whether an annotation is one of Kubernetes, Gardener or Helm, whose
// values are not secret. Tools copy secret values into other annotations.
func isHarmlessAnnotation(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	if !found || key == lastAppliedAnnotation {
		return false
	}
	for _, d := range []string{"gardener.cloud", "kubernetes.io", "k8s.io", "helm.sh", "pergola.dev"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// maskValue returns a copy of a value with all secrets replaced.
func (l valueLocation) maskValue(v any) any {
	if v == nil {
		return nil
	}
	if l.isFullyHidden() {
		return l.maskScalar(v)
	}
	switch x := v.(type) {
	case map[string]any:
		l = l.enterObject(x)
		out := make(map[string]any, len(x))
		for k, inner := range x {
			if k != lastAppliedAnnotation {
				out[k] = l.child(k, x).maskValue(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		commands := l.commandPrefixes
		l.commandPrefixes = nil
		for i, inner := range x {
			out[i] = l.maskValue(inner)
			if text, ok := l.masking.maskArgument(x, i); ok {
				out[i] = text
			}
			if out[i] != "" && isArgumentOf(commands, x, i) {
				out[i] = l.maskScalar(inner)
			}
		}
		return out
	}
	if l.isSecretScalar(v) {
		return l.maskScalar(v)
	}
	if text, ok := v.(string); ok {
		return l.masking.Text(text)
	}
	return v
}

// maskScalar returns the replacement of a value at this location.
func (l valueLocation) maskScalar(v any) string {
	if l.isInSecret {
		v = decodeSecretValue(v)
	}
	return l.masking.replacementFor(v)
}

func (l valueLocation) isSecretScalar(v any) bool {
	if l.isInSecret && len(l.keys) > 0 && !isVisibleInSecret(l.keys) {
		return true
	}
	text, isText := v.(string)
	if _, is := v.(bool); is || isText && text == "" {
		return false
	}
	if l.kind == encryptionConfigKind && l.lastKey() == "secret" || isChecksum(l.lastKey(), text) {
		return true
	}
	return l.inheritedSecrecy != secretwords.NotSecret && !l.isNotSecret(v) || isText && isCredential(l.keys, text)
}

// isChecksum reports whether a field is the plain checksum of a Secret, as in pod templates. A
// short value could be found by trying.
func isChecksum(name, text string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "checksum") && strings.Contains(name, "secret") && checksumPattern.MatchString(text)
}

// isArgumentOf is like isArgument, but the program may be in a separate list.
func isArgumentOf(commands [][]any, args []any, i int) bool {
	return isArgument(args, i) || slices.ContainsFunc(commands, func(command []any) bool {
		return isArgument(slices.Concat(command, args), len(command)+i)
	})
}

// isArgument reports whether an argument is secret because of the previous one or the program.
func isArgument(args []any, i int) bool {
	text, isText := args[i].(string)
	if isText && variablePattern.MatchString(text) {
		return false
	}
	runs := slices.ContainsFunc(args, func(arg any) bool {
		program, ok := arg.(string)
		return ok && !strings.HasPrefix(program, "-") && passwordClientPattern.MatchString(program)
	})
	if isText && (passwordFlagPattern.MatchString(text) && !numbersPattern.MatchString(text[2:]) && !longSingleDashFlagPattern.MatchString(text) || runs && len(text) > 2 && strings.HasPrefix(text, "-p")) {
		return true
	}
	if i == 0 {
		return false
	}
	before, _ := args[i-1].(string)
	switch before {
	case "-u", "--user", "--proxy-user":
		return strings.Contains(text, ":") && !isUserAndGroup(text)
	case "-p":
		return runs || isLoginCommand(args)
	case "-w":
		return slices.ContainsFunc(args[:i], func(arg any) bool { program, ok := arg.(string); return ok && ldapProgramPattern.MatchString(program) })
	case "-a":
		return slices.ContainsFunc(args, func(arg any) bool { program, ok := arg.(string); return ok && strings.HasSuffix(program, "redis-cli") })
	}
	return isSecretFlag(before)
}

var (
	ldapProgramPattern = regexp.MustCompile(`^(?:.*/)?ldap[a-z]+$`)
	// longSingleDashFlagPattern matches long flags with a single dash: -plugin_dir,
	// -promscrape.config.
	longSingleDashFlagPattern = regexp.MustCompile(`^-p[a-z]+(?:[_.][a-zA-Z]+)+$`)
)

// isLoginCommand reports whether arguments run a login command such as docker login.
func isLoginCommand(args []any) bool {
	isLogin := func(arg any) bool { program, ok := arg.(string); return ok && loginProgramPattern.MatchString(program) }
	return slices.ContainsFunc(args, isLogin) && slices.Contains(args, any("login"))
}

// assignmentPrefixPattern matches the name in a list item such as --name=value; the rest is the
// value.
var assignmentPrefixPattern = regexp.MustCompile(`^(?:--?)?[A-Za-z_][A-Za-z0-9_.-]*=`)

// maskArgument masks a list item such as --password=a b or DB_PASSWORD=a b. After -c there is a
// command.
func (m Masking) maskArgument(list []any, i int) (string, bool) {
	text, ok := list[i].(string)
	if !ok || i > 0 && list[i-1] == "-c" {
		return text, false
	}
	set := assignmentPrefixPattern.FindString(text)
	if set == "" {
		return text, false
	}
	name, value := strings.Trim(set, "-="), text[len(set):]
	if value == "" || !secretwords.IsSecret(name) || isSecretPath(name, value) || hasNoSecretContent(name, value) || maskLength(value) > 0 {
		return text, false
	}
	return set + m.replacementFor(value), true
}

// isSecretFlag reports whether a flag's value is a secret in the next argument.
func isSecretFlag(arg any) bool {
	text, ok := arg.(string)
	return ok && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") && secretwords.IsSecret(text)
}
