// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// quotedStartPattern matches a field whose value continues after its quotes, as in `message: "phase
// " + self.status.phase`.
var quotedStartPattern = regexp.MustCompile(`(?:^|[{,\s])[\w.-]+:[ \t]+(("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*[^\s#,}\]'":][^\n#]*)`)

// maxQuoteRepairs limits how many places are tried.
const maxQuoteRepairs = 20

// findTextAfterQuotes finds a value that continues after its quotes and makes the YAML invalid:
// with the whole value in quotes, the parser gets further. The parser only reports where the list
// or the fields begin.
func (d document) findTextAfterQuotes(words string) *problem {
	offset := 0
	tried := 0
	for i, line := range strings.Split(string(d.data), "\n") {
		at := quotedStartPattern.FindStringSubmatchIndex(line)
		if at == nil || tried == maxQuoteRepairs {
			offset += len(line) + 1
			continue
		}
		tried++
		value, suffix := splitValue(line[at[2]:at[3]], strings.Contains(line[:at[2]], "{"))
		repaired := bytes.Join([][]byte{d.data[:offset+at[2]], []byte(quoteText(value) + suffix), d.data[offset+at[3]:]}, nil)
		var node yaml.Node
		if err := yaml.Unmarshal(repaired, &node); err == nil || !strings.HasSuffix(err.Error(), words) {
			words := "this is not YAML: the value continues after its quotes; put the whole value in quotes"
			if d.quotableLines()(d.offset + i + 1) {
				words += ": " + quoteText(value)
			}
			return &problem{d.offset + i + 1, utf8.RuneCountInString(line[:at[2]]) + 1, words}
		}
		offset += len(line) + 1
	}
	return nil
}

// splitValue splits a value from the text that follows it inside braces.
func splitValue(text string, inBraces bool) (value, rest string) {
	end, depth, quote := len(text), 0, byte(0)
	for i := 0; inBraces && i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("{[(", c) >= 0:
			depth++
		case depth == 0 && strings.IndexByte("}],", c) >= 0:
			end, inBraces = i, false
		case strings.IndexByte("}])", c) >= 0:
			depth--
		}
	}
	end = len(strings.TrimRight(text[:end], " \t\r"))
	return text[:end], text[end:]
}

// quoteText quotes a text in the style that needs fewer escapes.
func quoteText(text string) string {
	if strings.ContainsRune(text, '\'') && !strings.ContainsAny(text, `"\`) {
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
