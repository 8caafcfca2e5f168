// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// A text inside a value, such as a file in a ConfigMap, is parsed if it is JSON or YAML. Parsing
// gives the exact extent of each value, so that secrets are hidden in place and the rest is
// compared line by line. Other texts (templates, other formats) are searched for names
// (namedsecrets.go), which tends to hide too much.

// maxParsedBytes is the maximum size of parsed texts in bytes.
const maxParsedBytes = 4 << 20

// commentPattern matches a YAML comment to the end of its line.
var commentPattern = regexp.MustCompile(`(?m)(?:^|[ \t])#.*$`)

// yamlOnlyBreaks are line breaks only in YAML.
const yamlOnlyBreaks = "\u0085\u2028\u2029\ufeff"

// maskParsedText hides the values below secret names. It returns false if the text is neither JSON
// nor YAML.
func (m Masking) maskParsedText(text string) (string, bool) {
	if len(text) > maxParsedBytes || strings.ContainsAny(text, yamlOnlyBreaks) || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
		return text, false
	}
	if !canBeParsed(text) {
		return text, false
	}
	r := textMasker{text: text, lines: []int{0}, masking: m}
	for i := range len(text) {
		if text[i] == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var documents []*yaml.Node
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return text, false
		}
		if len(document.Content) == 0 {
			continue
		}
		if document.Content[0].Kind == yaml.ScalarNode {
			return text, false
		}
		documents = append(documents, document.Content[0])
	}
	for _, d := range documents {
		if isSentence(d, text) {
			return text, false
		}
		r.collectNodes(d)
	}
	for _, d := range documents {
		r.walkNode(d, valueLocation{masking: m}, false)
	}
	if r.isPositionLost {
		return text, false
	}
	result := r.replacedText()
	if !strings.Contains(result, "#") {
		return result, true
	}
	return commentPattern.ReplaceAllStringFunc(result, m.maskNamedValues), true
}

// canBeParsed reports whether the first line may be JSON or YAML; other texts are not parsed, to
// save time.
func canBeParsed(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#!") {
			return false
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.IndexByte(`-{["'?&!%*:`, line[0]) >= 0 {
			return true
		}
		key, _, ok := strings.Cut(line+" ", ": ")
		return ok && !strings.ContainsAny(key, "\"'`;|")
	}
	return false
}

// isSentence reports whether a node is prose with a colon: "cannot rotate credentials: not found".
func isSentence(n *yaml.Node, text string) bool {
	return !strings.Contains(text, "\n") && n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0 &&
		n.Content[0].Style == 0 && strings.Contains(n.Content[0].Value, " ")
}

// textMasker finds the secret parts of a text.
type textMasker struct {
	text         string
	lines        []int // offsets of the lines
	masking      Masking
	nodes        []*yaml.Node // in text order
	replacements []replacement
	// isPositionLost is set if the text does not match its parsed form, so no position is reliable.
	isPositionLost bool
}

// replacement is a part of a text and its replacement.
type replacement struct {
	begin, end int
	text       string
}

func (r *textMasker) collectNodes(n *yaml.Node) {
	r.nodes = append(r.nodes, n)
	for _, c := range n.Content {
		r.collectNodes(c)
	}
}

