package plan

import (
	"encoding/base64"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// isSecret is true for Secrets, in whatever case the kind is written, and for Gardener's InternalSecret.
func isSecret(obj map[string]any) bool {
	kind, _ := obj["kind"].(string)
	return strings.EqualFold(kind, "Secret") || strings.EqualFold(kind, "InternalSecret")
}

// stringDataToData does what the server does, so that the same value on either side is no difference. It
// replaces maps, it does not change them.
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

// Conceal takes the values out of a field that were found by other means than Compare, if they are secret.
// obj is the object and keys lead to the field.
func Conceal(obj map[string]any, keys []string, f Field) Field {
	at := location{}.enter(obj)
	for _, k := range keys {
		at = at.child(k)
	}
	if slices.Contains(keys, lastApplied) {
		at.named = true
	}
	out := at.field(f.Old, f.New)
	out.Path, out.Manager = f.Path, f.Manager
	return out
}

// field is a difference at a location, without what may not be shown.
func (l location) field(old, new any) Field {
	f := Field{Path: l.path}
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

// visibleInSecret are the fields of a Secret that hold none of its values: everything else may by mistake.
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

// harmlessAnnotation is true for annotations of Kubernetes, Gardener and Helm, whose values are known to be no
// secrets. Tools put copies of secret values into others.
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
		for i, inner := range x {
			out[i] = l.mask(inner)
			if out[i] != "" && isArgument(x, i) {
				out[i] = l.masked(inner)
			}
		}
		return out
	}
	if l.isSecretScalar(v) {
		return l.masked(v)
	}
	if text, ok := v.(string); ok {
		return l.masking.clean(text)
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
	return l.below != shown && !(strings.EqualFold(l.last(), "kubeconfig") && isPath(text)) && !variable.MatchString(text)
}

// isChecksum is true for the plain checksum of a Secret, as pod templates have it to restart with it: a short value could be
// found by trying.
func isChecksum(name, text string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "checksum") && strings.Contains(name, "secret") && checksum.MatchString(text)
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
	if isText && (shortFlag.MatchString(text) && !numbers.MatchString(text[2:]) || runs && len(text) > 2 && strings.HasPrefix(text, "-p")) {
		return true
	}
	if i == 0 {
		return false
	}
	before, _ := args[i-1].(string)
	switch before {
	case "-u", "--user", "--proxy-user":
		return strings.Contains(text, ":") && !numbers.MatchString(text)
	case "-p":
		return runs
	}
	return isSecretFlag(before)
}

// isSecretFlag is true for a flag whose value is the next argument.
func isSecretFlag(arg any) bool {
	text, ok := arg.(string)
	return ok && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") && isSecretKey(text)
}

