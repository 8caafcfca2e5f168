package deploy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ValuesError says what is wrong with the values of the chart.
type ValuesError struct {
	// Problems are sentences that begin with the path of a value.
	Problems []string
}

func (e *ValuesError) Error() string {
	return "the values are not valid: " + strings.Join(e.Problems, "; ")
}

// problem is a line of the validator that Helm uses: the place as a JSON pointer, and what is wrong there.
var problem = regexp.MustCompile(`^\s*- at '([^']*)': (.+)$`)

// conditional are lines that only say that other lines follow.
var conditional = regexp.MustCompile(`^('?allOf'?|'?anyOf'?|'?then'?|'?else'?|validation failed)`)

// unknown is what it says of values that do not exist.
var unknown = regexp.MustCompile(`^additional propert(?:y|ies) (.+) not allowed$`)

// valuesError reads what Helm says about values.
func valuesError(err error) error {
	var out ValuesError
	for line := range strings.Lines(err.Error()) {
		found := problem.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if found == nil || conditional.MatchString(found[2]) {
			continue
		}
		where := strings.ReplaceAll(strings.Trim(found[1], "/"), "/", ".")
		what := found[2]
		if names := unknown.FindStringSubmatch(what); names != nil {
			what = "there is no value " + names[1]
			if where != "" {
				what += " here"
			}
		}
		switch what {
		case "minLength: got 0, want 1":
			what = "is required"
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
