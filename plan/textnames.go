package plan

import (
	"regexp"
	"strings"
)

// In a text that cannot be read what is below secret names is found by patterns, which rather hide too much.

var (
	// collection is a secret name before a list or an object in a text, also one in a text inside a text.
	collection = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)\\*["']?\s*(?:=>|[:=])\s*([\[{])`)
	// heading is a name alone on its line: its value is in the lines that follow, deeper or as items of a list.
	heading = regexp.MustCompile(`^([ \t]*(?:- +)*)["']?([A-Za-z][A-Za-z0-9_. -]*)["']?[ \t]*:[ \t]*(?:[|>][-+0-9]*[ \t]*)?\r?$`)
	// assignment is key: value, key=value, 'key' => 'value' or "key":"value" inside a text, with lines that continue it.
	assignment = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)(\\*["']?[ \t]*(?::=|=>|\?=|[:=])[ \t]*)` +
		`("""(?s:.*?)"""|'''(?s:.*?)'''|(?:\$\{[A-Za-z_][A-Za-z0-9_]*\}|\\*"(?:[^"\\]|\\[^"])*\\*"|'[^']*'|[^\s,;}"'\\])+(?:\\\r?\n[^\n]*)*)`)
)

// unread masks what is below secret names in a text that is neither JSON nor YAML.
func (m Masking) unread(s string) string {
	s = m.headings(s)
	var out strings.Builder
	for {
		at := collection.FindStringSubmatchIndex(s)
		if at == nil {
			break
		}
		begin := at[4]
		if !isSecretKey(s[at[2]:at[3]]) {
			out.WriteString(s[:at[5]])
			s = s[at[5]:]
			continue
		}
		end := begin + valueEnd(s[begin:])
		out.WriteString(s[:begin])
		out.WriteString(m.mask(s[begin:end]))
		s = s[end:]
	}
	out.WriteString(s)
	return out.String()
}

// assigned masks the values of assignments to secret names; all of a text where a value is in the lines that follow.
func (m Masking) assigned(s string) string {
	block := false
	plain := s
	s = m.assignments(s, &block)
	if block {
		return m.mask(plain)
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

// headings masks the lines that belong to a secret name alone on its line.
func (m Masking) headings(s string) string {
	lines := strings.Split(s, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
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
