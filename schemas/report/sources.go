// SPDX-License-Identifier: Apache-2.0

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

// sourceCache caches the files that findings name.
type sourceCache struct {
	readFile     func(string) ([]byte, error)
	files        map[string]*sourceFile
	schemaByKind map[schema.GroupVersionKind]*structure.Kind
}

// sourceFile is the content of a file by lines, with their shades; nil shades hide all lines.
type sourceFile struct {
	lines        []string
	documents    []*document
	visibilities []visibility
}

func newSourceCache(read func(string) ([]byte, error)) *sourceCache {
	return &sourceCache{readFile: read, files: map[string]*sourceFile{}}
}

func (s *sourceCache) loadFile(name string) *sourceFile {
	if f, ok := s.files[name]; ok {
		return f
	}
	f := &sourceFile{} // remains empty if the file is unreadable
	s.files[name] = f
	if s.readFile == nil {
		return f
	}
	data, err := s.readFile(name)
	if err != nil || !utf8.Valid(data) {
		return f
	}
	f.lines = strings.Split(string(data), "\n")
	if path.Ext(name) != ".cue" {
		f.documents = splitDocuments(f.lines)
	}
	return f
}

// loadFileWithVisibility returns a file with the shades of its lines.
func (s *sourceCache) loadFileWithVisibility(name string) *sourceFile {
	f := s.loadFile(name)
	switch {
	case f.visibilities != nil || len(f.lines) == 0 || encryptedPattern.MatchString(strings.Join(f.lines, "\n")):
	case f.documents == nil:
		f.visibilities = slices.Repeat([]visibility{cueVisibility(strings.Join(f.lines, "\n"))}, len(f.lines))
	default:
		f.visibilities = documentVisibilities(f.documents, s.schemaOf)
	}
	return f
}

// schemaOf returns a kind with a schema, else nil.
func (s *sourceCache) schemaOf(gvk schema.GroupVersionKind) *structure.Kind {
	if s.schemaByKind == nil {
		s.schemaByKind = map[schema.GroupVersionKind]*structure.Kind{}
		// Without schemas every line is guarded; the error occurred earlier, before the findings.
		known, _ := schemas.StructuralKinds()
		for _, kind := range known {
			s.schemaByKind[kind.GVK] = kind
		}
	}
	return s.schemaByKind[gvk]
}

// apiVersion returns the apiVersion of a finding's object, or "" if unknown.
func (s *sourceCache) apiVersion(v schemas.Violation) string {
	d := documentAt(s.loadFile(v.File).documents, v.Line)
	if d == nil || mappingText(d.root, "kind") != v.Kind {
		return ""
	}
	return mappingText(d.root, "apiVersion")
}

// excerpt returns the source line of a finding and the indent of its column.
func (s *sourceCache) excerpt(v schemas.Violation) (line, indent string, ok bool) {
	if isSecretKind(v.Kind) {
		return "", "", false // in CUE the values may be in any line
	}
	f := s.loadFileWithVisibility(v.File)
	if v.Line < 1 || v.Line > len(f.visibilities) || v.Column < 1 {
		return "", "", false
	}
	text := []rune(strings.TrimRight(f.lines[v.Line-1], "\r"))
	at := v.Column - 1
	if at > len(text) || canRevealSecret(string(text), f.visibilities[v.Line-1]) || strings.IndexFunc(string(text), isUnprintable) >= 0 {
		return "", "", false
	}
	start := 0
	if at > maxExcerptWidth*3/4 {
		start = at - maxExcerptWidth/2
	}
	end := min(len(text), start+maxExcerptWidth)
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

// canRevealSecret reports whether a line may reveal a secret. Comments have no schema.
func canRevealSecret(line string, sh visibility) bool {
	switch sh {
	case secret:
		return true
	case maybeSecret:
		return secretwords.HasSecretWord(line)
	}
	_, comment, _ := strings.Cut(" "+line, " #")
	return secretwords.HasSecretWord(comment)
}

func isUnprintable(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }
