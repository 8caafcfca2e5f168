// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// checkMarkdown checks a Markdown file: its sentences, one of them a line, and its tables.
func checkMarkdown(file string, raw []byte) []finding {
	var out []finding
	var current passage
	end := func() {
		if len(current.lines) > 0 {
			out = append(out, current.check()...)
			if current.kind == markdown {
				out = append(out, current.checkLines()...)
			}
		}
		current = passage{file: file, kind: markdown}
	}
	end()
	fence := ""
	html := false
	all := strings.Split(string(raw), "\n")
	for i, text := range all {
		if i < frontMatter(all) {
			continue
		}
		l := line{i + 1, strings.TrimSpace(text)}
		if mark := fenceOf(l.text); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			end()
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			continue
		}
		switch {
		case fence != "":
		case strings.HasPrefix(l.text, "<!--") || strings.HasPrefix(l.text, "<"):
			end()
			html = !strings.Contains(l.text, ">")
		case html:
			html = !strings.Contains(l.text, ">")
		case l.text == "":
			end()
		case strings.HasPrefix(l.text, "#"):
			end()
			current.kind = heading
			current.lines = []line{{l.number, strings.TrimLeft(l.text, "# ")}}
			end()
		case strings.HasPrefix(l.text, "|"):
			end()
			for _, part := range cells(l.text) {
				current.kind = cell
				current.lines = []line{{l.number, part}}
				end()
			}
		case listItemPattern.MatchString(l.text):
			end()
			current.lines = []line{{l.number, listItemPattern.ReplaceAllString(l.text, "")}}
		case len(current.lines) == 0 && strings.HasPrefix(text, "    "): // a code block
		default:
			current.lines = append(current.lines, line{l.number, strings.TrimPrefix(l.text, "> ")})
		}
	}
	end()
	return out
}

// frontMatter counts the lines of the YAML block at the begin of a page.
func frontMatter(lines []string) int {
	if lines[0] != "---" {
		return 0
	}
	return slices.Index(lines[1:], "---") + 2
}

// relativeLinkPattern matches a link to a file; its first group is the path without the anchor.
var relativeLinkPattern = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)

// checkLines reports wide lines, links to files that do not exist, and lines with more or less than
// one sentence.
func (p passage) checkLines() []finding {
	var out []finding
	for i, l := range p.lines {
		if n := utf8.RuneCountInString(l.text); n > maxLineWidth {
			out = append(out, finding{p.file, l.number, "wide-line", fmt.Sprintf("%d characters (at most %d): %s", n, maxLineWidth, l.text)})
		}
		for _, target := range relativeLinkPattern.FindAllStringSubmatch(codeSpanPattern.ReplaceAllString(l.text, ""), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(p.file), target[1])); err != nil {
				out = append(out, finding{p.file, l.number, "link", "no file " + target[1] + ": " + l.text})
			}
		}
		one := passage{file: p.file, lines: []line{l}}
		found := one.sentences()
		if len(found) > 1 {
			out = append(out, finding{p.file, l.number, "one-sentence", fmt.Sprintf("%d sentences in a line: %s", len(found), l.text)})
			continue
		}
		fields := strings.Fields(plainText(l.text))
		if i+1 < len(p.lines) && len(fields) > 0 && !isSentenceEnd(fields[len(fields)-1]) {
			out = append(out, finding{p.file, l.number, "one-sentence", "the sentence continues in the next line: " + l.text})
		}
	}
	return out
}

var fencePattern = regexp.MustCompile("^(```+|~~~+)")

func fenceOf(text string) string { return fencePattern.FindString(text) }

// cells splits the row of a table at the bars outside of code.
func cells(row string) []string {
	var out []string
	var b strings.Builder
	code := false
	for i, r := range row {
		switch {
		case r == '`':
			code = !code
			b.WriteRune(r)
		case r == '|' && !code && (i == 0 || row[i-1] != '\\'):
			if text := strings.TrimSpace(b.String()); strings.Trim(text, "-: ") != "" {
				out = append(out, text)
			}
			b.Reset()
		default:
			b.WriteRune(r)
		}
	}
	return out
}

// checkComments checks the comments of a file whose comments begin with a marker and end with the
// line: CUE, YAML, shell.
func checkComments(file string, raw []byte, marker string) []finding {
	var out []finding
	var text []line
	end := func() {
		for _, p := range paragraphs(file, text) {
			out = append(out, p.check()...)
		}
		text = nil
	}
	for i, l := range strings.Split(string(raw), "\n") {
		body, found := strings.CutPrefix(strings.TrimSpace(l), marker)
		if !found || strings.HasPrefix(body, "!") {
			end()
			continue
		}
		if width := lineWidth(l); width > maxCommentWidth && len(strings.Fields(body)) > 1 {
			out = append(out, finding{file: file, line: i + 1, rule: "wide-comment",
				text: fmt.Sprintf("%d columns (at most %d)", width, maxCommentWidth)})
		}
		text = append(text, line{i + 1, body})
	}
	end()
	return out
}
