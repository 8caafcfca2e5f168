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
	// changes is when it opens; zero if never, as far as it is looked, or if it is open.
	changes time.Time
}

func neverOpens(s windowState) bool { return !s.open && s.changes.IsZero() }

// Of several lists it is looked for a time at which all are open at so many times at which one
// opens, and for so long after the first. Where there is none in all that time there is never one;
// where there are too many openings, the last one that was looked at is when to look again.
const (
	mostOpenings = 400
	mostYears    = 2
	// everyOpening is more than there are in that time, of windows that open every half an hour.
	everyOpening = 40_000
)

// windowsAt looks at several lists of windows, each of which has to be open; an empty one always
// is.
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

// allAt is the same, but that changes is a time before which not all are open.
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

// mostShift is more than clocks are changed by at once.
const mostShift = 3 * time.Hour

// windowOf tells whether a window is open, and when it opens next. The schedule is one of clocks on
// a wall, and the duration real time: where clocks are put forward over the beginning of a window,
// it opens as if they had not been; where a beginning comes twice, it opens the first time (as RFC
// 5545 has it).
func windowOf(now time.Time, schedule cron.Schedule, zone *time.Location, duration time.Duration) (open bool, next time.Time) {
	var last time.Time // how far it is looked, once the window is known to be closed
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

// wallClock is what clocks show, as a time in UTC.
func wallClock(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instantOf is when clocks show a time for the first time. One that they leave out is counted by
// the clocks of before.
func instantOf(wall time.Time, zone *time.Location) time.Time {
	before := wall.Add(-wallClock(wall.Add(-24*time.Hour), zone).Sub(wall.Add(-24 * time.Hour)))
	after := wall.Add(-wallClock(wall.Add(24*time.Hour), zone).Sub(wall.Add(24 * time.Hour)))
	if !wallClock(before, zone).Equal(wall) && wallClock(after, zone).Equal(wall) {
		return after
	}
	return before
}
