// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/internal/unknown"
)

// ValuesError has the errors in the values of the chart.
type ValuesError struct {
	// Problems are sentences that begin with the path of a value.
	Problems []string
}

func (e *ValuesError) Error() string {
	return "the values are not valid: " + strings.Join(e.Problems, "; ")
}

// problemPattern matches a line of Helm's validator: the position as a JSON pointer, and the error.
var problemPattern = regexp.MustCompile(`^\s*- at '([^']*)': (.+)$`)

// conditionalPattern matches lines that only introduce other lines.
var conditionalPattern = regexp.MustCompile(`^('?allOf'?|'?anyOf'?|'?then'?|'?else'?|validation failed)`)

// unknownValuePattern matches errors about unknown values.
var unknownValuePattern = regexp.MustCompile(`^additional propert(?:y|ies) (.+) not allowed$`)

// wrongTypePattern matches errors about values of a wrong type.
var wrongTypePattern = regexp.MustCompile(`^got (\w+), want (\w+)$`)

// valueNamesAt returns the names of the chart's default values at a path.
func valueNamesAt(defaults map[string]any, path string) []string {
	if path != "" {
		defaults, _, _ = unstructured.NestedMap(defaults, strings.Split(path, ".")...)
	}
	return slices.Sorted(maps.Keys(defaults))
}

// valuesError converts Helm's error about values; defaults are those of the chart.
func valuesError(err error, defaults map[string]any) error {
	var out ValuesError
	for line := range strings.Lines(err.Error()) {
		found := problemPattern.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if found == nil || conditionalPattern.MatchString(found[2]) {
			continue
		}
		where := strings.ReplaceAll(strings.Trim(found[1], "/"), "/", ".")
		what := found[2]
		if names := unknownValuePattern.FindStringSubmatch(what); names != nil {
			what = "unknown value " + names[1]
			if where != "" {
				what += " here"
			}
			if one := strings.Trim(names[1], "'"); !strings.Contains(one, "'") {
				hint := unknown.Hint(one, valueNamesAt(defaults, where))
				if known := valueNamesAt(defaults, where); hint == "" && len(known) > 0 {
					hint = fmt.Sprintf("; known values are %s: correct it in --set or in the file of --values", strings.Join(known, ", "))
				}
				what += hint
			}
		}
		if types := wrongTypePattern.FindStringSubmatch(what); types != nil {
			what = fmt.Sprintf("must be of type %s, but is of type %s", types[2], types[1])
		}
		if what == "minLength: got 0, want 1" {
			what = fmt.Sprintf("is required; give --set %s=VALUE, or a file with --values", where)
		}
		if where == "" {
			out.Problems = append(out.Problems, what)
			continue
		}
		out.Problems = append(out.Problems, where+": "+what)
	}
	slices.Sort(out.Problems)
	if len(out.Problems) == 0 {
		return fmt.Errorf("values of the chart: %w", err)
	}
	return &out
}
