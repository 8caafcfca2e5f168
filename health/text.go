package health

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// maxForeignMessage bounds what is taken over from kubelet, events and containers, in bytes.
const maxForeignMessage = 300

// sentence joins a reason and a message from the cluster.
func sentence(reason, message string) string {
	message = presentable(message)
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

// presentable makes one line of a text from the cluster, without what looks like a secret value, bounded.
func presentable(text string) string {
	text = withoutSecrets(text)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) > maxForeignMessage {
		text = strings.ToValidUTF8(text[:maxForeignMessage], "") + "…"
	}
	return text
}

const hidden = "[hidden]"

type secretPatterns struct{ block, assignment, prose, option, scheme, userinfo, token, run *regexp.Regexp }

var patterns = sync.OnceValue(func() secretPatterns {
	return secretPatterns{
		block: regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|$)`),
		assignment: regexp.MustCompile(`(?i)((?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|access[-_]?key(?:[-_]?id)?|secret[-_]?key|private[-_]?key|` +
			`account[-_]?key|authorization|credentials?|cookie|bearer)["']?\s*[:=]\s*)((?:basic|bearer)\s+[^\s,;]+|"[^"]*"|'[^']*'|[^\s,;&]+)`),
		// A sentence that goes on after the colon: `failed to fetch token: serviceaccounts "x" not found`.
		prose:    regexp.MustCompile(`^(?i:secret|token|credentials?): +[a-z]+$`),
		option:   regexp.MustCompile(`(?i)(--[a-z0-9-]*(?:password|token|secret|api-key)\s+)[^\s-]\S*`),
		scheme:   regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}`),
		userinfo: regexp.MustCompile(`(://)[^/@\s]+@`),
		token:    regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`),
		run:      regexp.MustCompile(`[A-Za-z0-9+_=-]{32,}`),
	}
})

// withoutSecrets replaces what looks like a secret value: private keys, values of telling names, credentials in URLs and
// headers, tokens, and long runs of mixed letters and digits. Names of objects and digests of images stay. It is a net under
// texts that should hold none; what may hold anything (logs) is not to be passed in.
func withoutSecrets(text string) string {
	p := patterns()
	text = p.block.ReplaceAllString(text, hidden)
	text = p.assignment.ReplaceAllStringFunc(text, func(match string) string {
		m := p.assignment.FindStringSubmatch(match)
		if p.prose.MatchString(match) {
			return match
		}
		return m[1] + hidden
	})
	text = p.option.ReplaceAllString(text, "${1}"+hidden)
	text = p.scheme.ReplaceAllString(text, "${1} "+hidden)
	text = p.userinfo.ReplaceAllString(text, "${1}"+hidden+"@")
	text = p.token.ReplaceAllString(text, hidden)
	return p.run.ReplaceAllStringFunc(text, func(run string) string {
		if strings.ContainsFunc(run, unicode.IsUpper) && strings.ContainsFunc(run, unicode.IsLower) && strings.ContainsFunc(run, unicode.IsDigit) {
			return hidden
		}
		return run
	})
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func quoted(list []string) string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, strconv.Quote(s))
	}
	return strings.Join(out, ", ")
}
