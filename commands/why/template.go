// SPDX-License-Identifier: Apache-2.0

package why

import (
	"io/fs"
	"path"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

// templatePosition returns the place in the catalogue that writes the field, as exactly as its
// source shows.
func (e *explainer) templatePosition(m objectMatch, list steps) Position {
	if o, ok := e.addingOverlay(m); ok {
		return e.overlayPosition(o, m, list)
	}
	p := Position{Kind: positionTemplate, File: m.origin.File, Line: m.origin.Line}
	name, inCatalogue := strings.CutPrefix(m.origin.File, "components/")
	if !inCatalogue {
		p.IsExact = len(list) == 0
		return p
	}
	if path.Ext(name) == ".cue" {
		found := newCUEReader(e.opts.Catalogue).find(name, m.origin.Line, list)
		if found.line > 0 {
			p.File, p.Line, p.Column, p.IsExact = "components/"+found.file, found.line, found.column, found.exact
		}
	} else {
		p.Line, p.IsExact = findInYAML(e.catalogueLines(name), change.RefOf(m.object), list)
	}
	p.Text = e.lineText(e.catalogueLines(strings.TrimPrefix(p.File, "components/")), p.Line)
	return p
}

// catalogueLines returns the lines of a file of the catalogue, or nil.
func (e *explainer) catalogueLines(name string) []string {
	return readLines(e.opts.Catalogue, name)
}

// maxFile limits the files to read, in bytes.
const maxFile = 4 << 20

func readLines(from fs.FS, name string) []string {
	info, err := fs.Stat(from, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	data, err := fs.ReadFile(from, name)
	if err != nil {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// lineText returns a redacted and shortened line.
func (e *explainer) lineText(lines []string, line int) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	text := strings.TrimSpace(lines[line-1])
	if r := []rune(text); len(r) > 160 {
		text = string(r[:160]) + "…"
	}
	return redact.Text(text)
}

// findInYAML finds a field in YAML or a template of it: first the document of the object, then one
// key below the other. exact reports whether the whole path was found; otherwise line is that of
// the deepest key.
func findInYAML(lines []string, ref change.Ref, list steps) (line int, exact bool) {
	start, end := documentLines(lines, ref)
	if start < 0 {
		return 0, false
	}
	line, indent, at := start+1, -1, start
	for _, s := range list {
		key := s.key
		if s.isItem() {
			if s.name == "" {
				return line, false
			}
			if i := itemLine(lines[at:end], s, indent); i >= 0 {
				at += i
				line, indent = at+1, indentation(lines[at])-1
				continue
			}
			return line, false
		}
		found := -1
		for i := at; i < end; i++ {
			text := lines[i]
			if isBlank(text) {
				continue
			}
			depth := indentation(text)
			if i > at && depth <= indent && !strings.HasPrefix(strings.TrimSpace(text), "- ") {
				break
			}
			if depth > indent && hasKey(text, key) {
				found = i
				break
			}
		}
		if found < 0 {
			return line, false
		}
		at, line, indent = found, found+1, indentation(lines[found])
	}
	return line, true
}

// documentLines finds the lines of an object by its kind, and by its name if it is literal.
func documentLines(lines []string, ref change.Ref) (start, end int) {
	start = -1
	var fits [][2]int
	from := 0
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && strings.TrimSpace(lines[i]) != "---" {
			continue
		}
		kind, name := false, false
		for _, text := range lines[from:i] {
			text = strings.TrimSpace(text)
			kind = kind || text == "kind: "+ref.Kind
			name = name || strings.TrimPrefix(text, "- ") == "name: "+ref.Name
		}
		if kind && name {
			return from, i
		}
		if kind {
			fits = append(fits, [2]int{from, i})
		}
		from = i + 1
	}
	if len(fits) == 1 {
		return fits[0][0], fits[0][1]
	}
	return -1, -1
}

func isBlank(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "{{")
}

// indentation returns the indentation of a line. The dash of an item counts as space, as the item's
// fields have the same depth.
func indentation(text string) int {
	depth := len(text) - len(strings.TrimLeft(text, " "))
	for rest := text[depth:]; strings.HasPrefix(rest, "- "); rest = text[depth:] {
		depth += 2
	}
	return depth
}

func hasKey(text, key string) bool {
	text = strings.TrimSpace(text)
	for strings.HasPrefix(text, "- ") {
		text = text[2:]
	}
	for _, form := range []string{key, `"` + key + `"`, `'` + key + `'`} {
		if rest, ok := strings.CutPrefix(text, form); ok && strings.HasPrefix(rest, ":") {
			return true
		}
	}
	return false
}

// itemLine finds a list item by its identifying field in the lines after the list's key.
func itemLine(lines []string, s step, indent int) int {
	for i, text := range lines {
		if isBlank(text) || i == 0 {
			continue
		}
		if indentation(text) <= indent && !strings.HasPrefix(strings.TrimSpace(text), "- ") {
			return -1
		}
		trimmed := strings.TrimSpace(text)
		for strings.HasPrefix(trimmed, "- ") {
			trimmed = trimmed[2:]
		}
		value, ok := strings.CutPrefix(trimmed, s.name+":")
		if ok && strings.Trim(strings.TrimSpace(value), `"'`) == s.text {
			// The item's fields may precede its name.
			for j := i; j > 0; j-- {
				if strings.HasPrefix(strings.TrimSpace(lines[j]), "- ") && indentation(lines[j]) == indentation(text) {
					return j
				}
			}
			return i
		}
	}
	return -1
}
