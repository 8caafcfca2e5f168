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
//  3. JSON and YAML are parsed (textparsed.go). Other texts are searched for names and their
//     values (textnames.go, textvalues.go).
//  4. In the rest, secrets are hidden by their form, whatever their name (textforms.go).

// Text masks the secrets in an error, a log line or a value.
func Text(s string) string { return Masking{}.Text(s) }

// Text is like the function Text, with hashes for hidden values.
func (m Masking) Text(s string) string {
	if !mayHoldSecret(s) {
		return s
	}
	lower := strings.ToLower(s)
	if hasAny(lower, "private key", "age-secret-key", "putty-user-key", "static key") && privateKey.MatchString(s) ||
		strings.Contains(s, encryptionKeys) && encryptionSecret.MatchString(s) ||
		strings.Contains(lower, "secret") && strings.Contains(lower, "data") && manifest.MatchString(s) && payload.MatchString(s) {
		return m.mask(s)
	}
	if raw, ok := decodedText(s); ok {
		if Text(raw) != raw {
			return m.mask(raw)
		}
		return s
	}
	if _, _, ok := secretwords.NextStem(s, 0); !ok && !hasAny(lower, programs...) {
		return m.forms(s)
	}
	if read, ok := m.concealed(s); ok {
		return m.forms(read)
	}
	return m.forms(m.named(s))
}

// hasAny reports whether a text has one of some parts. It is much faster than a pattern.
func hasAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// programs have arguments that may be secret without a secret name, in JSON and YAML lists.
var programs = []string{"redis-cli", "curl", "login", "ldap", "mysql", "mariadb", "mongo", "sshpass"}

// mayHoldSecret skips the patterns for short plain values.
func mayHoldSecret(s string) bool { return len(s) >= shortestEncoded || strings.ContainsAny(s, ":= ") }

// shortestEncoded is the minimum length of base64 text with a name and a secret, in characters.
const shortestEncoded = 16

var (
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|AGE-SECRET-KEY-1|PuTTY-User-Key-File|-----BEGIN OpenVPN Static key V1-----`)
	// manifest matches an object of kind Secret inside a text.
	manifest = regexp.MustCompile(`(?i)\\*["']?\bkind\\*["']?[ \t]*:[ \t]*\\*["']?(internal)?secret\b`)
	payload  = regexp.MustCompile(`(?i)\b(string)?data\\*["']?[ \t]*:`)
	// encryptionSecret matches a key in an EncryptionConfiguration.
	encryptionSecret = regexp.MustCompile(`\bsecret\\*["']?[ \t]*:`)
	checksum         = regexp.MustCompile(`^[0-9a-fA-F]{32,}$`)
	authField        = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`)
	encoded          = regexp.MustCompile(`^[A-Za-z0-9+/_-]{12,}={0,2}$`)
	blanks           = regexp.MustCompile(`\r?\n[ \t]*`)
)

// encryptionKeys is the kind whose text has keys under the plain name "secret".
const encryptionKeys = "EncryptionConfiguration"

// decodedText decodes a text that is base64 as a whole, in one line or several.
func decodedText(s string) (string, bool) {
	if strings.ContainsFunc(s[:min(len(s), 400)], func(r rune) bool { return r > '~' || strings.ContainsRune(",:;()[]{}<>\"'`#$%&*!?@|\\~^.", r) }) {
		return "", false
	}
	s = blanks.ReplaceAllString(strings.TrimSpace(s), "")
	if len(s) < shortestEncoded || !encoded.MatchString(s) || checksum.MatchString(s) {
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
	if len(s) < shortestSecret || !authField.MatchString(s) || !strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=") {
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

// unmasked reports whether a value still has to be masked.
func unmasked(v string) bool {
	return strings.Trim(v, `\"' `) != "" && !strings.HasPrefix(strings.TrimLeft(v, `\"'`), strings.TrimSuffix(Mask, ")")) && !variable.MatchString(v) && !said[strings.ToLower(v)]
}

// said are values that are never secrets; saidOfReferring are values that are not tokens or
// credentials.
var (
	said = map[string]bool{"true": true, "false": true, "null": true, "nil": true, "none": true, "~": true, "yes": true, "no": true,
		"on": true, "off": true, "0": true, "1": true}
	saidOfReferring = map[string]bool{"include": true, "omit": true, "same-origin": true, "enabled": true, "disabled": true, "required": true, "optional": true}
)

// isPath reports whether a value is the path of a secret, which stays readable:
// --kubeconfig=/var/run/… A password may begin with a slash.
func isPath(name, v string) bool {
	v = strings.TrimPrefix(strings.Trim(v, `\"'; `), "file:")
	if !filePath.MatchString(v) {
		return false
	}
	name = secretwords.Normalize(name)
	return folder.MatchString(v) || hasAny(name, "kubeconfig", "privatekey", "clientkey", "tlskey", "serverkey", "sshkey", "certificatekey", "hostkey", "token", "credential")
}

var (
	filePath = regexp.MustCompile(`^(?:\$\{?[A-Za-z_]+\}?|~|\.{1,2})?/[A-Za-z0-9._@-]+(?:/[A-Za-z0-9._@-]+)*/?$`)
	folder   = regexp.MustCompile(`^/(?:etc|var|run|srv|opt|home|root|tmp|mnt|usr|secrets?|vault|data|config|credentials|certs?)/`)
)
