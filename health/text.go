// SPDX-License-Identifier: Apache-2.0

package health

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// maxForeignMessage bounds messages of kubelet, events and containers, in bytes.
const maxForeignMessage = 300

// joinReason joins a reason and a message from the cluster.
func joinReason(reason, message string) string {
	message = toSafeLine(message)
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

// toSafeLine makes a text from the cluster one bounded line without likely secret values.
func toSafeLine(text string) string {
	text = withoutSecrets(text)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) > maxForeignMessage {
		text = strings.ToValidUTF8(text[:maxForeignMessage], "") + "…"
	}
	return text
}

const hiddenText = "[hidden]"

type secretPatterns struct{ block, assignment, header, prose, option, scheme, userinfo, token, run *regexp.Regexp }

var likelySecretPatterns = sync.OnceValue(func() secretPatterns {
	return secretPatterns{
		block:      regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|$)`),
		assignment: regexp.MustCompile(`([A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)(["']?\s*[:=]\s*)((?i:basic|bearer)\s+[^\s,;]+|"[^"]*"|'[^']*'|[^\s,;&]+)`),
		// header matches headers, which are not secret names elsewhere.
		header: regexp.MustCompile(`(?i)(?:authorization|cookie|bearer)$`),
		// Prose after the colon: `failed to fetch token: serviceaccounts "x" not found`.
		prose:    regexp.MustCompile(`^(?i:secret|token|credentials?): +[a-z]+$`),
		option:   regexp.MustCompile(`--([A-Za-z0-9][A-Za-z0-9-]*)(\s+)([^\s-]\S*)`),
		scheme:   regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}`),
		userinfo: regexp.MustCompile(`(://)[^/@\s]+@`),
		token:    regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`),
		run:      regexp.MustCompile(`[A-Za-z0-9+_=-]{32,}`),
	}
})

// withoutSecrets replaces likely secrets: private keys, values of secret names, credentials in URLs
// and headers, tokens, and long mixed runs of letters and digits. Names of objects and digests of
// images stay. It is a safety net for texts without secrets. Do not pass arbitrary texts, such as
// logs.
func withoutSecrets(text string) string {
	p := likelySecretPatterns()
	text = p.block.ReplaceAllString(text, hiddenText)
	text = hideValues(text, p.assignment, func(name, whole string) bool {
		return (secretwords.IsSecret(name) || p.header.MatchString(name)) && !p.prose.MatchString(whole)
	})
	text = hideValues(text, p.option, func(name, _ string) bool { return secretwords.IsSecret(name) })
	text = p.scheme.ReplaceAllString(text, "${1} "+hiddenText)
	text = p.userinfo.ReplaceAllString(text, "${1}"+hiddenText+"@")
	text = p.token.ReplaceAllString(text, hiddenText)
	return p.run.ReplaceAllStringFunc(text, func(run string) string {
		if strings.ContainsFunc(run, unicode.IsUpper) && strings.ContainsFunc(run, unicode.IsLower) && strings.ContainsFunc(run, unicode.IsDigit) {
			return hiddenText
		}
		return run
	})
}

// hideValues replaces the values (third group of a pattern) of secret names (first group). The
// value of another name may itself have secret names.
func hideValues(text string, pattern *regexp.Regexp, secret func(name, whole string) bool) string {
	var out strings.Builder
	for {
		m := pattern.FindStringSubmatchIndex(text)
		if m == nil {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:m[6]])
		if secret(text[m[2]:m[3]], text[m[2]:m[1]]) {
			out.WriteString(hiddenText)
			text = text[m[1]:]
		} else {
			text = text[m[6]:]
		}
	}
}

func orDefault(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func quoteAll(list []string) string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, strconv.Quote(s))
	}
	return strings.Join(out, ", ")
}
