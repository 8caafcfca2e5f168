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
// (textnames.go), which tends to hide too much.

// readable is the maximum size of parsed texts in bytes.
const readable = 4 << 20

// comment matches a YAML comment to the end of its line.
var comment = regexp.MustCompile(`(?m)(?:^|[ \t])#.*$`)

// otherBreaks are line breaks in YAML only.
const otherBreaks = "\u0085\u2028\u2029\ufeff"

// concealed hides the values below secret names. It returns false if the text is neither JSON nor
// YAML.
func (m Masking) concealed(text string) (string, bool) {
	if len(text) > readable || strings.ContainsAny(text, otherBreaks) || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
		return text, false
	}
	if !looksRead(text) {
		return text, false
	}
	r := reader{text: text, lines: []int{0}, masking: m}
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
		r.list(d)
	}
	for _, d := range documents {
		r.walk(d, location{masking: m}, false)
	}
	if r.lost {
		return text, false
	}
	result := r.result()
	if !strings.Contains(result, "#") {
		return result, true
	}
	return comment.ReplaceAllStringFunc(result, m.named), true
}

// looksRead reports whether the first line may be JSON or YAML; other texts are not parsed, to save
// time.
func looksRead(text string) bool {
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

// reader finds the secret parts of a text.
type reader struct {
	text    string
	lines   []int // offsets of the lines
	masking Masking
	nodes   []*yaml.Node // in text order
	found   []span
	// lost is set if the text does not match its parsed form, so that no position is reliable.
	lost bool
}

// span is a part of a text and its replacement.
type span struct {
	begin, end int
	text       string
}

func (r *reader) list(n *yaml.Node) {
	r.nodes = append(r.nodes, n)
	for _, c := range n.Content {
		r.list(c)
	}
}

func (r *reader) walk(n *yaml.Node, l location, afterFlag bool) {
	switch n.Kind {
	case yaml.MappingNode:
		names := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			names[n.Content[i].Value] = plainNode(n.Content[i+1], 2)
			// A command line with a colon is not a mapping, and a template expression in braces is
			// not a key.
			r.lost = r.lost || len(n.Content[i].Content) > 0 || n.Content[i].Style == 0 && strings.ContainsAny(n.Content[i].Value, `"'`)
		}
		l = l.enter(names)
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.walk(n.Content[i+1], l.child(n.Content[i].Value, names), false)
		}
	case yaml.SequenceNode:
		list, _ := plainNode(n, 1).([]any)
		commands := l.commands
		l.commands = nil
		for i, c := range n.Content {
			if _, ok := list[i].(string); !ok {
				r.walk(c, l, false)
				continue
			}
			if text, ok := r.masking.argument(list, i); ok && c.Kind == yaml.ScalarNode {
				r.replace(c, text)
				continue
			}
			r.walk(c, l, isArgumentOf(commands, list, i))
		}
	case yaml.AliasNode:
		if afterFlag || l.named || l.below != secretwords.NotSecret || secretwords.IsSecret(l.last()) {
			r.walk(n.Alias, location{masking: r.masking, named: true}, false)
			begin := r.offset(n)
			r.found = append(r.found, span{begin, begin + len("*") + len(n.Value), r.masking.mask(n.Alias.Value)})
		}
	case yaml.ScalarNode:
		r.scalar(n, l, afterFlag)
		return
	}
	// Hide the whole value if nothing of it stays, because its shape reveals something.
	if n.Kind != yaml.AliasNode && len(n.Content) > 0 && (l.named || l.below == secretwords.AlwaysSecret && !r.keeps(n, l)) {
		r.hide(n)
	}
}

// keeps reports whether some leaf of a value stays visible.
func (r *reader) keeps(n *yaml.Node, l location) bool {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if r.keeps(n.Content[i+1], l.child(n.Content[i].Value, plainNode(n, 2).(map[string]any))) {
				return true
			}
		}
		return false
	case yaml.SequenceNode:
		return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return r.keeps(c, l) })
	}
	return n.Value != "" && n.Tag != "!!null" && !l.isSecretScalar(typed(n))
}

// plainNode returns a node as a plain value, down to a number of levels.
func plainNode(n *yaml.Node, levels int) any {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content) && levels > 0; i += 2 {
			out[n.Content[i].Value] = plainNode(n.Content[i+1], levels-1)
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for i := 0; i < len(n.Content) && levels > 0; i++ {
			out = append(out, plainNode(n.Content[i], levels-1))
		}
		return out
	}
	return n.Value
}

