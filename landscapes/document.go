// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/schemas/report"
)

// problem is a fault at a place of a file whose object is not known yet.
type problem struct {
	line, column int
	message      string
}

// document is one document of a YAML file. Documents are separated before parsing, so that an
// invalid one does not hide the others.
type document struct {
	data []byte
	// offset is the number of lines before the document.
	offset int
	// json reports whether it is a JSON value, which begins after behind characters of its line.
	json         bool
	columnOffset int
}

// checkText finds the first fault that makes a file unreadable as text.
func checkText(name string, data []byte) *problem {
	line, start := 1, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		column := 0
		if r == 0 || r == utf8.RuneError {
			column = utf8.RuneCount(data[start:i]) + 1
		}
		switch {
		case i == 0 && (bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})):
			return &problem{1, 1, "the file is UTF-16; save it as UTF-8"}
		case r == 0:
			return &problem{line, column, "the file is binary: it holds a zero byte"}
		case r == utf8.RuneError && size == 1:
			return &problem{line, column, fmt.Sprintf("the file is not UTF-8: byte 0x%02x", data[i])}
		case r == '\n':
			line, start = line+1, i+1
		}
		i += size
	}
	// a YAML text may contain such lines
	if ext := path.Ext(name); ext == ".cue" || ext == ".json" {
		return findConflict(data)
	}
	return nil
}

// findConflict finds an unresolved merge conflict.
func findConflict(data []byte) *problem {
	at := bytes.Index(append([]byte("\n"), data...), []byte("\n<<<<<<< "))
	if at < 0 || !bytes.Contains(data[at:], []byte("\n>>>>>>> ")) {
		return nil
	}
	return &problem{bytes.Count(data[:at], []byte("\n")) + 1, 1, conflictMessage}
}

// splitDocuments cuts a YAML file at lines that begin with "---" or "...", and JSON after each
// value. It drops no content.
func splitDocuments(data []byte) []document {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var documents []document
	var current []byte
	offset, line, start := 0, 0, 0
	flush := func() {
		if !hasContent(current) {
			return
		}
		d := document{data: current, offset: offset}
		if values := d.splitJSON(); values != nil {
			documents = append(documents, values...)
			return
		}
		documents = append(documents, d)
	}
	for at := 0; at < len(data); line++ {
		end := at + bytes.IndexByte(data[at:], '\n') + 1
		if end == at {
			end = len(data)
		}
		text := data[at:end]
		marker := isDocumentMarker(text, "---")
		if !marker && !isDocumentMarker(text, "...") {
			if current == nil {
				start = at
			}
			if start >= 0 {
				current = data[start:end:end] // a slice of the file, not a copy
			} else {
				current = append(current, text...)
			}
			at = end
			continue
		}
		flush()
		current, offset, start = nil, line+1, 0
		if after := bytes.TrimSpace(text[3:]); len(after) > 0 && after[0] != '#' {
			// Content on the marker's line stays in its column.
			current, offset, start = append([]byte("   "), text[3:]...), line, -1
		}
		at = end
	}
	flush()
	return documents
}

func isDocumentMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r')
}

// hasContent reports whether a document has more than blank lines, comments and directives.
func hasContent(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return true
		}
	}
	return false
}

var yamlErrorPattern = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// yamlHints has advice for the most common errors of the parser.
var yamlHints = map[string]string{
	"mapping values are not allowed in this context":        "; check the indentation of this line and the one before, and put text that contains \": \" in quotes",
	"did not find expected alphabetic or numeric character": "; put text that begins with * or & in quotes",
	"did not find expected key":                             "; check the indentation of this line and the lines before",
	"could not find expected ':'":                           "; a field has the form NAME: VALUE",
}

// quotableLines returns a function that reports whether an error may quote a line of the file.
func (d document) quotableLines() func(line int) bool {
	// computed only if there are errors
	quotable := sync.OnceValue(func() func(int) bool { return report.QuotableLines(string(d.data)) })
	return func(line int) bool { return quotable()(line - d.offset) }
}

