// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// namedValue is the value of a name in a text.
type namedValue struct {
	begin, end int
	// isUnbounded is set if the value is in lines with an unknown end.
	isUnbounded bool
	// isAfterColon is set for a value after a colon; before is the text before the name in its
	// line.
	isAfterColon bool
	textBefore   string
}

// findNamedValue finds the value of the name s[begin:end]. It ends as its format requires, or else
// with the line. It is empty if the name has no value.
func findNamedValue(s string, begin, end int) namedValue {
	line := s[strings.LastIndexByte(s[:begin], '\n')+1 : begin]
	dashes := strings.TrimRight(line, "-")
	flag := dashes != line && (dashes == "" || strings.IndexByte(" \t\"'`([{,|&;=", dashes[len(dashes)-1]) >= 0)
	if flag && strings.HasSuffix(dashes, ",") && !strings.HasSuffix(line, "--") {
		flag = false // a list item without blanks: -a,-b
	}
	i := end
	for i < len(s) && strings.IndexByte(`\"']`, s[i]) >= 0 && s[i:min(len(s), i+2)] != "\\\n" {
		i++
	}
	closed := s[end:i]
	j := skipChars(s, i, " \t")
	sign := assignmentSignPattern.FindString(s[j:min(len(s), j+3)])
	switch {
	case sign == "" && flag:
		return flagValue(s, i, j)
	case sign == "":
		return lineValue(s, s[begin:end], line, j)
	case sign == ":" && closed == "" && strings.HasSuffix(line, "/") && j+1 < len(s) && strings.IndexByte(" \t\r\n", s[j+1]) < 0:
		return namedValue{} // the tag of an image
	case strings.HasPrefix(closed, `"`) && strings.HasSuffix(line, `"$`):
		return namedValue{} // "$pass" = x compares, it does not set
	case closed == "" && metricSelectorPattern.MatchString(line):
		return namedValue{} // a label in a Prometheus query
	}
	v := namedValue{begin: skipChars(s, j+len(sign), " \t"), isAfterColon: sign == ":", textBefore: line}
	if next := strings.TrimPrefix(s[v.begin:], "\r"); strings.HasPrefix(next, "\n") {
		rest := strings.TrimLeft(next, " \t\r\n")
		if rest == "" || strings.IndexByte("\"'[{", rest[0]) < 0 {
			return namedValue{} // headings found it, or it does not exist
		}
		v.begin = len(s) - len(rest)
	}
	if v.begin >= len(s) {
		return namedValue{}
	}
	v.end, v.isUnbounded = v.findEnd(s, line, closed, sign, flag)
	return v
}

var (
	assignmentSignPattern = regexp.MustCompile(`^(?::=|=>|\?=|\+=|::|==|=~|:|=)`)
	// metricSelectorPattern matches the start of a selector in a query: name{label="x",
	metricSelectorPattern = regexp.MustCompile(`[a-zA-Z_:]\{(?:[a-z_]+(?:=|!=|=~|!~)"[^"]*",\s*)*$`)
	// linePrefixPattern matches text before a name that begins a line: list and comment marks,
	// keywords, types.
	linePrefixPattern = regexp.MustCompile(`^[ \t]*(?:(?:[-*#;]|//|--)[ \t]*)*(?:\{\{-?[ \t]*)?(?:(?:set|let|const|var|local|my|final|static|private|public|protected|val|def|string|String|char|auto|setx|\$env:)[ \t]*)*(?:[A-Za-z][A-Za-z0-9_.-]*[ \t]*[:=][ \t]+)?["'$\[]*$`)
	// shellPrefixPattern matches a prefix whose value extends to the next blank.
	shellPrefixPattern = regexp.MustCompile(`^[ \t]*(?:export|declare|readonly|local|env|ENV|ARG)[ \t]+(?:-[a-zA-Z]+[ \t]+)*$`)
	// nextAssignmentPattern matches the start of another assignment.
	nextAssignmentPattern = regexp.MustCompile(`[;&,|][ \t]?["']?[A-Za-z_][A-Za-z0-9_. -]*["']?[ \t]?[:=]`)
	// envProgramPattern matches a program with flags after its variables: A=x program -f.
	envProgramPattern = regexp.MustCompile(`^[^\s"']+[ \t]+[a-z./][^\s=]*(?:[ \t][^\n]*?)?[ \t]--?[a-zA-Z]`)
	// continuationPattern matches a sign that joins texts to one value.
	continuationPattern = regexp.MustCompile(`^[ \t]*(?:[+.?"'<]|\|\|)`)
	placeholderPattern  = regexp.MustCompile(`^<<[A-Z][A-Z0-9_]*>>`)
	blockSignPattern    = regexp.MustCompile(`^[|>][-+0-9]*[ \t]*(?:\r?\n|$)`)
)

