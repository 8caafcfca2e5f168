// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"unicode"
)

// A passage is running text: a paragraph, a list item, a table cell or a message.
type passage struct {
	file  string
	lines []line
	kind  kind
	// isContinuation means that the text continues a sentence of another literal.
	isContinuation bool
}

// A line is one line of a passage without its comment marker.
type line struct {
	number int
	text   string
}

type kind int

const (
	comment kind = iota
	markdown
	heading
	cell
	message
)

// A sentence is one sentence of a passage with the number of the line on which it begins.
type sentence struct {
	line int
	text string
}

var (
	codeSpanPattern   = regexp.MustCompile("`[^`]*`")
	linkPattern       = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	formatVerbPattern = regexp.MustCompile(`%[-+# 0]*[0-9.]*(\[\d+\])?[a-zA-Z]`)
	// abbreviationPattern ends with a period that ends no sentence.
	abbreviationPattern = regexp.MustCompile(`(?i)(^|[\s(])(e\.g|i\.e|vs|cf|etc|no|approx|[a-z])\.$`)
)

// plainText replaces code and format verbs with one word each and links with their text. Their
// content is not prose, and a period in it ends no sentence.
func plainText(text string) string {
	text = codeSpanPattern.ReplaceAllString(text, "CODE")
	text = linkPattern.ReplaceAllString(text, "$1")
	text = strings.ReplaceAll(text, "%%", "percent")
	text = formatVerbPattern.ReplaceAllString(text, "VALUE")
	return strings.NewReplacer("**", "", "__", "").Replace(text)
}

// sentences splits a passage at periods, question marks and exclamation marks that white space
// follows.
func (p passage) sentences() []sentence {
	var out []sentence
	var words []string
	start := 0
	end := func() {
		if len(words) > 0 {
			out = append(out, sentence{line: start, text: strings.Join(words, " ")})
		}
		words = nil
	}
	for _, l := range p.lines {
		for _, word := range strings.Fields(plainText(l.text)) {
			if len(words) == 0 {
				start = l.number
			}
			words = append(words, word)
			if isSentenceEnd(word) {
				end()
			}
		}
	}
	end()
	return out
}

func isSentenceEnd(word string) bool {
	bare := strings.TrimRight(word, `"')*_”`)
	if bare == "" || abbreviationPattern.MatchString(bare) {
		return false
	}
	last := bare[len(bare)-1]
	return last == '.' && !strings.HasSuffix(bare, "..") || last == '!' || last == '?'
}

// countWords counts the words of a sentence; a word has a letter or a digit.
func countWords(text string) int {
	count := 0
	for _, word := range strings.Fields(text) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			count++
		}
	}
	return count
}
