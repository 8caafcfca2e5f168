package report

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/internal/secretwords"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// sources caches the files that findings name.
type sources struct {
	read  func(string) ([]byte, error)
	files map[string]*file
	kinds map[schema.GroupVersionKind]*structure.Kind
}

// file is the content of a file by lines, with their shades; nil shades hide all lines.
type file struct {
	lines     []string
	documents []*document
	shades    []shade
}

func newSources(read func(string) ([]byte, error)) *sources {
	return &sources{read: read, files: map[string]*file{}}
}

func (s *sources) of(name string) *file {
	if f, ok := s.files[name]; ok {
		return f
	}
	f := &file{} // remains empty if the file is unreadable
	s.files[name] = f
	if s.read == nil {
		return f
	}
	data, err := s.read(name)
	if err != nil || !utf8.Valid(data) {
		return f
	}
	f.lines = strings.Split(string(data), "\n")
	if path.Ext(name) != ".cue" {
		f.documents = split(f.lines)
	}
	return f
}

// shaded returns a file with the shades of its lines.
func (s *sources) shaded(name string) *file {
	f := s.of(name)
	switch {
	case f.shades != nil || len(f.lines) == 0 || encrypted.MatchString(strings.Join(f.lines, "\n")):
	case f.documents == nil:
		f.shades = slices.Repeat([]shade{carefulCUE(strings.Join(f.lines, "\n"))}, len(f.lines))
	default:
		f.shades = shadesOf(f.documents, s.kind)
	}
	return f
}

// kind returns a kind with a schema, else nil.
func (s *sources) kind(gvk schema.GroupVersionKind) *structure.Kind {
	if s.kinds == nil {
		s.kinds = map[schema.GroupVersionKind]*structure.Kind{}
		// Without schemas every line is guarded; the error occurred earlier, before the findings.
		known, _ := schemas.StructuralKinds()
		for _, kind := range known {
			s.kinds[kind.GVK] = kind
		}
	}
	return s.kinds[gvk]
}

// apiVersion returns the apiVersion of a finding's object, "" if unknown.
func (s *sources) apiVersion(v schemas.Violation) string {
	d := at(s.of(v.File).documents, v.Line)
	if d == nil || text(d.root, "kind") != v.Kind {
		return ""
	}
	return text(d.root, "apiVersion")
}

// excerpt returns the source line of a finding and the indent of its column.
func (s *sources) excerpt(v schemas.Violation) (line, indent string, ok bool) {
	if isSecretKind(v.Kind) {
		return "", "", false // in CUE the values may be in any line
	}
	f := s.shaded(v.File)
	if v.Line < 1 || v.Line > len(f.shades) || v.Column < 1 {
		return "", "", false
	}
	text := []rune(strings.TrimRight(f.lines[v.Line-1], "\r"))
	at := v.Column - 1
	if at > len(text) || tells(string(text), f.shades[v.Line-1]) || strings.IndexFunc(string(text), unprintable) >= 0 {
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

// tells reports whether a line may reveal a secret. Comments have no schema.
func tells(line string, sh shade) bool {
	switch sh {
	case hidden:
		return true
	case guarded:
		return secretwords.HasSecretWord(line)
	}
	_, comment, _ := strings.Cut(" "+line, " #")
	return secretwords.HasSecretWord(comment)
}

func unprintable(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }
