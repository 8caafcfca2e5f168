package render

import (
	"time"
)

// Setting is one of how a landscape is read.
type Setting func(*settings)

type settings struct {
	now   time.Time
	ruled bool
}

// At gives the time at which a landscape is rendered: versions of a cloud profile expire, so that it decides which one a Shoot
// gets that leaves its version open. Without it no version is chosen, and such a Shoot cannot be rendered. One that names
// its versions in full is rendered alike at all times.
func At(now time.Time) Setting { return func(s *settings) { s.now = now } }

// Ruled says that the rules about a whole landscape (package across) have looked at it already. CheckLandscape then reads no Shoots
// to find what they find, too: only where an overlay or a component of the landscape is for Shoots.
func Ruled() Setting { return func(s *settings) { s.ruled = true } }

func settingsOf(list []Setting) settings {
	var s settings
	for _, setting := range list {
		setting(&s)
	}
	return s
}