func (r *textMasker) walkNode(n *yaml.Node, l valueLocation, afterFlag bool) {
	switch n.Kind {
	case yaml.MappingNode:
		names := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			names[n.Content[i].Value] = nodeValue(n.Content[i+1], 2)
			// A command line with a colon is not a mapping, and a template expression in braces is
			// not a key.
			r.isPositionLost = r.isPositionLost || len(n.Content[i].Content) > 0 || n.Content[i].Style == 0 && strings.ContainsAny(n.Content[i].Value, `"'`)
		}
		l = l.enterObject(names)
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.walkNode(n.Content[i+1], l.child(n.Content[i].Value, names), false)
		}
	case yaml.SequenceNode:
		list, _ := nodeValue(n, 1).([]any)
		commands := l.commandPrefixes
		l.commandPrefixes = nil
		for i, c := range n.Content {
			if _, ok := list[i].(string); !ok {
				r.walkNode(c, l, false)
				continue
			}
			if text, ok := r.masking.maskArgument(list, i); ok && c.Kind == yaml.ScalarNode {
				r.replaceNode(c, text)
				continue
			}
			r.walkNode(c, l, isArgumentOf(commands, list, i))
		}
	case yaml.AliasNode:
		if afterFlag || l.isNamedSecret || l.inheritedSecrecy != secretwords.NotSecret || secretwords.IsSecret(l.lastKey()) {
			r.walkNode(n.Alias, valueLocation{masking: r.masking, isNamedSecret: true}, false)
			begin := r.nodeOffset(n)
			r.replacements = append(r.replacements, replacement{begin, begin + len("*") + len(n.Value), r.masking.replacementFor(n.Alias.Value)})
		}
	case yaml.ScalarNode:
		r.walkScalar(n, l, afterFlag)
		return
	}
	// Hide the whole value if nothing of it stays, because its shape reveals something.
	if n.Kind != yaml.AliasNode && len(n.Content) > 0 && (l.isNamedSecret || l.inheritedSecrecy == secretwords.AlwaysSecret && !r.hasVisibleLeaf(n, l)) {
		r.hideNode(n)
	}
}

// hasVisibleLeaf reports whether some leaf of a value stays visible.
func (r *textMasker) hasVisibleLeaf(n *yaml.Node, l valueLocation) bool {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if r.hasVisibleLeaf(n.Content[i+1], l.child(n.Content[i].Value, nodeValue(n, 2).(map[string]any))) {
				return true
			}
		}
		return false
	case yaml.SequenceNode:
		return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return r.hasVisibleLeaf(c, l) })
	}
	return n.Value != "" && n.Tag != "!!null" && !l.isSecretScalar(typedScalar(n))
}

// nodeValue returns a node as a plain value, down to a number of levels.
func nodeValue(n *yaml.Node, levels int) any {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content) && levels > 0; i += 2 {
			out[n.Content[i].Value] = nodeValue(n.Content[i+1], levels-1)
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for i := 0; i < len(n.Content) && levels > 0; i++ {
			out = append(out, nodeValue(n.Content[i], levels-1))
		}
		return out
	}
	return n.Value
}

// typedScalar returns a scalar with the type that matters for masking.
func typedScalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!bool":
		return n.Value == "true"
	case "!!int":
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return i
		}
	}
	return n.Value
}

func (r *textMasker) walkScalar(n *yaml.Node, l valueLocation, afterFlag bool) {
	var v any = n.Value
	if n.Value == "" || n.Tag == "!!null" || n.Tag == "!!bool" || isMask(v) || variablePattern.MatchString(n.Value) {
		return
	}
	if l.isNamedSecret || afterFlag || l.isSecretScalar(typedScalar(n)) && !isSecretPath(l.lastKey(), n.Value) {
		r.hideNode(n)
		return
	}
	if inner := r.masking.Text(n.Value); inner != n.Value {
		r.replaceNode(n, inner)
	}
}

// replaceNode replaces a value by a text in the same YAML style.
func (r *textMasker) replaceNode(n *yaml.Node, inner string) {
	begin, end := r.valueRange(n)
	raw := r.text[begin:end]
	switch {
	case raw == n.Value:
		r.replacements = append(r.replacements, replacement{begin, end, inner})
	case n.Style&yaml.DoubleQuotedStyle != 0:
		var out strings.Builder
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		_ = e.Encode(inner) // cannot fail for a string
		r.replacements = append(r.replacements, replacement{begin, end, strings.TrimSuffix(out.String(), "\n")})
	case n.Style&yaml.SingleQuotedStyle != 0 && !strings.Contains(inner, "\n"):
		r.replacements = append(r.replacements, replacement{begin, end, "'" + strings.ReplaceAll(inner, "'", "''") + "'"})
	case n.Style&yaml.LiteralStyle != 0 && strings.Contains(raw, "\n"):
		head, body, _ := strings.Cut(raw, "\n")
		body = strings.TrimLeft(body, "\n")
		indent := "\n" + body[:len(body)-len(strings.TrimLeft(body, " "))]
		r.replacements = append(r.replacements, replacement{begin, end, head + indent + strings.ReplaceAll(strings.TrimRight(inner, "\n"), "\n", indent)})
	default:
		r.hideNode(n)
	}
}

