// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/suggest"
)

// question is a parsed question: "Deployment garden/kube-apiserver.spec.replicas".
type question struct {
	text string
	// kind is lower case; group is the text after its first dot.
	kind, group string
	// nameAndPath is the name of the object and the path.
	nameAndPath string
}

// maxQuestion limits the text in bytes: the longest names with a deep path.
const maxQuestion = 4096

func parseQuestion(text string) (question, error) {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxQuestion {
		return question{}, fmt.Errorf("the question is longer than %d characters", maxQuestion)
	}
	kind, rest, ok := strings.Cut(text, " ")
	if !ok {
		kind, rest, ok = strings.Cut(text, "/")
	}
	if !ok || kind == "" || rest == "" {
		return question{}, fmt.Errorf(`%q names no object: give kind, name and optionally a field, such as "Deployment garden/kube-apiserver.spec.replicas"`, text)
	}
	q := question{text: text, nameAndPath: rest}
	q.kind, q.group, _ = strings.Cut(strings.ToLower(kind), ".")
	if long := longKind(q.kind); long != "" {
		q.kind = long
	}
	return q, nil
}

// longKind returns the kind for kubectl's short name.
func longKind(short string) string {
	switch short {
	case "deploy":
		return "deployment"
	case "sts":
		return "statefulset"
	case "ds":
		return "daemonset"
	case "svc":
		return "service"
	case "cm":
		return "configmap"
	case "sa":
		return "serviceaccount"
	case "ns":
		return "namespace"
	case "pdb":
		return "poddisruptionbudget"
	case "hpa":
		return "horizontalpodautoscaler"
	case "vpa":
		return "verticalpodautoscaler"
	case "crd":
		return "customresourcedefinition"
	case "pc":
		return "priorityclass"
	}
	return ""
}

// isOfKind reports whether the kind matches, in any case and number.
func (q question) isOfKind(ref change.Ref) bool {
	kind := strings.ToLower(ref.Kind)
	if q.group != "" && q.group != strings.ToLower(ref.Group()) {
		return false
	}
	return slices.Contains([]string{kind, kind + "s", kind + "es", strings.TrimSuffix(kind, "y") + "ies"}, q.kind)
}

// How well a name matches, in ascending order.
const (
	noMatch = iota
	// matchExceptHash means that the hash of the content differs.
	matchExceptHash
	// matchNameOnly means that the namespace is missing.
	matchNameOnly
	matchWhole
)

// matchName returns how well an object matches, and the field path after its name.
func (q question) matchName(ref change.Ref) (how int, field string) {
	if !q.isOfKind(ref) {
		return noMatch, ""
	}
	whole := ref.Name
	if ref.Namespace != "" {
		whole = ref.Namespace + "/" + ref.Name
	}
	if field, ok := cutNamePrefix(q.nameAndPath, whole); ok {
		return matchWhole, field
	}
	if field, ok := cutNamePrefix(q.nameAndPath, ref.Name); ok {
		return matchNameOnly, field
	}
	if base, hash := trimHash(whole); hash {
		if rest, ok := strings.CutPrefix(q.nameAndPath, base+"-"); ok && len(rest) >= hashLength && isHash(rest[:hashLength]) {
			if field, ok := cutNamePrefix(q.nameAndPath, base+"-"+rest[:hashLength]); ok {
				return matchExceptHash, field
			}
		}
	}
	return noMatch, ""
}

// cutNamePrefix returns the path after a name, or "".
func cutNamePrefix(text, name string) (string, bool) {
	rest, ok := strings.CutPrefix(text, name)
	switch {
	case !ok:
		return "", false
	case rest == "" || rest[0] == '[':
		return rest, true
	case rest[0] == '.':
		return rest[1:], true
	}
	return "", false
}

const hashLength = 8

// trimHash removes the hash of the content from a name; a match only means that it looks like one.
func trimHash(name string) (string, bool) {
	at := len(name) - hashLength - 1
	if at <= 0 || name[at] != '-' || !isHash(name[at+1:]) {
		return name, false
	}
	return name[:at], true
}

func isHash(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}

// UnknownError means that an object or field does not exist; it suggests names.
type UnknownError struct{ Message string }

func (e *UnknownError) Error() string { return e.Message }

// unknownError suggests the nearest of the existing objects.
func (q question) unknownError(where string, refs []change.Ref) error {
	var kinds, names []string
	for _, ref := range refs {
		kinds = append(kinds, ref.Kind)
		if q.isOfKind(ref) {
			names = append(names, strings.TrimPrefix(ref.String(), ref.Kind+" "))
		}
	}
	slices.Sort(kinds)
	slices.Sort(names)
	kinds, names = slices.Compact(kinds), slices.Compact(names)
	if len(names) == 0 {
		message := fmt.Sprintf("%s has no object of kind %s", where, q.kind)
		if guess := nearestWord(q.kind, kinds); guess != "" {
			return &UnknownError{fmt.Sprintf("%s; did you mean %s?", message, guess)}
		}
		return &UnknownError{fmt.Sprintf("%s; its kinds are %s", message, strings.Join(kinds, ", "))}
	}
	message := fmt.Sprintf("%s has no %s %s", where, q.kind, q.nameAndPath)
	if guess := nearestNames(q.nameAndPath, names); len(guess) > 0 {
		return &UnknownError{fmt.Sprintf("%s; did you mean %s?", message, strings.Join(guess, " or "))}
	}
	shown := names[:min(10, len(names))]
	return &UnknownError{fmt.Sprintf("%s; there are %s%s", message, strings.Join(shown, ", "), moreText(len(names)-len(shown)))}
}

func moreText(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// nearestNames returns up to three suggestions for a misspelt name. The end of the name is unknown
// then, so it tries the whole text, then shorter prefixes.
func nearestNames(rest string, names []string) []string {
	bare := func(name string) string { return name[strings.LastIndex(name, "/")+1:] }
	var short []string
	for _, name := range names {
		short = append(short, bare(name))
	}
	shorter := func(word string) string { return word[:max(strings.LastIndexAny(word, ".["), 0)] }
	for word := rest; word != ""; word = shorter(word) {
		namespace, name, ok := strings.Cut(word, "/")
		for _, candidate := range names {
			if ok && len(name) >= 4 && strings.HasPrefix(candidate, namespace+"/") && strings.Contains(candidate, name) {
				return []string{candidate}
			}
		}
	}
	for word := rest; word != ""; word = shorter(word) {
		if guess := suggest.Closest(word, names); guess != "" && guess != word {
			return []string{guess}
		}
		guess := suggest.Closest(bare(word), short)
		var out []string
		for _, name := range names {
			if guess != "" && bare(name) == guess || len(bare(word)) >= 4 && strings.Contains(bare(name), bare(word)) {
				out = append(out, name)
			}
		}
		if len(out) > 0 {
			return out[:min(3, len(out))]
		}
	}
	return nil
}

// nearestWord is suggest.Closest without regard to case.
func nearestWord(word string, candidates []string) string {
	lower := make([]string, len(candidates))
	for i, c := range candidates {
		lower[i] = strings.ToLower(c)
	}
	if i := slices.Index(lower, suggest.Closest(strings.ToLower(word), lower)); i >= 0 {
		return candidates[i]
	}
	return ""
}
