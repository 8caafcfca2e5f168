// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// In unparsable text, one pass finds secret names by their stems; namedvalues.go finds the ends of
// their values.

// maskNamedValues masks the values of secret names in a text that is neither JSON nor YAML. It
// masks all of the text if a value is in the following lines.
func (m Masking) maskNamedValues(s string) string {
	s = m.maskHeadings(s)
	var out strings.Builder
	at := 0
	for from := 0; ; {
		begin, end, ok := secretwords.NextCandidate(s, from)
		if !ok {
			break
		}
		from = end
		if !secretwords.IsSecret(s[begin:end]) {
			continue
		}
		v := findNamedValue(s, begin, end)
		switch {
		case v.isUnbounded:
			return m.replacementFor(s)
		case v.end <= v.begin:
			from = max(end, v.begin)
			continue
		}
		value := s[v.begin:v.end]
		if masked := maskLength(s[v.begin:]); masked > 0 {
			from = v.begin + masked
			continue
		}
		if plain := strings.Trim(value, quoteCharacters+"\\ "); plain == "" || v.isHarmless(s[begin:end], value) {
			from = v.begin
			continue
		}
		from = v.end
		if q := value[0]; len(value) > 1 && strings.IndexByte(quoteCharacters, q) >= 0 && value[len(value)-1] == q && strings.Count(value, string(q)) == 2 {
			v.begin, v.end = v.begin+1, v.end-1 // keep the quotes
		}
		out.WriteString(s[at:v.begin])
		out.WriteString(m.replacementFor(strings.Trim(s[v.begin:v.end], `\"'`)))
		at = v.end
	}
	if at == 0 {
		return s
	}
	out.WriteString(s[at:])
	return out.String()
}

// maskLength returns the length of the mask at the start of a value.
func maskLength(value string) int {
	value, skipped := strings.TrimLeft(value, `\"'`), len(value)-len(strings.TrimLeft(value, `\"'`))
	for _, n := range []int{len(Mask), len(Mask) + 1 + hashLength} {
		if len(value) >= n && isMask(value[:n]) {
			return skipped + n
		}
	}
	return 0
}

// headingPattern matches a name alone on its line. Its value is in the following lines, indented or
// as list items.
var headingPattern = regexp.MustCompile(`^([ \t]*(?:- +)*)["']?([A-Za-z][A-Za-z0-9_. -]*)["']?[ \t]*[:=][ \t]*(?:[|>][-+0-9]*[ \t]*)?\r?$`)

// maskHeadings masks the lines below a secret name alone on its line.
func (m Masking) maskHeadings(s string) string {
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
		if _, _, ok := secretwords.NextStem(line, 0); !ok {
			continue
		}
		g := headingPattern.FindStringSubmatch(lines[i])
		if g == nil || !secretwords.IsSecret(g[2]) {
			continue
		}
		end := i + 1
		for end < len(lines) && isBelowHeading(lines[end], len(g[1])) {
			end++
		}
		if hidden := strings.Join(lines[i+1:end], "\n"); strings.TrimSpace(hidden) != "" && !isMask(strings.TrimSpace(hidden)) {
			out = append(out, strings.Repeat(" ", len(g[1])+2)+m.replacementFor(hidden))
			i = end - 1
		}
	}
	return strings.Join(out, "\n")
}

// isBelowHeading reports whether a line is part of the value of a name with this indent.
func isBelowHeading(line string, indent int) bool {
	text := strings.TrimLeft(line, " \t")
	depth := len(line) - len(text)
	return strings.TrimSpace(text) == "" || depth > indent || depth == indent && strings.HasPrefix(text, "- ")
}
