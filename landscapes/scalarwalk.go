// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"strconv"
	"strings"
	"unicode"
)

// scalarPosition returns the place in a YAML file of a rune of a text, which is the scalar at a
// place, in any style. If the file does not show the text (an alias, an unknown escape), it returns
// the place of the scalar.
func scalarPosition(source []byte, line, column int, text []rune, offset int) (int, int) {
	if len(source) == 0 || line < 1 || column < 1 {
		return line, column
	}
	s := scalarWalk{source: []rune(string(source))}
	for l := 1; l < line && s.at < len(s.source); s.at++ {
		if s.source[s.at] == '\n' {
			l++
		}
	}
	s.at += column - 1
	s.skipToText()
	for _, r := range text[:min(offset, len(text))] {
		if !unicode.IsSpace(r) && !s.skip(r) {
			return line, column
		}
	}
	if offset < len(text) && !unicode.IsSpace(text[offset]) && !s.skipTo(text[offset]) {
		return line, column
	}
	l, c := 1, 1
	for _, r := range s.source[:min(s.at, len(s.source))] {
		if c++; r == '\n' {
			l, c = l+1, 1
		}
	}
	return l, c
}

// scalarWalk follows the source of a YAML scalar along its text. White space is skipped on both
// sides, because YAML folds and indents it.
type scalarWalk struct {
	source []rune
	at     int
	// quote is the quote character of the scalar, or 0.
	quote rune
}

func (s *scalarWalk) peek(ahead int) rune {
	if i := s.at + ahead; i >= 0 && i < len(s.source) {
		return s.source[i]
	}
	return 0
}

// skipToText moves to the first character of the text.
func (s *scalarWalk) skipToText() {
	for s.peek(0) == '!' || s.peek(0) == '&' { // a tag, an anchor
		for s.peek(0) != 0 && !unicode.IsSpace(s.peek(0)) {
			s.at++
		}
		s.skipSpace()
	}
	switch s.peek(0) {
	case '|', '>':
		for s.peek(0) != 0 && s.peek(0) != '\n' {
			s.at++
		}
	case '\'', '"':
		s.quote = s.peek(0)
		s.at++
	}
}

func (s *scalarWalk) skipSpace() {
	for unicode.IsSpace(s.peek(0)) {
		s.at++
	}
}

// readCharacter returns the character at the current place and its length in runes. ok is false for
// an unknown escape.
func (s *scalarWalk) readCharacter() (r rune, length int, ok bool) {
	switch {
	case s.quote == '\'' && s.peek(0) == '\'':
		return '\'', 2, s.peek(1) == '\''
	case s.quote != '"' || s.peek(0) != '\\':
		return s.peek(0), 1, s.peek(0) != 0
	}
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[s.peek(1)]
	if digits > 0 && s.at+2+digits <= len(s.source) {
		code, err := strconv.ParseUint(string(s.source[s.at+2:s.at+2+digits]), 16, 32)
		return rune(code), 2 + digits, err == nil
	}
	switch next := s.peek(1); {
	case strings.ContainsRune(`"\/`, next):
		return next, 2, true
	case strings.ContainsRune("ntrvfNLP_ \t\n", next):
		// white space, or an escaped line break
		return ' ', 2, true
	}
	return 0, 0, false
}

// skipTo moves to the next character that is not white space, which must be want.
func (s *scalarWalk) skipTo(want rune) bool {
	for {
		s.skipSpace()
		r, length, ok := s.readCharacter()
		switch {
		case !ok:
			return false
		case unicode.IsSpace(r):
			s.at += length
		default:
			return r == want
		}
	}
}

// skip moves past a character of the text.
func (s *scalarWalk) skip(want rune) bool {
	if !s.skipTo(want) {
		return false
	}
	_, length, _ := s.readCharacter()
	s.at += length
	return true
}
