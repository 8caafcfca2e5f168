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

// isSecret is true for Secrets, in whatever case the kind is written, and for Gardener's
// InternalSecret.
func isSecret(obj map[string]any) bool {
	kind, _ := obj["kind"].(string)
	return strings.EqualFold(kind, "Secret") || strings.EqualFold(kind, "InternalSecret")
}

// stringDataToData does what the server does, so that the same value on either side is no
// difference. It replaces maps, it does not change them.
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

// Conceal takes the values out of a field that were found by other means than Compare, if they are
// secret. obj is the object and keys lead to the field.
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

// field is a difference at a location, without what may not be shown.
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
		return f // everybody has the ciphertext; a hash of it would look like one of the value
	}
	if l.secret {
		old, new = decoded(old), decoded(new)
	}
	f.OldHash, f.NewHash = l.masking.hash(old), l.masking.hash(new)
	return f
}

func maskOrNothing(v any) bool { return v == nil || isMask(v) }

// keyByKey is true where a map that appears or goes as a whole is told by its keys.
func (l location) keyByKey() bool { return l.secret && len(l.keys) == 1 && l.keys[0] != "metadata" }

// sealed is true where nothing of a value may be shown, not even its structure.
func (l location) sealed() bool {
	if l.named || l.kind == "ShootState" && len(l.keys) > 1 && l.keys[0] == "spec" {
		return true // the state of extensions and the secrets of a shoot
	}
	return l.secret && len(l.keys) > 1 && !visibleInSecret(l.keys)
}

// visibleInSecret are the fields of a Secret that hold none of its values: everything else may by
// mistake.
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

// harmlessAnnotation is true for annotations of Kubernetes, Gardener and Helm, whose values are
// known to be no secrets. Tools put copies of secret values into others.
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

// mask is a copy of a value in which everything secret is replaced.
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

// masked stands for a value here.
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
	return l.below != secretwords.None && !l.isPlain(v) || isText && isAuth(l.keys, text)
}

// isChecksum is true for the plain checksum of a Secret, as pod templates have it to restart with
// it: a short value could be found by trying.
func isChecksum(name, text string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "checksum") && strings.Contains(name, "secret") && checksum.MatchString(text)
}

// isArgumentOf is isArgument where the program may stand in a list of its own.
func isArgumentOf(commands [][]any, args []any, i int) bool {
	return isArgument(args, i) || slices.ContainsFunc(commands, func(command []any) bool {
		return isArgument(slices.Concat(command, args), len(command)+i)
	})
}

// isArgument is true for an argument that is secret by the one before it, or by what the list runs.
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
	// flagInWords is one of programs that begin words with a single dash: -plugin_dir,
	// -promscrape.config.
	flagInWords = regexp.MustCompile(`^-p[a-z]+(?:[_.][a-zA-Z]+)+$`)
)

// logsIn is true for arguments such as docker login.
func logsIn(args []any) bool {
	isLogin := func(arg any) bool { program, ok := arg.(string); return ok && login.MatchString(program) }
	return slices.ContainsFunc(args, isLogin) && slices.Contains(args, any("login"))
}

// setsAll is an item of a list that sets something: all that follows is the value.
var setsAll = regexp.MustCompile(`^(?:--?)?[A-Za-z_][A-Za-z0-9_.-]*=`)

// argument masks an item of a list such as --password=a b or DB_PASSWORD=a b. After -c there is a
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

// isSecretFlag is true for a flag whose value is the next argument.
func isSecretFlag(arg any) bool {
	text, ok := arg.(string)
	return ok && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") && secretwords.IsSecret(text)
}
