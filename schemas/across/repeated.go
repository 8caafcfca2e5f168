package across

import (
	"regexp"

	"github.com/pergola-dev/pergola/schemas"
)

// foretold are warnings of rules about single objects, which cannot see who uses something, with the rules here that can.
var foretold = map[string]string{
	"seed/zones-stay":      "seed/zones-in-use",
	"seed/domains-changed": "seed/domains-in-use",
}

var quotedText = regexp.MustCompile(`"[^"]*"`)

// fault is what a finding is about: a field of an object, and the value that is named first.
type fault struct{ rule, kind, namespace, name, field, value string }

func faultOf(v schemas.Violation, rule string) fault {
	return fault{rule, v.Kind, v.Namespace, v.Name, v.Field, quotedText.FindString(v.Message)}
}

// WithoutForetold drops warnings that something may be in use where another finding says by what: one fault is told once.
func WithoutForetold(found []schemas.Violation) []schemas.Violation {
	known := map[fault]bool{}
	for _, v := range found {
		known[faultOf(v, v.Rule)] = true
	}
	out := make([]schemas.Violation, 0, len(found))
	for _, v := range found {
		if rule, ok := foretold[v.Rule]; ok && known[faultOf(v, rule)] {
			continue
		}
		out = append(out, v)
	}
	return out
}
