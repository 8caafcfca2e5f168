package render

import (
	"slices"
	"time"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
)

// Setting is one of how a landscape is read.
type Setting func(*settings)

type settings struct {
	now   time.Time
	ruled bool
	// checked says that CheckLandscape found no error.
	checked bool
	// kinds of owners that are built; all if there are none.
	kinds []string
	// sparing says that it is done sparingly; sample is how many Shoots are compared at most that
	// are declared in the same way, 0 is no bound.
	sparing bool
	sample  int
	// charts pulls those of Extensions.
	charts func([]gardencorev1.OCIRepository) map[string]Chart
}

// has tells whether owners of a kind are built.
func (s settings) has(kind string) bool { return len(s.kinds) == 0 || slices.Contains(s.kinds, kind) }

// At gives the time at which a landscape is rendered: versions of a cloud profile expire, so that
// it decides which one a Shoot gets that leaves its version open. Without it no version is chosen,
// and such a Shoot cannot be rendered. One that names its versions in full is rendered alike at all
// times.
func At(now time.Time) Setting { return func(s *settings) { s.now = now } }

// Ruled says that the rules about a whole landscape (package across) have looked at it already.
// CheckLandscape then reads no Shoots to find what they find, too: only where an overlay or a
// component of the landscape is for Shoots.
func Ruled() Setting { return func(s *settings) { s.ruled = true } }

// Checked says that CheckLandscape has found no error in this landscape with this catalogue:
// LandscapeOptions does not look again.
func Checked() Setting { return func(s *settings) { s.checked = true } }

// OwnersOf leaves out the owners of other kinds than these: garden, seed and shoot. No Shoot is
// read where they are left out.
func OwnersOf(kinds ...string) Setting { return func(s *settings) { s.kinds = kinds } }

// WithCharts says who pulls the charts that Extensions name, by their references. That one cannot
// be had is an error then; without it, bundles of charts have no objects.
func WithCharts(pull func([]gardencorev1.OCIRepository) map[string]Chart) Setting {
	return func(s *settings) { s.charts = pull }
}

func settingsOf(list []Setting) settings {
	var s settings
	for _, setting := range list {
		setting(&s)
	}
	return s
}
