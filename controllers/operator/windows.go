package operator

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes/windows"
)

// windowState says whether new revisions may be applied.
type windowState struct {
	open bool
	// changes is the next opening; zero if there is none within the search, or if it is open.
	changes time.Time
}

func neverOpens(s windowState) bool { return !s.open && s.changes.IsZero() }

// The search for a time when all lists are open checks at most mostOpenings openings within
// mostYears after the first. Without one in mostYears the windows never open; after mostOpenings
// the next opening is when to check again.
const (
	mostOpenings = 400
	mostYears    = 2
	// everyOpening exceeds the openings in that time of windows that open every half hour.
	everyOpening = 40_000
)

// windowsAt returns the state of several lists, which all have to be open. An empty list is always
// open.
func windowsAt(now time.Time, lists ...[]landscapev1alpha1.SyncWindow) (windowState, error) {
	return windowsWithin(now, mostOpenings, lists...)
}

func windowsWithin(now time.Time, most int, lists ...[]landscapev1alpha1.SyncWindow) (windowState, error) {
	state, err := allAt(now, lists)
	if err != nil || state.open {
		return state, err
	}
	at, last := state.changes, state.changes.AddDate(mostYears, 0, 0)
	for range most {
		if at.IsZero() || at.After(last) {
			return windowState{}, nil
		}
		then, err := allAt(at, lists)
		if err != nil || then.open {
			return windowState{changes: at}, err
		}
		at = then.changes
	}
	return windowState{changes: at}, nil
}

// allAt is like windowsAt, but changes is a time before which not all lists are open.
func allAt(now time.Time, lists [][]landscapev1alpha1.SyncWindow) (windowState, error) {
	all := windowState{open: true}
	for _, list := range lists {
		one, err := windowAt(now, list)
		if err != nil {
			return windowState{}, err
		}
		if !one.open {
			if one.changes.IsZero() {
				return windowState{}, nil
			}
			all.open = false
			if all.changes.Before(one.changes) {
				all.changes = one.changes
			}
		}
	}
	return all, nil
}

func windowAt(now time.Time, list []landscapev1alpha1.SyncWindow) (windowState, error) {
	if len(list) == 0 {
		return windowState{open: true}, nil
	}
	state := windowState{}
	for i, w := range list {
		schedule, zone, err := windows.Parse(w)
		if err != nil {
			return windowState{}, fmt.Errorf("spec.windows[%d]: %w", i, err)
		}
		open, next := windowOf(now, schedule, zone, w.Duration.Duration)
		if open {
			return windowState{open: true}, nil
		}
		if !next.IsZero() && (state.changes.IsZero() || next.Before(state.changes)) {
			state.changes = next
		}
	}
	return state, nil
}

// mostShift exceeds any clock change.
const mostShift = 3 * time.Hour

// windowOf reports whether a window is open, and when it opens next. The schedule is wall clock
// time, the duration real time. A skipped beginning counts as if clocks had not been put forward. A
// repeated one opens the first time (as in RFC 5545).
func windowOf(now time.Time, schedule cron.Schedule, zone *time.Location, duration time.Duration) (open bool, next time.Time) {
	var last time.Time // end of the search, once the window is known to be closed
	for wall := schedule.Next(wallClock(now.Add(-duration), zone).Add(-mostShift)); !wall.IsZero() && (last.IsZero() || wall.Before(last)); wall = schedule.Next(wall) {
		began := instantOf(wall, zone)
		switch {
		case !began.After(now.Add(-duration)):
			continue
		case !began.After(now):
			return true, time.Time{}
		case next.IsZero():
			last = wall.Add(mostShift)
		}
		if next.IsZero() || began.Before(next) {
			next = began
		}
	}
	return false, next
}

// wallClock returns the wall clock time, as a time in UTC.
func wallClock(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instantOf returns when clocks first show a time. A skipped time counts by the offset before.
func instantOf(wall time.Time, zone *time.Location) time.Time {
	before := wall.Add(-wallClock(wall.Add(-24*time.Hour), zone).Sub(wall.Add(-24 * time.Hour)))
	after := wall.Add(-wallClock(wall.Add(24*time.Hour), zone).Sub(wall.Add(24 * time.Hour)))
	if !wallClock(before, zone).Equal(wall) && wallClock(after, zone).Equal(wall) {
		return after
	}
	return before
}