// findEnd returns the end of the value.
func (v namedValue) findEnd(s, line, closed, sign string, flag bool) (end int, everything bool) {
	rest := s[v.begin:]
	lineEnd := len(rest)
	if n := strings.IndexByte(rest, '\n'); n >= 0 {
		lineEnd = n
	}
	for lineEnd < len(rest) && strings.HasSuffix(strings.TrimRight(rest[:lineEnd], "\r"), `\`) {
		n := strings.IndexByte(rest[lineEnd+1:], '\n')
		if n < 0 {
			lineEnd = len(rest)
			break
		}
		lineEnd += 1 + n
	}
	starts := linePrefixPattern.MatchString(line) && !flag
	switch {
	case strings.HasPrefix(rest, "<<") && !strings.HasPrefix(rest[min(2, len(rest)):], "<") && !placeholderPattern.MatchString(rest), blockSignPattern.MatchString(rest):
		return 0, true
	case strings.HasPrefix(rest, "{{"):
		if n := strings.Index(rest, "}}"); n >= 0 && !starts {
			return v.begin + n + 2, false
		}
		return v.begin + trimmedLength(rest[:lineEnd]), false
	case rest[0] == '[' || rest[0] == '{':
		n := valueLength(rest)
		return v.begin + n + wordLength(rest[n:], line), false
	case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
		if n := strings.Index(rest[3:], rest[:3]); n >= 0 {
			return v.begin + n + 6, false
		}
		return len(s), false
	case rest[0] == '`':
		if n := strings.IndexByte(rest[1:], '`'); n >= 0 {
			return v.begin + n + 2, false
		}
	}
	// Take all of a quoted text.
	if q := strings.TrimRight(line, "-"); closed == "" && q != "" && strings.IndexByte(quoteCharacters, q[len(q)-1]) >= 0 {
		if n := closingQuoteIndex(rest, q); n >= 0 {
			return v.begin + lengthBeforeAssignment(rest[:n]), false
		}
	}
	quoted := 0
	if q := strings.TrimLeft(rest, `\`); q != "" && strings.IndexByte(quoteCharacters, q[0]) >= 0 {
		if quoted = valueLength(rest); quoted == len(rest) && rest[len(rest)-1] != q[0] {
			quoted = 0 // no closing quote
		}
	}
	shell := flag || shellPrefixPattern.MatchString(line) || starts && sign == "=" && envProgramPattern.MatchString(rest[:lineEnd])
	switch {
	case quoted > 0 && !(starts && !shell && continuationPattern.MatchString(rest[quoted:max(quoted, lineEnd)])):
		return v.begin + quoted + wordLength(rest[quoted:], line), false
	case quoted > 0:
		return v.begin + max(quoted, trimmedLength(rest[:lineEnd])), false
	case starts && !shell, !flag && strings.HasPrefix(sign, ":") && len(s) > v.begin && s[v.begin-1] == ' ' && openBrackets(line) == "":
		return v.begin + lengthBeforeAssignment(rest[:trimmedLength(rest[:lineEnd])]), false
	}
	if opened := openBrackets(line); !flag && strings.HasPrefix(sign, ":") && strings.HasSuffix(opened, "{") {
		return v.begin + flowValueLength(rest[:trimmedLength(rest[:lineEnd])]), false
	}
	return v.begin + wordLength(rest, line), false
}

// flowValueLength returns the end of a value in braces.
func flowValueLength(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			if depth--; depth < 0 {
				return i
			}
		case ',':
			if depth == 0 && (i+1 == len(s) || s[i+1] == ' ' || nextAssignmentPattern.MatchString(s[i:])) {
				return i
			}
		}
	}
	return len(s)
}

// wordLength returns the length of a value up to the next blank outside quotes, or to the closing
// sign of an open quote or bracket.
func wordLength(s, before string) int {
	opened := openBrackets(before)
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n':
			return i
		case '\r':
			return i
		case '\\':
			if i+1 < len(s) && strings.IndexByte(quoteCharacters, s[i+1]) >= 0 && strings.ContainsAny(opened, quoteCharacters) {
				return i
			}
			i++
			if i+1 < len(s) && s[i] == '\n' {
				i += len(s[i+1:]) - len(strings.TrimLeft(s[i+1:], " \t"))
			}
		case '"', '\'', '`':
			if strings.IndexByte(opened, c) >= 0 {
				return i
			}
			if n := closingQuoteIndex(s[i+1:], string(c)); n >= 0 && !strings.Contains(s[i+1:i+1+n], "\n") {
				i += n + 1
			}
		case ',', ';', '&', '|':
			if i+1 == len(s) || strings.IndexByte(" \t\r\n", s[i+1]) >= 0 {
				return i
			}
			if at := nextAssignmentPattern.FindStringIndex(s[i:]); at != nil && at[0] == 0 {
				return i
			}
		case '<':
			if strings.HasPrefix(s[i:], "</") {
				return i
			}
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 && opened != "" {
				return i
			}
		}
	}
	return len(s)
}

