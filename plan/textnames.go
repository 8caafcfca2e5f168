package plan

import (
	"regexp"
	"strings"
)

// In a text that cannot be read, names of secrets are found by their stems in one pass; textvalues.go tells where what they name ends.

// stems are in every name that isSecretKey knows, in lower case, by their first letter.
var stems = func() (out ['z' + 1][]string) {
	for _, s := range []string{"pass", "pwd", "pw", "token", "secret", "key", "cred", "webhookurl", "webhook_url", "webhook-url", "webhook.url",
		"stringdata", "kty", "connectionstring", "connection_string", "connection-string", "connection.string", "kubeconfig", "docker", "serviceaccount",
		"service_account", "service-account", "service.account", "psk", "masterauth", "auth"} {
		out[s[0]] = append(out[s[0]], s)
	}
	return out
}()

// stem is the next of the stems in a text, in any case.
func stem(s string, from int) (begin, end int, ok bool) {
	for i := from; i < len(s); i++ {
		c := s[i] | 0x20
		if c > 'z' || stems[c] == nil {
			continue
		}
		for _, t := range stems[c] {
			if len(s)-i >= len(t) && strings.EqualFold(s[i:i+len(t)], t) {
				return i, i + len(t), true
			}
		}
	}
	return 0, 0, false
}

// nextName is the next word of a text with a stem in it, without dashes and points around it.
func nextName(s string, from int) (begin, end int, ok bool) {
	begin, end, ok = stem(s, from)
	if !ok {
		return 0, 0, false
	}
	for begin > from && isNameByte(s[begin-1]) {
		begin--
	}
	for end < len(s) && isNameByte(s[end]) {
		end++
	}
	for begin < end && (s[begin] == '-' || s[begin] == '.') {
		begin++
	}
	for end > begin && (s[end-1] == '-' || s[end-1] == '.') {
		end--
	}
	return begin, end, true
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// named masks what is below secret names in a text that is neither JSON nor YAML; all of it where a value is in the lines that follow.
func (m Masking) named(s string) string {
	s = m.headings(s)
	var out strings.Builder
	at := 0
	for from := 0; ; {
		begin, end, ok := nextName(s, from)
		if !ok {
			break
		}
		from = end
		if !isSecretKey(s[begin:end]) {
			continue
		}
		v := valueAfter(s, begin, end)
		switch {
		case v.everything:
			return m.mask(s)
		case v.end <= v.begin:
			from = max(end, v.begin)
			continue
		}
		value := s[v.begin:v.end]
		if masked := maskAt(s[v.begin:]); masked > 0 {
			from = v.begin + masked
			continue
		}
		if plain := strings.Trim(value, quotes+"\\ "); plain == "" || v.harmless(s[begin:end], value) {
			from = v.begin
			continue
		}
		from = v.end
		if q := value[0]; len(value) > 1 && strings.IndexByte(quotes, q) >= 0 && value[len(value)-1] == q && strings.Count(value, string(q)) == 2 {
			v.begin, v.end = v.begin+1, v.end-1 // quotes stay where they are
		}
		out.WriteString(s[at:v.begin])
		out.WriteString(m.mask(strings.Trim(s[v.begin:v.end], `\"'`)))
		at = v.end
	}
	if at == 0 {
		return s
	}
	out.WriteString(s[at:])
	return out.String()
}

// maskAt is the length of what mask gave, at the begin of a value.
func maskAt(value string) int {
	value, skipped := strings.TrimLeft(value, `\"'`), len(value)-len(strings.TrimLeft(value, `\"'`))
	for _, n := range []int{len(Mask), len(Mask) + 1 + hashLength} {
		if len(value) >= n && isMask(value[:n]) {
			return skipped + n
		}
	}
	return 0
}

// heading is a name alone on its line: its value is in the lines that follow, deeper or as items of a list.
var heading = regexp.MustCompile(`^([ \t]*(?:- +)*)["']?([A-Za-z][A-Za-z0-9_. -]*)["']?[ \t]*[:=][ \t]*(?:[|>][-+0-9]*[ \t]*)?\r?$`)

// headings masks the lines that belong to a secret name alone on its line.
func (m Masking) headings(s string) string {
	if !strings.Contains(s, "\n") {
		return s
	}
	lines := strings.Split(s, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		line := strings.TrimRight(lines[i], " \t\r")
		if line == "" || strings.IndexByte(":=|>+-0123456789", line[len(line)-1]) < 0 {
			continue
		}
		if _, _, ok := stem(line, 0); !ok {
			continue
		}
		g := heading.FindStringSubmatch(lines[i])
		if g == nil || !isSecretKey(g[2]) {
			continue
		}
		end := i + 1
		for end < len(lines) && belongs(lines[end], len(g[1])) {
			end++
		}
		if hidden := strings.Join(lines[i+1:end], "\n"); strings.TrimSpace(hidden) != "" && !isMask(strings.TrimSpace(hidden)) {
			out = append(out, strings.Repeat(" ", len(g[1])+2)+m.mask(hidden))
			i = end - 1
		}
	}
	return strings.Join(out, "\n")
}

// belongs is true for a line of the value of a name with this indent.
func belongs(line string, indent int) bool {
	text := strings.TrimLeft(line, " \t")
	depth := len(line) - len(text)
	return strings.TrimSpace(text) == "" || depth > indent || depth == indent && strings.HasPrefix(text, "- ")
}