// typed returns a scalar with the type that matters for masking.
func typed(n *yaml.Node) any {
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

func (r *reader) scalar(n *yaml.Node, l location, afterFlag bool) {
	var v any = n.Value
	if n.Value == "" || n.Tag == "!!null" || n.Tag == "!!bool" || isMask(v) || variable.MatchString(n.Value) {
		return
	}
	if l.named || afterFlag || l.isSecretScalar(typed(n)) && !isPath(l.last(), n.Value) {
		r.hide(n)
		return
	}
	if inner := r.masking.Text(n.Value); inner != n.Value {
		r.replace(n, inner)
	}
}

// replace replaces a value by a text in the same YAML style.
func (r *reader) replace(n *yaml.Node, inner string) {
	begin, end := r.place(n)
	raw := r.text[begin:end]
	switch {
	case raw == n.Value:
		r.found = append(r.found, span{begin, end, inner})
	case n.Style&yaml.DoubleQuotedStyle != 0:
		var out strings.Builder
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		_ = e.Encode(inner) // cannot fail for a string
		r.found = append(r.found, span{begin, end, strings.TrimSuffix(out.String(), "\n")})
	case n.Style&yaml.SingleQuotedStyle != 0 && !strings.Contains(inner, "\n"):
		r.found = append(r.found, span{begin, end, "'" + strings.ReplaceAll(inner, "'", "''") + "'"})
	case n.Style&yaml.LiteralStyle != 0 && strings.Contains(raw, "\n"):
		head, body, _ := strings.Cut(raw, "\n")
		body = strings.TrimLeft(body, "\n")
		indent := "\n" + body[:len(body)-len(strings.TrimLeft(body, " "))]
		r.found = append(r.found, span{begin, end, head + indent + strings.ReplaceAll(strings.TrimRight(inner, "\n"), "\n", indent)})
	default:
		r.hide(n)
	}
}

func (r *reader) hide(n *yaml.Node) {
	begin, end := r.place(n)
	var v any = n.Value
	mask := r.masking.mask(v)
	if n.Kind != yaml.ScalarNode {
		mask = r.masking.mask(r.text[begin:end])
	}
	if begin < len(r.text) && n.Kind == yaml.ScalarNode && strings.IndexByte(`"'`, r.text[begin]) >= 0 {
		mask = r.text[begin:begin+1] + mask + r.text[begin:begin+1]
	}
	r.found = append(r.found, span{begin, end, mask})
}

// place returns the start and end of a value. An uncertain end is the start of the next value.
func (r *reader) place(n *yaml.Node) (int, int) {
	begin := r.offset(n)
	rest := r.text[begin:]
	switch {
	case rest == "":
		r.lost = true
		return begin, begin
	case n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle != 0 && rest[0] == '"',
		n.Kind == yaml.ScalarNode && n.Style&yaml.SingleQuotedStyle != 0 && rest[0] == '\'',
		n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0 && (rest[0] == '{' || rest[0] == '['):
		return begin, begin + valueEnd(rest)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.HasPrefix(rest, n.Value):
		return begin, begin + len(n.Value)
	}
	last := n
	for len(last.Content) > 0 {
		last = last.Content[len(last.Content)-1]
	}
	end := len(r.text)
	if i := slices.Index(r.nodes, last); i >= 0 && i+1 < len(r.nodes) {
		end = r.offset(r.nodes[i+1])
	}
	if end < begin {
		r.lost = true
		return begin, begin
	}
	kept := strings.TrimRight(strings.TrimRight(r.text[begin:end], " \t\r\n"), "-")
	return begin, begin + len(strings.TrimRight(kept, " \t\r\n"))
}

// offset returns the start of a node; YAML counts lines and characters.
func (r *reader) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(r.lines) {
		r.lost = true
		return len(r.text)
	}
	at := r.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(r.text[at:])
		at += size
	}
	return at
}

// result returns the text with all replacements; of nested parts the outer one counts.
func (r *reader) result() string {
	slices.SortStableFunc(r.found, func(a, b span) int {
		if a.begin != b.begin {
			return a.begin - b.begin
		}
		return b.end - a.end
	})
	var out strings.Builder
	at := 0
	for _, p := range r.found {
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

// valueEnd returns the length of the quoted text, list or object at the start of a text. Without a
// closing quote or bracket it is the whole text.
func valueEnd(s string) int {
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
