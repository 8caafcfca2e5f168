package report

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pergola-dev/pergola/schemas"
)

// sources remembers the lines of files.
type sources struct {
	read  func(string) ([]byte, error)
	lines map[string][]string
}

// confidential is a file whose lines are never shown: it has an object that holds secret values, or is encrypted.
var confidential = regexp.MustCompile(`\b(Secret|SecretList|InternalSecret|ShootState|List)\b["']?\s*(#.*)?(?m:$|[,}])|ENC\[|^\s*["']?sops["']?\s*:|PRIVATE KEY`)

// telling is a line that may hold a secret value in an object of another kind.
var telling = regexp.MustCompile(`(?i)passw|token|credential|private|secret|kubeconfig|client-?key|api-?key|auth`)

// of gives the lines of a file; none if they must not be shown.
func (s *sources) of(file string) []string {
	if lines, ok := s.lines[file]; ok || s.read == nil {
		return lines
	}
	s.lines[file] = nil
	data, err := s.read(file)
	if err == nil && utf8.Valid(data) && !confidential.Match(data) {
		s.lines[file] = strings.Split(string(data), "\n")
	}
	return s.lines[file]
}

// excerpt gives the source line of a finding and the space before its column.
func (s *sources) excerpt(v schemas.Violation) (line, indent string, ok bool) {
	lines := s.of(v.File)
	if v.Line < 1 || v.Line > len(lines) || v.Column < 1 {
		return "", "", false
	}
	text := []rune(strings.TrimRight(lines[v.Line-1], "\r"))
	at := v.Column - 1
	if at > len(text) || telling.MatchString(string(text)) || strings.IndexFunc(string(text), unprintable) >= 0 {
		return "", "", false
	}
	start := 0
	if at > widest*3/4 {
		start = at - widest/2
	}
	end := min(len(text), start+widest)
	shown := text[start:end]
	before := make([]rune, 0, at-start)
	for _, r := range text[start:at] {
		if r != '\t' {
			r = ' '
		}
		before = append(before, r)
	}
	return string(shown), string(before), true
}

func unprintable(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }
