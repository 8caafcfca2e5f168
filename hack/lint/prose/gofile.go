// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checkGo checks the comments, the names in doc comments and the messages of a Go file.
func checkGo(file string, raw []byte) ([]finding, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, raw, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing Go: %w", err)
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	lines := strings.Split(string(raw), "\n")
	var out []finding
	for _, group := range parsed.Comments {
		var text []line
		for _, c := range group.List {
			number := set.Position(c.Pos()).Line
			body := strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
			for i, l := range strings.Split(body, "\n") {
				text = append(text, line{number: number + i, text: strings.TrimPrefix(l, "//")})
				if width := lineWidth(lines[number+i-1]); width > maxCommentWidth && !isUnbreakable(l) {
					out = append(out, finding{file: file, line: number + i, rule: "wide-comment",
						text: fmt.Sprintf("%d columns (at most %d)", width, maxCommentWidth)})
				}
			}
		}
		for _, p := range paragraphs(file, text) {
			out = append(out, p.check()...)
		}
	}
	for _, decl := range parsed.Decls {
		out = append(out, checkDocs(set, file, decl)...)
	}
	if !strings.HasSuffix(file, "_test.go") {
		for _, p := range messages(set, file, parsed) {
			out = append(out, p.check()...)
		}
	}
	return out, nil
}

// lineWidth is the width of a line with a tab counted as four.
func lineWidth(text string) int { return utf8.RuneCountInString(text) + 3*strings.Count(text, "\t") }

// isUnbreakable reports whether a comment is one word, such as an address, or a directive.
func isUnbreakable(text string) bool {
	text = strings.TrimPrefix(text, "//")
	return isDirective(text) || len(strings.Fields(text)) <= 1
}

var directivePattern = regexp.MustCompile(`^(go:|\s?\+[a-zA-Z]+|lint:|nolint|export |line )`)

func isDirective(text string) bool { return directivePattern.MatchString(text) }

// paragraphs splits the lines of a comment into passages: code blocks and directives are left out,
// a list item is a separate passage.
func paragraphs(file string, text []line) []passage {
	var out []passage
	var current []line
	end := func() {
		if len(current) > 0 {
			out = append(out, passage{file: file, lines: current, kind: comment})
		}
		current = nil
	}
	inList := false
	for _, l := range text {
		body := strings.TrimPrefix(l.text, " ")
		trimmed := strings.TrimSpace(body)
		item := listItemPattern.MatchString(trimmed)
		indented := body != strings.TrimLeft(body, " \t")
		switch {
		case trimmed == "":
			end()
			inList = false
		case isDirective(l.text):
			end()
		case item:
			end()
			inList = true
			current = []line{{l.number, listItemPattern.ReplaceAllString(trimmed, "")}}
		case strings.HasPrefix(trimmed, "# "):
			end()
		case indented && !inList: // a code block
			end()
		default:
			current = append(current, line{l.number, trimmed})
		}
	}
	end()
	return out
}

var listItemPattern = regexp.MustCompile(`^([-*+]|\d+[.)]) `)

// checkDocs reports doc comments that do not begin with the name they document.
func checkDocs(set *token.FileSet, file string, decl ast.Decl) []finding {
	var out []finding
	check := func(doc *ast.CommentGroup, names ...string) {
		text := strings.TrimSpace(doc.Text())
		if doc == nil || text == "" || strings.HasPrefix(text, "Deprecated:") {
			return
		}
		for _, name := range names {
			if hasNamePrefix(text, name) {
				return
			}
		}
		first, _, _ := strings.Cut(text, "\n")
		out = append(out, finding{file: file, line: set.Position(doc.Pos()).Line, rule: "doc-name",
			text: fmt.Sprintf("the comment of %s does not begin with its name: %s", names[0], first)})
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.Name != "_" {
			check(d.Doc, d.Name.Name)
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		for _, spec := range d.Specs {
			doc, names := specDoc(spec)
			if names[0] == "_" {
				continue
			}
			check(doc, names...)
			if !d.Lparen.IsValid() { // The comment of a group says what its members share.
				check(d.Doc, names...)
			}
		}
	}
	return out
}

func specDoc(spec ast.Spec) (*ast.CommentGroup, []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Doc, []string{s.Name.Name}
	case *ast.ValueSpec:
		names := make([]string, len(s.Names))
		for i, name := range s.Names {
			names[i] = name.Name
		}
		return s.Doc, names
	}
	return nil, []string{"_"}
}

// hasNamePrefix reports whether a comment begins with a name, after an article at most.
func hasNamePrefix(text, name string) bool {
	for _, article := range []string{"", "A ", "An ", "The "} {
		rest, found := strings.CutPrefix(text, article+name)
		if found && (rest == "" || !isLetter(rest[0])) {
			return true
		}
	}
	return false
}

func isLetter(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// messages returns the string literals of a file that are running text. Parts that a plus joins are
// one text.
func messages(set *token.FileSet, file string, parsed *ast.File) []passage {
	var out []passage
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Field:
			if x.Type != nil {
				ast.Inspect(x.Type, visit)
			}
			return false // not its tag
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr, *ast.BasicLit:
			text, ok := literalText(x)
			if !ok {
				return true
			}
			number := set.Position(n.Pos()).Line
			out = append(out, splitMessage(file, number, text)...)
			return false
		}
		return true
	}
	ast.Inspect(parsed, visit)
	return out
}

// literalText returns the text of a string literal or of several that a plus joins.
func literalText(n ast.Node) (string, bool) {
	switch x := n.(type) {
	case *ast.BasicLit:
		if x.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if x.Op != token.ADD {
			return "", false
		}
		left, ok := literalText(x.X)
		if !ok {
			return "", false
		}
		right, ok := literalText(x.Y)
		return left + right, ok
	}
	return "", false
}

var adjacentWordsPattern = regexp.MustCompile(`[a-z]{2,} [a-z]{1,}`)

// splitMessage makes passages of the paragraphs of a message: indented lines are examples, and a
// text without two adjacent words is skipped.
func splitMessage(file string, number int, text string) []passage {
	var out []passage
	for _, paragraph := range strings.Split(text, "\n\n") {
		var lines []line
		for _, l := range strings.Split(paragraph, "\n") {
			if strings.HasPrefix(l, " ") && len(lines) == 0 && strings.Contains(paragraph, "\n") || strings.HasPrefix(l, "\t") {
				continue
			}
			if adjacentWordsPattern.MatchString(l) {
				lines = append(lines, line{number, strings.TrimSpace(l)})
			}
		}
		if len(lines) > 0 {
			out = append(out, passage{file: file, lines: lines, kind: message, isContinuation: strings.HasPrefix(paragraph, " ")})
		}
	}
	return out
}
