package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of CONTRIBUTING.md.
const (
	maxWords        = 25  // of a sentence
	maxCellWords    = 35  // of a sentence in a table
	maxCellWidth    = 120 // characters of a table cell
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

var (
	// inverted begins a sentence or a clause with a relative pronoun instead of a subject.
	inverted = regexp.MustCompile(`(?i)^["'(*]*(what|who|whoever|whom|whose|of|those (that|which|who|of)|one (that|which|who|of)|` +
		`that (is|was|are|were|has|had|of|does|did|can|may|must|will|would|needs|makes|takes|goes|says|means|which|who))\b`)
	clause = regexp.MustCompile(`(?i)(?:[;:—]\s+|,\s+(?:and |or |but |nor )?|\((?:and |or )?)` +
		`((what|who|whoever|of which|of whom|of those|that of|that is(?:,|$)|those (that|which|who|of)|one (that|which|who)))\b`)
	turns = []turn{
		{`look(s|ed|ing)? at`, "read, check, examine"},
		{`(go|goes|going|gone|went) on (with|to)\b`, "continue"},
		{`(is|are|was|were|be|been|being) told\b`, "is reported, learns"},
		{`(is|are|was|were|be|been|being) kept\b`, "stays, is stored, is maintained"},
		{`(is|are|was|were|be|been|being) gone\b`, "no longer exists"},
		{`let(s|ting)? (\w+ )?(pass|through)\b`, "approve, allow"},
		{`kept back\b`, "held"},
		{`is there($|[.,;:)])`, "exists"},
		{`as (it|they) stands?\b`, "unchanged"},
		{`(tried|tries|looked up) again\b`, "retry, repeat"},
		{`taken up\b`, "accepted, started"},
		{`of which\b`, "name the subject"},
		{`by whom\b`, "name the subject"},
		{`whoever\b`, "name the subject"},
		{`otherwise than\b`, "differently from"},
		{`in the place of\b`, "instead of, replaces"},
		{`the same (as|like) before\b`, "unchanged"},
		{`no more\b($|[.,;:)])`, "no longer"},
		{`nothing else than\b`, "only"},
		{`so that none\b`, "name the subject"},
		{`the ones? (of|which)\b`, "name the thing"},
	}
	isNo = regexp.MustCompile(`(?i)\b(\w+),? (is|are|was|were) no (\w+)`)
)

// A turn is a phrase that this project does not use, with better ones.
type turn struct {
	pattern string
	better  string
}

var compiledTurns = func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(turns))
	for i, t := range turns {
		out[i] = regexp.MustCompile(`(?i)\b` + t.pattern)
	}
	return out
}()

// check returns the faults of the sentences of a passage.
func (p passage) check() []finding {
	var out []finding
	for _, s := range p.sentences() {
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
		if found := inverted.FindString(s.text); found != "" {
			report("subject-first", fmt.Sprintf("begins with %q: %s", found, s.text))
		}
		if found := clause.FindStringSubmatch(s.text); found != nil {
			report("subject-first", fmt.Sprintf("a clause begins with %q: %s", found[1], s.text))
		}
		for i, t := range compiledTurns {
			if found := t.FindString(s.text); found != "" {
				report("turn", fmt.Sprintf("%q (%s): %s", found, turns[i].better, s.text))
			}
		}
		for _, found := range isNo.FindAllStringSubmatch(s.text, -1) {
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