func (r *textMasker) hideNode(n *yaml.Node) {
	begin, end := r.valueRange(n)
	var v any = n.Value
	mask := r.masking.replacementFor(v)
	if n.Kind != yaml.ScalarNode {
		mask = r.masking.replacementFor(r.text[begin:end])
	}
	if begin < len(r.text) && n.Kind == yaml.ScalarNode && strings.IndexByte(`"'`, r.text[begin]) >= 0 {
		mask = r.text[begin:begin+1] + mask + r.text[begin:begin+1]
	}
	r.replacements = append(r.replacements, replacement{begin, end, mask})
}

// valueRange returns the start and end of a value. An uncertain end is the start of the next value.
func (r *textMasker) valueRange(n *yaml.Node) (int, int) {
	begin := r.nodeOffset(n)
	rest := r.text[begin:]
	switch {
	case rest == "":
		r.isPositionLost = true
		return begin, begin
	case n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle != 0 && rest[0] == '"',
		n.Kind == yaml.ScalarNode && n.Style&yaml.SingleQuotedStyle != 0 && rest[0] == '\'',
		n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0 && (rest[0] == '{' || rest[0] == '['):
		return begin, begin + valueLength(rest)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.HasPrefix(rest, n.Value):
		return begin, begin + len(n.Value)
	}
	last := n
	for len(last.Content) > 0 {
		last = last.Content[len(last.Content)-1]
	}
	end := len(r.text)
	if i := slices.Index(r.nodes, last); i >= 0 && i+1 < len(r.nodes) {
		end = r.nodeOffset(r.nodes[i+1])
	}
	if end < begin {
		r.isPositionLost = true
		return begin, begin
	}
	kept := strings.TrimRight(strings.TrimRight(r.text[begin:end], " \t\r\n"), "-")
	return begin, begin + len(strings.TrimRight(kept, " \t\r\n"))
}

// nodeOffset returns the start of a node; YAML counts lines and characters.
func (r *textMasker) nodeOffset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(r.lines) {
		r.isPositionLost = true
		return len(r.text)
	}
	at := r.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(r.text[at:])
		at += size
	}
	return at
}

// replacedText returns the text with all replacements; of nested parts the outer one counts.
func (r *textMasker) replacedText() string {
	slices.SortStableFunc(r.replacements, func(a, b replacement) int {
		if a.begin != b.begin {
			return a.begin - b.begin
		}
		return b.end - a.end
	})
	var out strings.Builder
	at := 0
	for _, p := range r.replacements {
		if p.begin < at {
			if p.end > at {
				at = p.end
			}
			continue
		}
		out.WriteString(r.text[at:p.begin])
		out.WriteString(p.text)
		at = p.end
	}
	out.WriteString(r.text[at:])
	return out.String()
}

// valueLength returns the length of the quoted text, list or object at the start of a text. Without
// a closing quote or bracket it is the whole text.
func valueLength(s string) int {
	depth, slashes := 0, 0
	quote, quoteSlashes := byte(0), 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '\\':
			slashes++
			continue
		case quote != 0:
			closes := c == quote && (slashes == quoteSlashes || quoteSlashes == 0 && (slashes%2 == 0 || quote == '\''))
			if closes {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote, quoteSlashes = c, slashes
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		slashes = 0
		if depth <= 0 && quote == 0 {
			if c == '\'' && i > 0 && i+1 < len(s) && s[i+1] == '\'' {
				continue // '' inside a single-quoted text
			}
			return i + 1
		}
	}
	return len(s)
}
