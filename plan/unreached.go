package plan

import (
	"fmt"
	"strings"

	"github.com/pergola-dev/pergola/render"
)

// Unreached counts the owners that a comparison did not render, by kind: what they are rendered from is the same on both sides. Their objects
// are in no other number of a plan.
type Unreached struct {
	Gardens int `json:"gardens,omitempty"`
	Seeds   int `json:"seeds,omitempty"`
	Shoots  int `json:"shoots,omitempty"`
}

// UnreachedOf counts owners.
func UnreachedOf(owners []render.Owner) Unreached {
	var u Unreached
	for _, o := range owners {
		switch o.Kind {
		case "garden":
			u.Gardens++
		case "seed":
			u.Seeds++
		case "shoot":
			u.Shoots++
		}
	}
	return u
}

func (u *Unreached) add(o Unreached) {
	u.Gardens += o.Gardens
	u.Seeds += o.Seeds
	u.Shoots += o.Shoots
}

// String is a sentence, so that a reviewer knows what was looked at; empty where all was.
func (u Unreached) String() string {
	var parts []string
	for _, c := range []struct {
		n         int
		one, many string
	}{{u.Gardens, "Garden", "Gardens"}, {u.Seeds, "Seed", "Seeds"}, {u.Shoots, "Shoot", "Shoots"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, plural(c.n, c.one, c.many)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Not reached, and so neither rendered nor counted: " + strings.Join(parts, ", ") + "."
}
