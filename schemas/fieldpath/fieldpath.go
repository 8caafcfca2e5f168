// SPDX-License-Identifier: Apache-2.0

// Package fieldpath parses and formats field paths as in Kubernetes API errors:
// spec.provider.workers[0].name, metadata.annotations[gardener.cloud/operation]. It knows no
// schemas and files.
package fieldpath

import (
	"fmt"
	"strconv"
	"strings"
)

// Key is a map key, which is written in brackets, unlike a field name.
type Key string

// Path is a list of steps: a string is a field, a Key is a map key, and an int is a list index.
type Path []any

// Append returns a new path with further steps and does not change p.
func (p Path) Append(steps ...any) Path {
	return append(append(make(Path, 0, len(p)+len(steps)), p...), steps...)
}

// String formats the path.
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

// Parse parses a path. Digits in brackets become an int, other text a Key. Parse never fails: an
// unclosed bracket ends at the end of the text.
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

// StepName returns the step as a map key. An index becomes its digits, which may be a map key, too.
func StepName(step any) string {
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
