// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// findSyntaxFault finds the fault that makes a text invalid YAML. The parser often names a place
// many lines later. findSyntaxFault follows quotes, brackets and indentation from the start, and
// returns the first fault or nil.
func (d document) findSyntaxFault() *problem {
	var s yamlScan
	number := d.offset
	for line := range strings.Lines(string(d.data)) {
		number++
		if p := s.scanLine(number, strings.TrimRight(line, "\r\n")); p != nil {
			return p
		}
	}
	return s.checkEnd()
}

const conflictMessage = "a merge conflict was left here: keep the correct lines, and remove the lines that begin with <<<<<<<, ======= and >>>>>>>"

// conflictMarkerPattern matches the conflict markers that a merge leaves in a file.
var conflictMarkerPattern = regexp.MustCompile(`^(<<<<<<<|>>>>>>>|\|\|\|\|\|\|\|)( |$)|^=======$`)

// Patterns of lines.
var (
	fieldStartPattern        = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s\-?:,\[\]{}#&*!|>'"%@` + "`" + `](?:[^:#]|:\S|\S#)*|-[^\s:][^:#]*)\s*:(?:\s|$)`)
	blockScalarPattern       = regexp.MustCompile(`(?:^|[\s:-])[|>][-+0-9]*\s*(?:#.*)?$`)
	missingDashSpacePattern  = regexp.MustCompile(`^-["'\w{\[][^\s]*:?(?:\s|$)`)
	missingColonSpacePattern = regexp.MustCompile(`^[\w./-]+:[^\s:/]`)
	nodePropertiesPattern    = regexp.MustCompile(`^(?:[&!]\S*\s+)+`)
)

// linePosition is a place in a file. It holds a byte offset, because computing a column walks over
// the line.
type linePosition struct {
	line int
	text string
	byte int
}

func (a linePosition) problem(message string) *problem {
	return &problem{a.line, columnOf(a.text, a.byte), message}
}

// yamlScan holds the quotes, brackets and blocks that are open at the end of a line.
type yamlScan struct {
	quote          byte         // 0 for none
	quoteStart     linePosition // the opening quote
	swallowedField linePosition // the first line inside the quotes that looks like a field
	brackets       []byte
	bracketStarts  []linePosition
	// openColumns are the columns where open fields and items begin, from 0 and ascending.
	openColumns []int
	// hasInlineValue reports whether the last field or item has a value on its line, so that
	// nothing can be nested below it.
	hasInlineValue bool
	// blockScalarColumn is the column of the field or item that a block scalar belongs to, or -1.
	blockScalarColumn int
	// blockScalarLine is the line of that field; it is 0 for an item, and once the block has a
	// line.
	blockScalarLine int
	// hasContent reports whether any line had content.
	hasContent bool
}

// isOpenColumn reports whether fields or items of an open parent begin in a column.
func (s *yamlScan) isOpenColumn(column int) bool {
	_, found := slices.BinarySearch(s.openColumns, column)
	return found
}

func columnOf(text string, i int) int { return utf8.RuneCountInString(text[:i]) + 1 }

func (s *yamlScan) scanLine(number int, text string) *problem {
	if conflictMarkerPattern.MatchString(text) {
		return &problem{number, 1, conflictMessage}
	}
	if !s.hasContent {
		s.blockScalarColumn = -1
	}
	indent := len(text) - len(strings.TrimLeft(text, " "))
	rest := text[indent:]
	if s.quote != 0 || len(s.brackets) > 0 {
		if s.quote != 0 && s.swallowedField.line == 0 && fieldStartPattern.MatchString(strings.TrimPrefix(rest, "- ")) {
			s.swallowedField = linePosition{number, text, indent}
		}
		if len(s.brackets) > 0 && s.quote == 0 && s.isOpenColumn(indent) && fieldStartPattern.MatchString(rest) && !strings.ContainsAny(rest[:1], `"'`) {
			// a field of the parent object follows before the bracket closes
			return s.unclosedProblem()
		}
		return s.scanFlow(number, text, 0)
	}
	switch {
	case strings.TrimSpace(rest) == "":
		return nil
	case s.blockScalarColumn >= 0 && indent > s.blockScalarColumn:
		s.blockScalarLine = 0
		return nil
	case s.blockScalarLine > 0 && indent == s.blockScalarColumn && strings.HasPrefix(rest, "- "):
		return &problem{number, indent + 1, fmt.Sprintf("the block of text of line %d begins here without indentation: indent its lines deeper than the name of the field", s.blockScalarLine)}
	case rest[0] == '#' || rest[0] == '%' && !s.hasContent:
		return nil
	}
	s.blockScalarColumn, s.blockScalarLine, s.hasContent = -1, 0, true
	if p := findMisleadingCharacter(number, text, indent); p != nil {
		return p
	}
	return s.scanBlockLine(number, text, indent)
}

// tabIndentMessage needs no prefix to say that the text is invalid YAML.
const tabIndentMessage = "a tab indents the line; YAML allows only spaces"

