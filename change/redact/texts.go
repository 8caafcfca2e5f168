// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// Every text (a value, an error, a log line) is masked in the same way:
//
//  1. Texts with nothing but secrets are hidden as a whole: private keys, manifests of Secrets.
//  2. Encoded text is decoded, and hidden as a whole if it has a secret.
//  3. JSON and YAML are parsed (parsedtext.go). Other texts are searched for names and their
//     values (namedsecrets.go, namedvalues.go).
//  4. In the rest, secrets are hidden by their form, whatever their name (secretforms.go).

// Text masks the secrets in an error, a log line or a value.
func Text(s string) string { return Masking{}.Text(s) }

// Text is like the function Text, with hashes for hidden values.
func (m Masking) Text(s string) string {
	if !canHaveSecret(s) {
		return s
	}
	lower := strings.ToLower(s)
	if hasAny(lower, "private key", "age-secret-key", "putty-user-key", "static key") && privateKeyPattern.MatchString(s) ||
		strings.Contains(s, encryptionConfigKind) && encryptionSecretPattern.MatchString(s) ||
		strings.Contains(lower, "secret") && strings.Contains(lower, "data") && secretManifestPattern.MatchString(s) && secretDataPattern.MatchString(s) {
		return m.replacementFor(s)
	}
	if raw, ok := decodedText(s); ok {
		if Text(raw) != raw {
			return m.replacementFor(raw)
		}
		return s
	}
	if _, _, ok := secretwords.NextStem(s, 0); !ok && !hasAny(lower, argumentPrograms...) {
		return m.maskForms(s)
	}
	if read, ok := m.maskParsedText(s); ok {
		return m.maskForms(read)
	}
	return m.maskForms(m.maskNamedValues(s))
}

// hasAny reports whether a text has one of some parts. It is much faster than a pattern.
func hasAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// argumentPrograms have arguments that may be secret without a secret name, in JSON and YAML lists.
var argumentPrograms = []string{"redis-cli", "curl", "login", "ldap", "mysql", "mariadb", "mongo", "sshpass"}

// canHaveSecret skips the patterns for short plain values.
func canHaveSecret(s string) bool { return len(s) >= shortestEncoded || strings.ContainsAny(s, ":= ") }

// shortestEncoded is the minimum length of base64 text with a name and a secret, in characters.
const shortestEncoded = 16

var (
	privateKeyPattern = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|AGE-SECRET-KEY-1|PuTTY-User-Key-File|-----BEGIN OpenVPN Static key V1-----`)
	// secretManifestPattern matches an object of kind Secret inside a text.
	secretManifestPattern = regexp.MustCompile(`(?i)\\*["']?\bkind\\*["']?[ \t]*:[ \t]*\\*["']?(internal)?secret\b`)
	secretDataPattern     = regexp.MustCompile(`(?i)\b(string)?data\\*["']?[ \t]*:`)
	// encryptionSecretPattern matches a key in an EncryptionConfiguration.
	encryptionSecretPattern = regexp.MustCompile(`\bsecret\\*["']?[ \t]*:`)
	checksumPattern         = regexp.MustCompile(`^[0-9a-fA-F]{32,}$`)
	authFieldPattern        = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`)
	base64Pattern           = regexp.MustCompile(`^[A-Za-z0-9+/_-]{12,}={0,2}$`)
	lineBreakPattern        = regexp.MustCompile(`\r?\n[ \t]*`)
)

// encryptionConfigKind is the kind whose text has keys under the plain name "secret".
const encryptionConfigKind = "EncryptionConfiguration"

// decodedText decodes a text that is base64 as a whole, in one line or several.
func decodedText(s string) (string, bool) {
	if strings.ContainsFunc(s[:min(len(s), 400)], func(r rune) bool { return r > '~' || strings.ContainsRune(",:;()[]{}<>\"'`#$%&*!?@|\\~^.", r) }) {
		return "", false
	}
	s = lineBreakPattern.ReplaceAllString(strings.TrimSpace(s), "")
	if len(s) < shortestEncoded || !base64Pattern.MatchString(s) || checksumPattern.MatchString(s) {
		return "", false
	}
	s = strings.TrimRight(s, "=")
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := e.DecodeString(s); err == nil && isText(raw) {
			return string(raw), true
		}
	}
	return "", false
}

// decodedAuth decodes the field auth of a registry, which may be short.
func decodedAuth(s string) ([]byte, bool) {
	if len(s) < shortestSecret || !authFieldPattern.MatchString(s) || !strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=") {
		return nil, false
	}
	raw, err := base64.StdEncoding.DecodeString(s)
	return raw, err == nil
}

func isText(raw []byte) bool {
	return utf8.Valid(raw) && !strings.ContainsFunc(string(raw), func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

// dataURL hides the content of a data: URL that holds a secret.
func (m Masking) dataURL(content string, inBase64 bool) (string, bool) {
	raw := content
	if inBase64 {
		text, ok := decodedText(content)
		if !ok {
			return content, false
		}
		raw = text
	} else if text, err := url.PathUnescape(content); err == nil {
		raw = text
	}
	return raw, Text(raw) != raw
}

// isUnmasked reports whether a value still has to be masked.
func isUnmasked(v string) bool {
	return strings.Trim(v, `\"' `) != "" && !strings.HasPrefix(strings.TrimLeft(v, `\"'`), strings.TrimSuffix(Mask, ")")) && !variablePattern.MatchString(v) && !notSecretValues[strings.ToLower(v)]
}

// notSecretValues are values that are never secrets; notCredentialValues are values that are not
// tokens or credentials.
var (
	notSecretValues = map[string]bool{"true": true, "false": true, "null": true, "nil": true, "none": true, "~": true, "yes": true, "no": true,
		"on": true, "off": true, "0": true, "1": true}
	notCredentialValues = map[string]bool{"include": true, "omit": true, "same-origin": true, "enabled": true, "disabled": true, "required": true, "optional": true}
)

// isSecretPath reports whether a value is the path of a secret, which stays readable:
// --kubeconfig=/var/run/… A password may begin with a slash.
func isSecretPath(name, v string) bool {
	v = strings.TrimPrefix(strings.Trim(v, `\"'; `), "file:")
	if !filePathPattern.MatchString(v) {
		return false
	}
	name = secretwords.Normalize(name)
	return secretFolderPattern.MatchString(v) || hasAny(name, "kubeconfig", "privatekey", "clientkey", "tlskey", "serverkey", "sshkey", "certificatekey", "hostkey", "token", "credential")
}

var (
	filePathPattern     = regexp.MustCompile(`^(?:\$\{?[A-Za-z_]+\}?|~|\.{1,2})?/[A-Za-z0-9._@-]+(?:/[A-Za-z0-9._@-]+)*/?$`)
	secretFolderPattern = regexp.MustCompile(`^/(?:etc|var|run|srv|opt|home|root|tmp|mnt|usr|secrets?|vault|data|config|credentials|certs?)/`)
)
