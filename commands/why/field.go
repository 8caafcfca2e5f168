// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// step is one step of a path.
type step struct {
	// key of a map; it is "" for an item of a list.
	key string
	// index is the index of an item, and the field that identifies it with its value, if any.
	index      int
	name, text string
}

func (s step) isItem() bool { return s.key == "" }

// steps are the path to a field.
type steps []step

// String returns the path as in plans.
func (list steps) String() string {
	var b strings.Builder
	for _, s := range list {
		switch {
		case s.isItem() && s.name != "":
			fmt.Fprintf(&b, "[%s=%s]", s.name, s.text)
		case s.isItem():
			fmt.Fprintf(&b, "[%d]", s.index)
		case strings.ContainsAny(s.key, "./ []"):
			b.WriteString("[" + s.key + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// keys returns the keys of the maps in the path.
func (list steps) keys() []string {
	var out []string
	for _, s := range list {
		if !s.isItem() {
			out = append(out, s.key)
		}
	}
	return out
}

// declaredPath returns the path as in findings and declarations: items by index.
func (list steps) declaredPath() string {
	var path fieldpath.Path
	for _, s := range list {
		switch {
		case s.isItem():
			path = append(path, s.index)
		case strings.ContainsAny(s.key, "./ []"):
			path = append(path, fieldpath.Key(s.key))
		default:
			path = append(path, s.key)
		}
	}
	return path.String()
}

// itemNameFields are the fields that identify the items of a list, tried in this order.
var itemNameFields = []string{"name", "key", "type", "mountPath", "containerPort", "port", "ip", "topologyKey"}

// followPath follows a user's path: items by index, by name, or as name=app; keys with dots in
// brackets, or plain if unambiguous. A missing field is an UnknownError; found is the path up to
// it.
func followPath(object map[string]any, path string) (found steps, value any, err error) {
	value = object
	rest := path
	for rest != "" {
		rest = strings.TrimPrefix(rest, ".")
		var s step
		var ok bool
		switch v := value.(type) {
		case map[string]any:
			s, rest, ok = nextKey(v, rest)
			if !ok {
				return found, value, missingFieldError(found, rest, sortedKeys(v))
			}
			value = v[s.key]
		case []any:
			s, rest, ok = nextItem(v, rest)
			if !ok {
				return found, value, missingFieldError(found, rest, itemNames(v))
			}
			value = v[s.index]
		default:
			return found, value, &UnknownError{fmt.Sprintf("%s is a plain value: it has no %s", found, rest)}
		}
		found = append(found, s)
	}
	return found, value, nil
}

func missingFieldError(found steps, rest string, known []string) error {
	where := "the object"
	if len(found) > 0 {
		where = found.String()
	}
	word, _ := firstWord(rest)
	message := fmt.Sprintf("%s has no %s", where, word)
	if guess := suggest.Closest(word, known); guess != "" {
		return &UnknownError{fmt.Sprintf("%s; did you mean %s?", message, guess)}
	}
	if len(known) == 0 {
		return &UnknownError{message + ": it is empty"}
	}
	shown := known[:min(12, len(known))]
	return &UnknownError{fmt.Sprintf("%s; it has %s%s", message, strings.Join(shown, ", "), moreText(len(known)-len(shown)))}
}

// firstWord cuts off the first step of a path.
func firstWord(path string) (word, rest string) {
	if inner, ok := strings.CutPrefix(path, "["); ok {
		word, rest, _ = strings.Cut(inner, "]")
		return word, rest
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return path[:end], path[end:]
}

// nextKey parses the next key of a path: the longest existing one, as keys of labels, annotations
// and data have dots.
func nextKey(m map[string]any, path string) (step, string, bool) {
	if strings.HasPrefix(path, "[") {
		word, rest := firstWord(path)
		if _, ok := m[word]; !ok || word == "" {
			return step{}, path, false
		}
		return step{key: word}, rest, true
	}
	best := ""
	for key := range m {
		if _, ok := cutNamePrefix(path, key); ok && len(key) > len(best) {
			best = key
		}
	}
	return step{key: best}, strings.TrimPrefix(path, best), best != ""
}

// nextItem parses the next item of a path, by index or by name.
func nextItem(list []any, path string) (step, string, bool) {
	word, rest := firstWord(path)
	if n, err := strconv.Atoi(word); err == nil && strings.HasPrefix(path, "[") {
		if n >= 0 && n < len(list) {
			return itemStep(list, n), rest, true
		}
		return step{}, path, false
	}
	name, text, given := strings.Cut(word, "=")
	for i := range list {
		s := itemStep(list, i)
		if !given && s.name != "" && s.text == word || given && s.name == name && s.text == text || s.name == "" && fmt.Sprint(list[i]) == word {
			return s, rest, true
		}
	}
	return step{}, path, false
}

// itemStep returns the step to an item, by its name if all items have one.
func itemStep(list []any, index int) step {
	for _, name := range itemNameFields {
		seen := map[string]bool{}
		for _, item := range list {
			fields, _ := item.(map[string]any)
			value, ok := fields[name]
			switch value.(type) {
			case map[string]any, []any:
				ok = false
			}
			if text := fmt.Sprint(value); !ok || seen[text] {
				seen = nil
				break
			} else {
				seen[text] = true
			}
		}
		if seen != nil && len(list) > 0 {
			return step{index: index, name: name, text: fmt.Sprint(list[index].(map[string]any)[name])}
		}
	}
	return step{index: index}
}

func itemNames(list []any) []string {
	var out []string
	for i := range list {
		if s := itemStep(list, i); s.name != "" {
			out = append(out, s.text)
		} else {
			out = append(out, "["+strconv.Itoa(i)+"]")
		}
	}
	return out
}

// value follows the path in another version of the object, items by their names.
func (list steps) value(object map[string]any) (any, bool) {
	var value any = object
	for _, s := range list {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[s.key]
			if s.isItem() || !ok {
				return nil, false
			}
			value = inner
		case []any:
			i := s.indexIn(v)
			if i < 0 {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// indexIn returns the index of the item in another version of its list, or -1.
func (s step) indexIn(list []any) int {
	if !s.isItem() {
		return -1
	}
	if s.name == "" {
		if s.index < len(list) {
			return s.index
		}
		return -1
	}
	return slices.IndexFunc(list, func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields != nil && fmt.Sprint(fields[s.name]) == s.text
	})
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}