// findMisleadingCharacter finds characters that only look like a space, and typographic quotes
// where YAML needs its own.
func findMisleadingCharacter(number int, text string, indent int) *problem {
	for i, r := range text {
		name, typographic := invisibleCharacters[r], strings.ContainsRune("“”„‘’«»", r)
		if name == "" && !typographic {
			continue
		}
		before := strings.TrimRight(text[:i], " ")
		atStart := before == "" || strings.HasSuffix(before, ":") || strings.HasSuffix(before, "-")
		switch {
		case r == '\t' && i <= indent:
			return &problem{number, columnOf(text, i), tabIndentMessage}
		case r == '\t' || !atStart:
		case typographic:
			return &problem{number, columnOf(text, i), `YAML does not accept these quotes; write " or '`}
		default:
			return &problem{number, columnOf(text, i), name + " stands where YAML needs a space; replace it"}
		}
	}
	return nil
}

// invisibleCharacters lists characters that look like a space or like nothing.
var invisibleCharacters = map[rune]string{
	'\t': "a tab", '\u00a0': "a no-break space (U+00A0)", '\u2007': "a figure space (U+2007)", '\u202f': "a narrow no-break space (U+202F)", '\u3000': "an ideographic space (U+3000)",
	'\u2002': "an en space (U+2002)", '\u2003': "an em space (U+2003)", '\u2009': "a thin space (U+2009)", '\u200a': "a hair space (U+200A)",
	'\u200b': "a zero-width space (U+200B)", '\u200c': "a zero-width non-joiner (U+200C)", '\u200d': "a zero-width joiner (U+200D)",
	'\u2060': "a word joiner (U+2060)", '\ufeff': "a byte order mark (U+FEFF)", '\u00ad': "a soft hyphen (U+00AD)",
	'\u2028': "a line separator (U+2028)", '\u2029': "a paragraph separator (U+2029)", '\u0085': "a next-line character (U+0085)",
}

// scanBlockLine reads a line outside quotes and brackets.
func (s *yamlScan) scanBlockLine(number int, text string, indent int) *problem {
	begin, dashes := indent, 0
	for strings.HasPrefix(text[begin:], "- ") || text[begin:] == "-" {
		if dashes == 0 {
			if p := s.checkIndentation(number, begin, true); p != nil {
				return p
			}
		} else {
			s.openColumns = append(s.openColumns, begin)
		}
		dashes++
		after := strings.TrimLeft(text[begin+1:], " ")
		begin = len(text) - len(after)
		s.hasInlineValue = false
	}
	rest := text[begin:]
	key := fieldStartPattern.FindString(rest)
	switch {
	case rest == "" || rest[0] == '#':
		return nil
	case key == "" && missingDashSpacePattern.MatchString(rest) && !strings.HasPrefix(rest, "---") && (strings.Contains(rest, ":") || !s.hasInlineValue) && !isNegativeNumber(rest):
		return &problem{number, columnOf(text, begin), `a space is missing after the dash: an item of a list has the form "- VALUE"`}
	case key == "" && missingColonSpacePattern.MatchString(rest) && dashes == 0:
		return &problem{number, columnOf(text, begin+strings.IndexByte(rest, ':')), `a space is missing after the colon: a field has the form "NAME: VALUE"`}
	case key == "" && dashes == 0 && s.isOpenColumn(begin) && !strings.ContainsAny(rest[:1], "?{[\"'&*!|>"):
		return &problem{number, columnOf(text, begin), `a colon is missing: a field has the form "NAME: VALUE", and an item of a list "- VALUE"`}
	case key == "":
		return s.scanValue(number, text, begin, indent)
	}
	if strings.HasPrefix(key, "-") && dashes == 0 && len(key) > 1 {
		return &problem{number, columnOf(text, begin), `a space is missing after the dash: an item of a list has the form "- VALUE"`}
	}
	if dashes > 0 {
		s.openColumns = append(s.openColumns, begin)
	} else if p := s.checkIndentation(number, begin, false); p != nil {
		return p
	}
	p := s.scanValue(number, text, begin+len(strings.TrimRight(key, " \t")), begin)
	if s.blockScalarColumn >= 0 {
		s.blockScalarLine = number
	}
	return p
}

// isNegativeNumber reports whether a text that begins with a dash is a negative number.
func isNegativeNumber(text string) bool { return len(text) > 1 && text[1] >= '0' && text[1] <= '9' }

// checkIndentation compares the column of a field or item with the open columns.
func (s *yamlScan) checkIndentation(number, begin int, dash bool) *problem {
	deepest := -1
	if len(s.openColumns) > 0 {
		deepest = s.openColumns[len(s.openColumns)-1]
	}
	switch {
	case begin > deepest && s.hasInlineValue && deepest >= 0:
		return &problem{number, begin + 1, fmt.Sprintf("the line is indented by %s, but the field before it already has a value; align the fields of one object, here after %s", spaceCountText(begin), spaceCountText(deepest))}
	case begin > deepest:
		s.openColumns = append(s.openColumns, begin)
		return nil
	}
	open := slices.Clone(s.openColumns)
	for len(s.openColumns) > 0 && s.openColumns[len(s.openColumns)-1] > begin {
		s.openColumns = s.openColumns[:len(s.openColumns)-1]
	}
	if len(s.openColumns) > 0 && s.openColumns[len(s.openColumns)-1] == begin {
		return nil
	}
	var columns []string
	for _, level := range open[max(0, len(open)-4):] {
		columns = append(columns, fmt.Sprint(level))
	}
	return &problem{number, begin + 1, fmt.Sprintf("the line is indented by %s, where no field or list is open; those before it are indented by %s", spaceCountText(begin), strings.Join(slices.Compact(columns), ", "))}
}