// openBrackets returns the quotes and brackets that are open at the end of a text.
func openBrackets(before string) string {
	var out []byte
	for i := 0; i < len(before); i++ {
		c := before[i]
		last := byte(0)
		if len(out) > 0 {
			last = out[len(out)-1]
		}
		inQuotes := last != 0 && strings.IndexByte("\"'`", last) >= 0
		switch {
		case c == '\\' && !(i+1 < len(before) && before[i+1] == '"'):
			i++
		case inQuotes && c == last:
			out = out[:len(out)-1]
		case strings.IndexByte("\"'`", c) >= 0 && !inQuotes && !(c == '\'' && i > 0 && isLetter(before[i-1])), strings.IndexByte("([{", c) >= 0:
			out = append(out, c)
		case strings.IndexByte(")]}", c) >= 0 && len(out) > 0 && !inQuotes:
			out = out[:len(out)-1]
		}
	}
	return string(out)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// closingQuoteIndex returns the next position of the quote at the end of opening, with its
// backslashes, or -1.
func closingQuoteIndex(s, opening string) int {
	q := opening[len(opening)-1]
	slashes := len(opening) - 1 - len(strings.TrimRight(opening[:len(opening)-1], `\`))
	count := 0
	for i := range len(s) {
		switch {
		case s[i] == '\\':
			count++
			continue
		case s[i] == q && (count == slashes || slashes == 0 && (count%2 == 0 || q == '\'')):
			return i - count*min(slashes, 1)
		}
		count = 0
	}
	return -1
}

// lengthBeforeAssignment returns the length of a value up to the next assignment.
func lengthBeforeAssignment(s string) int {
	if s == "" {
		return 0
	}
	if at := nextAssignmentPattern.FindStringIndex(s[1:]); at != nil {
		return 1 + at[0]
	}
	return len(s)
}

func trimmedLength(s string) int { return len(strings.TrimRight(s, " \t\r")) }

func skipChars(s string, i int, what string) int {
	for i < len(s) && strings.IndexByte(what, s[i]) >= 0 {
		i++
	}
	return i
}

// flagValue returns the argument after a flag, in a command line or a list.
func flagValue(s string, i, j int) namedValue {
	between := itemGapPattern.FindString(s[i:])
	if between == "" {
		between = flagGapPattern.FindString(s[i:])
	}
	if between == "" {
		return namedValue{}
	}
	v := namedValue{begin: i + len(between)}
	rest := s[v.begin:]
	if rest == "" || otherFlagPattern.MatchString(rest) || strings.IndexByte("|&;)>", rest[0]) >= 0 {
		return namedValue{}
	}
	if q := strings.TrimLeft(rest, `\`); q != "" && strings.IndexByte(quoteCharacters, q[0]) >= 0 {
		if n := valueLength(rest); n < len(rest) || rest[len(rest)-1] == q[0] {
			v.end = v.begin + n + wordLength(rest[n:], "(")
			return v
		}
	}
	v.end = v.begin + wordLength(rest, "\"")
	return v
}

var (
	// flagGapPattern matches the gap between a flag and its value, listed the gap between two
	// quoted items.
	flagGapPattern = regexp.MustCompile(`^(?:[ \t]|\\\r?\n)+`)
	itemGapPattern = regexp.MustCompile(`^,[ \t\r\n]*`)
	// otherFlagPattern matches another flag instead of a value: -v, --verbose.
	otherFlagPattern = regexp.MustCompile(`^(?:--[A-Za-z]|-[A-Za-z](?:[\s"'\\]|$)|-[a-z-]+(?:[\s"'=\\]|$))`)
	// settingPrefixPattern matches the text before a name and a blank in a line that sets it.
	settingPrefixPattern = regexp.MustCompile(`(?:^|\s)(?:ENV|ARG|export|set|setx|setenv)(?:[ \t]+-[a-zA-Z]+)*[ \t]+$`)
	plainWordPattern     = regexp.MustCompile(`^[a-z]{1,14}[.,;:)]?$`)
	singleWordPattern    = regexp.MustCompile(`^(?:"[^"\n]*"|'[^'\n]*'|[^\s=:{\["'|>&<][^\s]*?)[ \t]*;?[ \t]*(?:\r?\n|\r?$)`)
)

// lineValue returns the value in a line with a name, a blank and one word.
func lineValue(s, name, line string, j int) namedValue {
	if j >= len(s) || strings.IndexByte(" \t", s[j-1]) < 0 {
		return namedValue{}
	}
	found := singleWordPattern.FindString(s[j:])
	if found == "" || (strings.TrimSpace(line) != "" || !strings.Contains(s, "\n")) && !settingPrefixPattern.MatchString(line) {
		return namedValue{}
	}
	found = strings.TrimRight(found, "; \t\r\n")
	if secretwords.SecrecyOf(name) == secretwords.MaybeSecret && !strings.ContainsAny(name, "_-.") && plainWordPattern.MatchString(found) {
		return namedValue{} // a sentence that continues in this line
	}
	return namedValue{begin: j, end: j + len(found)}
}

// isHarmless reports whether a value is not a secret despite its name.
func (v namedValue) isHarmless(name, value string) bool {
	if first, _, ok := strings.Cut(value, ". "); ok && v.isAfterColon && notSecretValues[strings.ToLower(first)] {
		return true // for example "Password: none. And so on."
	}
	return isSecretPath(name, value) || hasNoSecretContent(name, value) || v.isAfterColon && isProse(v.textBefore, name, value)
}

// hasNoSecretContent reports whether a value is a switch, count, variable or part of a template.
func hasNoSecretContent(name, value string) bool {
	plain := strings.Trim(value, `\"'`+"`")
	plain = strings.TrimRight(strings.TrimSpace(plain), ";,.")
	if plain == "" || variablePattern.MatchString(plain) || variablePattern.MatchString(strings.TrimSpace(value)) || notSecretValues[strings.ToLower(plain)] {
		return true
	}
	if secretwords.SecrecyOf(name) == secretwords.MaybeSecret && (notCredentialValues[strings.ToLower(plain)] || strings.HasSuffix(strings.ToLower(name), "s") && fewDigitsPattern.MatchString(plain)) {
		return true
	}
	if storeCommandPattern.MatchString(plain) && commandNamePattern.MatchString(name) {
		return true
	}
	if !strings.HasPrefix(plain, "{{") {
		return false
	}
	rest := templateReferencePattern.ReplaceAllString(plain, "")
	return rest == "" || rest[0] == ' ' && proseWordsPattern.MatchString(rest)
}

var (
	// variablePattern matches a reference to an environment variable (in Kubernetes or a shell),
	// the output of a file, or a placeholder that Gardener fills.
	variablePattern = regexp.MustCompile(`^\\*["']?(?:\$\([A-Za-z_][A-Za-z0-9_]*\)|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[0-9@*]|\$[A-Z][A-Z0-9_]{2,}|\$\((?:cat|<) [^\s()]+\)|<<[A-Z][A-Z0-9_]*>>|` + "`cat [^\\s`]+`" + `)\\*["']?$`)
	// commandNamePattern matches the name of a command that prints a secret. asks matches such a
	// command that has no secret itself, but asks a store or reads a file.
	commandNamePattern  = regexp.MustCompile(`(?i)(?:cmd|command|eval)$`)
	storeCommandPattern = regexp.MustCompile(`^(?:\S*/)?(?:pass|gopass|rbw|bw|lpass|op|secret-tool|security|keyring|gpg2?|cat|vault|kubectl)(?:[ \t]+[A-Za-z0-9_@./:~-]+)*$`)
	fewDigitsPattern    = regexp.MustCompile(`^[0-9]{1,4}$`)
	// templateReferencePattern matches a template expression without any text of its own.
	templateReferencePattern = regexp.MustCompile(`\{\{-?[ A-Za-z0-9_.$|()]*-?\}\}`)
	proseWordsPattern        = regexp.MustCompile(`^[ ,.A-Za-z]*$`)
	// sentencePattern matches the start of prose: "how long it lives", "connection refused".
	sentencePattern = regexp.MustCompile(`^[A-Za-z]{1,12}(?:[ ,.;:]|$)`)
)

// isProse reports whether a name is a word in a sentence: "cannot read the secret: forbidden",
// "Token: how long it lives".
func isProse(before, name, value string) bool {
	if secretwords.SecrecyOf(name) != secretwords.MaybeSecret && name != "pass" || strings.ContainsAny(name, "_-.") || !sentencePattern.MatchString(value) {
		return false
	}
	text := strings.TrimRight(before, " ")
	if len(text) < len(before) && text != "" && isLetter(text[len(text)-1]) && text[len(text)-1] >= 'a' {
		return true
	}
	return slices.Contains([]string{"Token", "Tokens", "Secret", "Secrets", "Credential", "Credentials"}, name) && strings.Contains(strings.TrimSpace(value), " ")
}
