// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"regexp"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/pergola-dev/pergola/schemas"
)

// Errors of krusty about replacements (sigs.k8s.io/kustomize/api/filters/replacement), which have
// no position.
var (
	noSourcePattern      = regexp.MustCompile(`nothing selected by `)
	noSourceFieldPattern = regexp.MustCompile("fieldPath `([^`]*)` is missing for replacement source")
	noTargetFieldPattern = regexp.MustCompile(`unable to find (?:or create )?field "([^"]*)" in replacement target`)
	manySourcesPattern   = regexp.MustCompile(`multiple matches for selector`)
)

// failedReplacement finds the failing part of a replacement and explains the error.
func failedReplacement(k kustomization, i int, said string) finding {
	field := fmt.Sprintf("replacements[%d]", i)
	r := k.Replacements[i]
	at := func(inner, format string, args ...any) finding {
		if r.Path != "" {
			inner = ".path" // the replacement is in another file
		}
		return k.finding(field+inner, schemas.TypeInvalid, format, args...)
	}
	if r.Source == nil {
		return at("", "%s", redactError(said))
	}
	source := describeSelector(types.Selector{ResId: r.Source.ResId})
	if noSourcePattern.MatchString(said) {
		return at(".source", "there is no %s to take the value from", source)
	}
	if manySourcesPattern.MatchString(said) {
		return at(".source", "several objects are selected: name the one to take the value from by kind, name and namespace")
	}
	if m := noSourceFieldPattern.FindStringSubmatch(said); m != nil {
		return at(".source.fieldPath", "%s has no field %q", source, m[1])
	}
	if m := noTargetFieldPattern.FindStringSubmatch(said); m != nil {
		for t, target := range r.Targets {
			for p, path := range target.FieldPaths {
				if path == m[1] {
					return at(fmt.Sprintf(".targets[%d].fieldPaths[%d]", t, p), "the target has no field %q: correct it, or set options.create to add it", m[1])
				}
			}
		}
	}
	return at("", "%s", redactError(said))
}