func spaceCountText(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}

// scanValue reads the text after a field name or dash; begin is the column of that field or item.
func (s *yamlScan) scanValue(number int, text string, from, begin int) *problem {
	rest := strings.TrimLeft(text[from:], " \t")
	rest = rest[len(nodePropertiesPattern.FindString(rest)):]
	from = len(text) - len(rest)
	s.hasInlineValue = rest != "" && rest[0] != '#' && rest[0] != '&' && rest[0] != '!'
	switch {
	case !s.hasInlineValue:
		return nil
	case blockScalarPattern.MatchString(rest) && (rest[0] == '|' || rest[0] == '>'):
		s.blockScalarColumn = begin
		return nil
	case strings.ContainsRune(`"'[{`, rune(rest[0])):
		return s.scanFlow(number, text, from)
	case strings.ContainsRune("@`%", rune(rest[0])):
		return &problem{number, columnOf(text, from), fmt.Sprintf("text that begins with %c needs quotes", rest[0])}
	}
	plain, _, _ := strings.Cut(rest, " #")
	if i := strings.Index(plain, ": "); i >= 0 {
		return &problem{number, columnOf(text, from+i), `the value holds a colon and a space, which would begin another field; put the value in quotes, or begin a new line`}
	}
	return nil
}

// scanFlow reads quotes and brackets, starting at a byte of the line.
func (s *yamlScan) scanFlow(number int, text string, from int) *problem {
	start := from
	for i := from; i < len(text); i++ {
		c := text[i]
		switch {
		case s.quote == '"' && c == '\\':
			i++
		case s.quote != 0 && c == s.quote:
			if c == '\'' && i+1 < len(text) && text[i+1] == '\'' {
				i++
				continue
			}
			s.quote, start = 0, i+1
			if p := s.checkTextAfter(number, text, i+1); p != nil {
				return p
			}
			s.swallowedField = linePosition{}
		case s.quote != 0:
		case c == '#' && (i == 0 || text[i-1] == ' '):
			return nil
		case (c == '"' || c == '\'') && strings.TrimLeft(text[start:i], " ,:[{") == "":
			s.quote, s.quoteStart, s.swallowedField = c, linePosition{number, text, i}, linePosition{}
		case c == '[' || c == '{':
			s.brackets, s.bracketStarts, start = append(s.brackets, c), append(s.bracketStarts, linePosition{number, text, i}), i+1
		case c == ']' || c == '}':
			if len(s.brackets) == 0 {
				continue
			}
			last := len(s.brackets) - 1
			if open := s.brackets[last]; (open == '[') != (c == ']') {
				return &problem{number, columnOf(text, i), fmt.Sprintf("%c does not close %c of line %d", c, open, s.bracketStarts[last].line)}
			}
			s.brackets, s.bracketStarts, start = s.brackets[:last], s.bracketStarts[:last], i+1
			if p := s.checkTextAfter(number, text, i+1); p != nil {
				return p
			}
		case c == ',':
			start = i + 1
		case c == ':' && i+1 < len(text) && text[i+1] == ' ':
			start = i + 1
		}
	}
	return nil
}

// checkTextAfter reports text that follows a value in quotes or brackets.
func (s *yamlScan) checkTextAfter(number int, text string, from int) *problem {
	rest := strings.TrimLeft(text[from:], " \t")
	if rest == "" || rest[0] == '#' || strings.ContainsRune(",:", rune(rest[0])) && len(s.brackets) > 0 || strings.ContainsRune("]}", rune(rest[0])) && len(s.brackets) > 0 {
		return nil
	}
	if s.swallowedField.line > 0 {
		return s.unclosedProblem()
	}
	at := len(text) - len(rest)
	if len(s.brackets) > 0 {
		return &problem{number, columnOf(text, at), "a comma is missing between two values"}
	}
	return &problem{number, columnOf(text, at), "text follows the end of the value; put all of it in quotes, or remove it"}
}

// unclosedProblem reports an unclosed quote or bracket where it opens.
func (s *yamlScan) unclosedProblem() *problem {
	if s.quoteStart.line > 0 && (s.quote != 0 || s.swallowedField.line > 0) {
		return s.quoteStart.problem("the quote that opens here is not closed")
	}
	return s.bracketStarts[0].problem(fmt.Sprintf("the bracket %c that opens here is not closed", s.brackets[0]))
}

func (s *yamlScan) checkEnd() *problem {
	if s.quote != 0 || len(s.brackets) > 0 {
		return s.unclosedProblem()
	}
	return nil
}
