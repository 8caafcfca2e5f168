// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"time"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
)

// Setting configures how a landscape is read.
type Setting func(*settings)

type settings struct {
	now         time.Time
	rulesPassed bool
	// checksPassed means that CheckLandscape found no error.
	checksPassed bool
	// kinds are the kinds of owners to build; empty means all.
	kinds []string
	// sampling is set by Sparingly; maxSampledShoots is the maximum of compared Shoots with
	// unchanged declarations; it is 0 for no limit.
	sampling         bool
	maxSampledShoots int
	// charts pulls charts of Extensions.
	charts func([]gardencorev1.OCIRepository) map[string]Chart
}

// hasKind reports whether to build owners of a kind.
func (s settings) hasKind(kind string) bool {
	return len(s.kinds) == 0 || slices.Contains(s.kinds, kind)
}

// WithTime sets the time of the render: versions in a cloud profile expire, so it determines the
// version of a Shoot with an incomplete one. Without a time, such a Shoot cannot be rendered.
// Shoots with full versions do not depend on it.
func WithTime(now time.Time) Setting { return func(s *settings) { s.now = now } }

// WithPassedRules means that the rules about a whole landscape (package crosscheck) have passed.
// CheckLandscape then reads Shoots only if an overlay or a component of the landscape is for
// Shoots.
func WithPassedRules() Setting { return func(s *settings) { s.rulesPassed = true } }

// WithPassedChecks means that CheckLandscape found no error in this landscape with this catalogue.
// LandscapeOptions does not repeat the check.
func WithPassedChecks() Setting { return func(s *settings) { s.checksPassed = true } }

// WithOwnerKinds builds only owners of the given kinds: garden, seed and shoot. It reads no Shoots
// unless they are included.
func WithOwnerKinds(kinds ...string) Setting { return func(s *settings) { s.kinds = kinds } }

// WithCharts pulls the charts of Extensions, by reference. A missing chart is then an error;
// without it, bundles of charts have no objects.
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
