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

// Conceal hides the values of a field that was not found by Compare, if they are secret. obj is the
// object and keys lead to the field.
func Conceal(obj map[string]any, keys []string, f change.Field) change.Field {
	at := location{}.enter(obj)
	for _, k := range keys {
		at = at.child(k, obj)
		obj, _ = obj[k].(map[string]any)
		at = at.enter(obj)
	}
	if slices.Contains(keys, lastApplied) {
		at.named = true
	}
	out := at.field(f.Old, f.New)
	out.Path, out.Manager = f.Path, f.Manager
	return out
}

// field returns a difference at a location without hidden values.
func (l location) field(old, new any) change.Field {
	f := change.Field{Path: l.path}
	if !l.sealed() {
		f.Old, f.New = l.mask(old), l.mask(new)
		if !reflect.DeepEqual(f.Old, f.New) && !(maskOrNothing(f.Old) && maskOrNothing(f.New)) {
			return f
		}
	}
	f.Old, f.New, f.Hidden = nil, nil, true
	if f.Encrypted = isEncrypted(old) || isEncrypted(new); f.Encrypted {
		return f // the ciphertext is public; its hash would look like that of the value
	}
	if l.secret {
		old, new = decoded(old), decoded(new)
	}
	f.OldHash, f.NewHash = l.masking.hash(old), l.masking.hash(new)
	return f
}

func maskOrNothing(v any) bool { return v == nil || isMask(v) }

// keyByKey reports whether a map that is added or removed as a whole is reported by its keys.
func (l location) keyByKey() bool { return l.secret && len(l.keys) == 1 && l.keys[0] != "metadata" }

// sealed reports whether a value is hidden completely, with its structure.
func (l location) sealed() bool {
	if l.named || l.kind == "ShootState" && len(l.keys) > 1 && l.keys[0] == "spec" {
		return true // the state of extensions and the secrets of a shoot
	}
	return l.secret && len(l.keys) > 1 && !visibleInSecret(l.keys)
}

// visibleInSecret reports whether a field of a Secret never has a secret value. All other fields
// may have one by mistake.
func visibleInSecret(keys []string) bool {
	switch keys[0] {
	case "apiVersion", "kind", "type", "immutable":
		return true
	case "metadata":
		if len(keys) == 1 {
			return true
		}
		if keys[1] == "annotations" {
			return len(keys) == 2 || harmlessAnnotation(keys[2])
		}
		return slices.Contains([]string{"name", "namespace", "labels", "finalizers", "ownerReferences"}, keys[1])
	}
	return false
}

// harmlessAnnotation reports whether an annotation is one of Kubernetes, Gardener or Helm, whose
// values are not secret. Tools copy secret values into other annotations.
func harmlessAnnotation(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	if !found || key == lastApplied {
		return false
	}
	for _, d := range []string{"gardener.cloud", "kubernetes.io", "k8s.io", "helm.sh", "pergola.dev"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// mask returns a copy of a value with all secrets replaced.
func (l location) mask(v any) any {
	if v == nil {
		return nil
	}
	if l.sealed() {
		return l.masked(v)
	}
	switch x := v.(type) {
	case map[string]any:
		l = l.enter(x)
		out := make(map[string]any, len(x))
		for k, inner := range x {
			if k != lastApplied {
				out[k] = l.child(k, x).mask(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		commands := l.commands
		l.commands = nil
		for i, inner := range x {
			out[i] = l.mask(inner)
			if text, ok := l.masking.argument(x, i); ok {
				out[i] = text
			}
			if out[i] != "" && isArgumentOf(commands, x, i) {
				out[i] = l.masked(inner)
			}
		}
		return out
	}
	if l.isSecretScalar(v) {
		return l.masked(v)
	}
	if text, ok := v.(string); ok {
		return l.masking.Text(text)
	}
	return v
}

// masked returns the replacement of a value at this location.
func (l location) masked(v any) string {
	if l.secret {
		v = decoded(v)
	}
	return l.masking.mask(v)
}

func (l location) isSecretScalar(v any) bool {
	if l.secret && len(l.keys) > 0 && !visibleInSecret(l.keys) {
		return true
	}
	text, isText := v.(string)
	if _, is := v.(bool); is || isText && text == "" {
		return false
	}
	if l.kind == encryptionKeys && l.last() == "secret" || isChecksum(l.last(), text) {
		return true
	}
	return l.below != secretwords.NotSecret && !l.isPlain(v) || isText && isAuth(l.keys, text)
}

// isChecksum reports whether a field is the plain checksum of a Secret, as in pod templates. A
// short value could be found by trying.
func isChecksum(name, text string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "checksum") && strings.Contains(name, "secret") && checksum.MatchString(text)
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
	if isText && variable.MatchString(text) {
		return false
	}
	runs := slices.ContainsFunc(args, func(arg any) bool {
		program, ok := arg.(string)
		return ok && !strings.HasPrefix(program, "-") && client.MatchString(program)
	})
	if isText && (shortFlag.MatchString(text) && !numbers.MatchString(text[2:]) && !flagInWords.MatchString(text) || runs && len(text) > 2 && strings.HasPrefix(text, "-p")) {
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
		return runs || logsIn(args)
	case "-w":
		return slices.ContainsFunc(args[:i], func(arg any) bool { program, ok := arg.(string); return ok && ldap.MatchString(program) })
	case "-a":
		return slices.ContainsFunc(args, func(arg any) bool { program, ok := arg.(string); return ok && strings.HasSuffix(program, "redis-cli") })
	}
	return isSecretFlag(before)
}

var (
	ldap = regexp.MustCompile(`^(?:.*/)?ldap[a-z]+$`)
	// flagInWords matches long flags with a single dash: -plugin_dir, -promscrape.config.
	flagInWords = regexp.MustCompile(`^-p[a-z]+(?:[_.][a-zA-Z]+)+$`)
)

// logsIn reports whether arguments run a login command such as docker login.
func logsIn(args []any) bool {
	isLogin := func(arg any) bool { program, ok := arg.(string); return ok && login.MatchString(program) }
	return slices.ContainsFunc(args, isLogin) && slices.Contains(args, any("login"))
}

// setsAll matches the name in a list item such as --name=value; the rest is the value.
var setsAll = regexp.MustCompile(`^(?:--?)?[A-Za-z_][A-Za-z0-9_.-]*=`)

// argument masks a list item such as --password=a b or DB_PASSWORD=a b. After -c there is a
// command.
func (m Masking) argument(list []any, i int) (string, bool) {
	text, ok := list[i].(string)
	if !ok || i > 0 && list[i-1] == "-c" {
		return text, false
	}
	set := setsAll.FindString(text)
	if set == "" {
		return text, false
	}
	name, value := strings.Trim(set, "-="), text[len(set):]
	if value == "" || !secretwords.IsSecret(name) || isPath(name, value) || saysNothing(name, value) || maskAt(value) > 0 {
		return text, false
	}
	return set + m.mask(value), true
}

// isSecretFlag reports whether a flag's value is a secret in the next argument.
func isSecretFlag(arg any) bool {
	text, ok := arg.(string)
	return ok && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") && secretwords.IsSecret(text)
}