var (
	privateKey     = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)
	urlCredentials = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)([^\s/?#"']*)@`)
	authorization  = regexp.MustCompile(`(?i)\b((?:authorization["']?\s*[:=]\s*["']?(?:bearer|basic)|bearer|basic)\s+)([A-Za-z0-9._~+/=-]{20,})`)
	webToken       = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)
	// spoken is a token in the prose of an error: letters and digits mixed, after the word.
	spoken = regexp.MustCompile(`(?i)\b((?:token|password)\s+["']?)([A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*)`)
	// assignment is key: value, key=value or "key":"value" inside a text.
	assignment = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)(\\*["']?[ \t]*[:=][ \t]*)(\\*"(?:[^"\\]|\\[^"])*\\*"|'[^']*'|[^\s,;}"'\\]+)`)
	// manifest is an object of kind Secret inside a text.
	manifest = regexp.MustCompile(`(?i)\\*["']?\bkind\\*["']?[ \t]*:[ \t]*\\*["']?(internal)?secret\b`)
	payload  = regexp.MustCompile(`(?i)\b(string)?data\\*["']?[ \t]*:`)
	checksum = regexp.MustCompile(`^[0-9a-fA-F]{32,}$`)
	encoded  = regexp.MustCompile(`^[A-Za-z0-9+/]{32,}={0,2}$`)
)

// encryptionKeys is the kind whose text holds keys under the plain name "secret".
const encryptionKeys = "EncryptionConfiguration"

// CleanText masks what is secret by its form, in an error, a log line or a value: private keys, credentials in
// URLs, tokens, password=…, manifests of Secrets.
func CleanText(s string) string { return Masking{}.clean(s) }

func (m Masking) clean(s string) string {
	if !mayHoldSecret(s) {
		return s
	}
	if privateKey.MatchString(s) || manifest.MatchString(s) && payload.MatchString(s) || strings.Contains(s, encryptionKeys) {
		return m.mask(s)
	}
	if encoded.MatchString(s) {
		raw, err := base64.StdEncoding.DecodeString(s)
		if err == nil && utf8.Valid(raw) && CleanText(string(raw)) != string(raw) {
			return m.mask(string(raw))
		}
		return s
	}
	if mayName.MatchString(s) {
		if read, ok := m.concealed(s); ok {
			s = read
		} else {
			s = m.unread(s)
		}
	}
	s = m.forms(s)
	s = m.replace(urlCredentials, s, func(g []string) (string, string, string) { return g[1], g[2], "@" })
	s = m.replace(webToken, s, func(g []string) (string, string, string) { return "", g[0], "" })
	s = m.replace(authorization, s, func(g []string) (string, string, string) { return g[1], g[2], "" })
	s = m.replace(spoken, s, func(g []string) (string, string, string) {
		if len(g[2]) < 12 {
			return g[0], "", ""
		}
		return g[1], g[2], ""
	})
	block := false
	plain := s
	s = m.assignments(s, &block)
	if block {
		return m.mask(plain) // the value is in the lines that follow
	}
	return s
}

// assignments masks key: value and the like. What is the value of one key may be an assignment itself: a: token=…
func (m Masking) assignments(s string, block *bool) string {
	all := assignment.FindAllStringSubmatchIndex(s, -1)
	var out strings.Builder
	at := 0
	for _, g := range all {
		key, separator, value := s[g[2]:g[3]], s[g[4]:g[5]], s[g[6]:g[7]]
		// Lists and objects are hidden by now as far as they are secret.
		secret := isSecretKey(key) && value[0] != '[' && value[0] != '{' && !isProse(s[:g[2]], key, separator)
		if secret && (unmasked(value) == "" || isPath(value)) {
			continue
		}
		out.WriteString(s[at:g[6]])
		at = g[7]
		if !secret {
			if len(value) < len(s) {
				value = m.assignments(value, block)
			}
			out.WriteString(value)
			continue
		}
		*block = *block || value[0] == '|' || value[0] == '>' || strings.HasPrefix(value, "<<")
		out.WriteString(m.mask(strings.Trim(value, `\"'`)))
	}
	out.WriteString(s[at:])
	return out.String()
}

// isProse is true for the word in a sentence: "cannot read the secret: forbidden".
func isProse(before, key, separator string) bool {
	before = before[strings.LastIndexByte(before, '\n')+1:]
	text := strings.TrimRight(before, " ")
	return strings.HasPrefix(separator, ":") && len(text) < len(before) && text != "" &&
		(strings.EqualFold(key, "secret") || strings.EqualFold(key, "secrets")) &&
		(text[len(text)-1] >= 'a' && text[len(text)-1] <= 'z')
}

// replace masks what a pattern finds: parts says what of it stands before the secret, what the secret is, and what follows.
func (m Masking) replace(pattern *regexp.Regexp, s string, parts func(groups []string) (before, secret, after string)) string {
	return pattern.ReplaceAllStringFunc(s, func(found string) string {
		before, secret, after := parts(pattern.FindStringSubmatch(found))
		if secret == "" {
			return before + after
		}
		return before + m.mask(secret) + after
	})
}

// isPath keeps the place of a secret readable: --kubeconfig=/var/run/…
func isPath(v string) bool {
	v = strings.Trim(v, `\"'`)
	return strings.HasPrefix(v, "/") && !strings.ContainsAny(v, "+=")
}

// mayHoldSecret keeps the patterns away from short plain values.
func mayHoldSecret(s string) bool { return len(s) >= 32 || strings.ContainsAny(s, ":= ") }
