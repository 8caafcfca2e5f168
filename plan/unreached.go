// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/render"
)

// CountUnaffected counts owners by kind.
func CountUnaffected(owners []render.Owner) change.UnaffectedOwners {
	var u change.UnaffectedOwners
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

// unaffectedText tells a reviewer which owners were skipped; the result is empty if none.
func unaffectedText(u change.UnaffectedOwners) string {
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
	return "Not affected, and so neither rendered nor counted: " + strings.Join(parts, ", ") + "."
}
