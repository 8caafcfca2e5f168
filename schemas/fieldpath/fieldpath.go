// Package fieldpath writes and reads the paths of fields inside an object, in the form that the
// Kubernetes API uses in its errors: spec.provider.workers[0].name,
// metadata.annotations[gardener.cloud/operation]. It knows nothing of schemas and files.
package fieldpath

import (
	"fmt"
	"strconv"
	"strings"
)

// Key is a key of a map, in contrast to the name of a field: written in brackets.
type Key string

// Path is a list of steps: string for a field, Key for the key of a map, int for the index of a
// list.
type Path []any

// Append gives a new path with further steps; the receiver stays as it is.
func (p Path) Append(steps ...any) Path {
	return append(append(make(Path, 0, len(p)+len(steps)), p...), steps...)
}

// String writes the path.
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		case Key:
			b.WriteString("[" + string(s) + "]")
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

// Parse reads a path. Digits in brackets become an int, other text in brackets a Key.
// It never fails: an unfinished bracket runs to the end of the text.
func Parse(text string) Path {
	var path Path
	for text != "" {
		switch text[0] {
		case '.':
			text = text[1:]
		case '[':
			end := strings.IndexByte(text, ']')
			if end < 0 {
				end = len(text)
			}
			inner := text[1:end]
			text = text[min(end+1, len(text)):]
			if n, err := strconv.Atoi(inner); err == nil && n >= 0 {
				path = append(path, n)
			} else {
				path = append(path, Key(inner))
			}
		default:
			end := strings.IndexAny(text, ".[")
			if end < 0 {
				end = len(text)
			}
			path = append(path, text[:end])
			text = text[end:]
		}
	}
	return path
}

// Name gives the step as the text of a map key; an index becomes its digits, because a map may have
// such keys too.
func Name(step any) string {
	switch s := step.(type) {
	case string:
		return s
	case Key:
		return string(s)
	case int:
		return strconv.Itoa(s)
	}
	return ""
}
