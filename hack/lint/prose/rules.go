// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of CONTRIBUTING.md.
const (
	maxWords        = 25  // words of a sentence
	maxCellWords    = 35  // words of a sentence in a table
	maxCellWidth    = 120 // characters of a table cell
	maxLineWidth    = 160 // characters of a line of Markdown outside of tables and code
	maxCommentWidth = 100 // columns of a line with a comment, a tab counted as four
	maxSubject      = 72  // characters of a commit subject
)

// A finding is one fault with its place.
type finding struct {
	file string
	line int
	rule string
	text string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.rule, f.text)
}

//go:embed patterns.txt
var patternLines string

// phrase is an unwanted turn with better words.
type phrase struct {
	pattern *regexp.Regexp
	better  string
}

var (
	// invertedSentencePattern matches a sentence that begins with a relative pronoun instead of a
	// subject.
	invertedSentencePattern = regexp.MustCompile(`(?i)^["'(*]*(` + alternatives("begin") + `)\b`)
	// invertedClausePattern matches such a clause.
	invertedClausePattern = regexp.MustCompile(`(?i)(?:[;:—]\s+|,\s+(?:and |or |but |nor )?|\((?:and |or )?)((` + alternatives("clause") + `)\b)`)
	phrases               = readPhrases()
	// negationPattern matches a noun, a form of "to be", "no" and another noun.
	negationPattern = regexp.MustCompile(`(?i)\b(\w+),? (is|are|was|were) no (\w+)`)
)

// patterns returns the patterns of one kind, in the order of the file.
func patterns(kind string) []string {
	var out []string
	for line := range strings.Lines(patternLines) {
		if pattern, found := strings.CutPrefix(strings.TrimSpace(line), kind+" "); found {
			out = append(out, pattern)
		}
	}
	return out
}

func alternatives(kind string) string { return strings.Join(patterns(kind), "|") }

func readPhrases() []phrase {
	var out []phrase
	for _, line := range patterns("turn") {
		at := strings.LastIndex(line, ": ")
		out = append(out, phrase{regexp.MustCompile(`(?i)\b` + line[:at]), line[at+2:]})
	}
	return out
}

// check returns the faults of the sentences of a passage.
func (p passage) check() []finding {
	var out []finding
	for i, s := range p.sentences() {
		report := func(rule, text string) {
			out = append(out, finding{file: p.file, line: s.line, rule: rule, text: text})
		}
		limit := maxWords
		if p.kind == cell {
			limit = maxCellWords
		}
		if n := countWords(s.text); n > limit {
			report("long-sentence", fmt.Sprintf("%d words (at most %d): %s", n, limit, s.text))
		}
		if found := invertedSentencePattern.FindString(s.text); found != "" && !(p.isContinuation && i == 0) {
			report("subject-first", fmt.Sprintf("begins with %q: %s", found, s.text))
		}
		if found := invertedClausePattern.FindStringSubmatch(s.text); found != nil {
			report("subject-first", fmt.Sprintf("a clause begins with %q: %s", found[1], s.text))
		}
		for _, t := range phrases {
			if found := t.pattern.FindString(s.text); found != "" {
				report("turn", fmt.Sprintf("%q (%s): %s", found, t.better, s.text))
			}
		}
		for _, found := range negationPattern.FindAllStringSubmatch(s.text, -1) {
			if !strings.EqualFold(found[1], "there") && found[3] != "longer" && found[3] != "more" {
				report("turn", fmt.Sprintf("%q (is not a): %s", found[0], s.text))
			}
		}
	}
	if p.kind == cell {
		for _, l := range p.lines {
			if n := utf8.RuneCountInString(l.text); n > maxCellWidth {
				out = append(out, finding{file: p.file, line: l.number, rule: "wide-cell",
					text: fmt.Sprintf("%d characters (at most %d): %s", n, maxCellWidth, l.text)})
			}
		}
	}
	return out
}