// parse reads the nodes of a document. Their lines are those of the file.
func (d document) parse() (*yaml.Node, *problem) {
	if d.json {
		if node, err := d.parseJSON(); err == nil {
			return node, nil
		}
	}
	var node, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(d.data))
	err := decoder.Decode(&node)
	if errors.Is(err, io.EOF) || err == nil && len(node.Content) == 0 {
		return nil, &problem{d.offset + 1, 1, "the document is empty"}
	}
	if err == nil {
		if rest := decoder.Decode(&more); !errors.Is(rest, io.EOF) {
			line := d.offset + max(1, more.Line)
			if match := yamlErrorPattern.FindStringSubmatch(fmt.Sprint(rest)); match != nil {
				if n, err := strconv.Atoi(match[1]); err == nil {
					line = d.offset + n + 1 // the parser reports the line before
				}
			}
			return nil, &problem{line, 1, "text follows the object, and would be lost; if it is another object, put a line with --- before it"}
		}
		shiftLines(node.Content[0], d.offset, map[*yaml.Node]bool{})
		return node.Content[0], nil
	}
	return nil, d.describeFault(err)
}

// YAMLFault describes why the YAML parser rejects a text: the line and column of the fault, and a
// message with advice where possible.
func YAMLFault(text []byte, err error) (line, column int, message string) {
	p := document{data: text}.describeFault(err)
	return p.line, p.column, p.message
}

// describeFault finds the cause of a parser error. Without a known cause it returns the parser's
// own message and line.
func (d document) describeFault(err error) *problem {
	line, words := 1, err.Error()
	if match := yamlErrorPattern.FindStringSubmatch(err.Error()); match != nil {
		words = match[2]
		if n, err := strconv.Atoi(match[1]); err == nil {
			line = n
		}
	}
	if p := d.findUnknownAlias(words); p != nil {
		return p
	}
	if p := d.findTextAfterQuotes(words); p != nil {
		return p
	}
	if p := d.findSyntaxFault(); p != nil {
		if p.message != tabIndentMessage {
			p.message = "this is not YAML: " + p.message
		}
		return p
	}
	lines := strings.Split(string(d.data), "\n")
	column := 1
	if line >= 1 && line <= len(lines) {
		column = len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " ")) + 1
	}
	return &problem{d.offset + line, column, "this is not YAML: " + words + yamlHints[words]}
}

var aliasStartPattern = regexp.MustCompile(`(^|[\s\[{,])\*`)

// findUnknownAlias finds the place of an alias without an anchor. The parser gives no place, and
// quotes the alias, which may be an unquoted value.
func (d document) findUnknownAlias(words string) *problem {
	rest, ok := strings.CutPrefix(words, "unknown anchor '")
	name, ok2 := strings.CutSuffix(rest, "' referenced")
	if !ok || !ok2 {
		return nil
	}
	number := d.offset
	for line := range strings.Lines(string(d.data)) {
		number++
		for _, at := range aliasStartPattern.FindAllStringIndex(line, -1) {
			if after, ok := strings.CutPrefix(line[at[1]:], name); ok && (after == "" || strings.ContainsAny(after[:1], " \t\r\n,]}")) {
				return &problem{number, utf8.RuneCountInString(line[:at[1]]), "an alias (*NAME) refers to an anchor (&NAME) that does not exist before it; put text that begins with * in quotes"}
			}
		}
	}
	return &problem{d.offset + 1, 1, "an alias (*NAME) refers to an anchor (&NAME) that does not exist before it"}
}

// findJSONFault finds the syntax error of a JSON file, because the YAML parser often reports no
// place.
func findJSONFault(data []byte) *problem {
	var syntax *json.SyntaxError
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if err == nil {
			continue
		}
		offset := int64(len(data))
		if errors.As(err, &syntax) {
			offset = syntax.Offset
		} else if !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		before := data[:max(0, offset-1)]
		message := "the file ends too early: a closing brace, bracket or quotation mark is missing"
		if syntax != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			message, before = jsonFault(syntax, data, before)
		}
		return &problem{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1, "this is not JSON: " + message}
	}
}

func shiftLines(node *yaml.Node, offset int, seen map[*yaml.Node]bool) {
	if offset == 0 || seen[node] {
		return
	}
	seen[node] = true
	node.Line += offset
	for _, child := range node.Content {
		shiftLines(child, offset, seen)
	}
}
