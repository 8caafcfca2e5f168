package render

import (
	"fmt"
	"strings"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
)

// VersionError refuses a landscape that is written for another catalogue than the one in this
// program: its render would be one that nobody has reviewed.
type VersionError struct {
	// Place is file:line:column of spec.catalogue.version.
	Place        string
	Wanted, Have string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s: spec.catalogue.version: the landscape is written for catalogue %s, and this program has %s: use the program of that version, or set %s and review what it changes (golden --update, then git diff)",
		e.Place, e.Wanted, e.Have, e.Have)
}

// CheckCatalogue compares the catalogue a landscape is written for with the one in this program. The error is
// a *VersionError. A landscape that names none gets the one there is.
func CheckCatalogue(l *landscapes.Landscape) error {
	pinned := l.Config.Spec.Catalogue
	if pinned == nil || strings.TrimPrefix(pinned.Version, "v") == components.Version {
		return nil
	}
	return &VersionError{
		Place:  configPlace(l, "spec.catalogue.version"),
		Wanted: strings.TrimPrefix(pinned.Version, "v"), Have: components.Version,
	}
}
