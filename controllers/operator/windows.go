// SPDX-License-Identifier: Apache-2.0

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
	isOpen bool
	// opensAt is the next opening; it is zero if there is none within the search, or if it is open.
	opensAt time.Time
}

func isNeverOpen(s windowState) bool { return !s.isOpen && s.opensAt.IsZero() }

// The search for a time when all lists are open checks at most maxOpenings openings within
// maxYears after the first. Without one in maxYears the windows never open; after maxOpenings
// the next opening is when to check again.
const (
	maxOpenings = 400
	maxYears    = 2
	// unlimitedOpenings exceeds the openings in that time of windows that open every half hour.
	unlimitedOpenings = 40_000
)

// windowStateAt returns the state of several lists, which all have to be open. An empty list is
// always open.
func windowStateAt(now time.Time, lists ...[]landscapev1alpha1.SyncWindow) (windowState, error) {
	return findCommonOpening(now, maxOpenings, lists...)
}

func findCommonOpening(now time.Time, most int, lists ...[]landscapev1alpha1.SyncWindow) (windowState, error) {
	state, err := allWindowsAt(now, lists)
	if err != nil || state.isOpen {
		return state, err
	}
	at, last := state.opensAt, state.opensAt.AddDate(maxYears, 0, 0)
	for range most {
		if at.IsZero() || at.After(last) {
			return windowState{}, nil
		}
		then, err := allWindowsAt(at, lists)
		if err != nil || then.isOpen {
			return windowState{opensAt: at}, err
		}
		at = then.opensAt
	}
	return windowState{opensAt: at}, nil
}

// allWindowsAt is like windowStateAt, but changes is a time before which not all lists are open.
func allWindowsAt(now time.Time, lists [][]landscapev1alpha1.SyncWindow) (windowState, error) {
	all := windowState{isOpen: true}
	for _, list := range lists {
		one, err := anyWindowAt(now, list)
		if err != nil {
			return windowState{}, err
		}
		if !one.isOpen {
			if one.opensAt.IsZero() {
				return windowState{}, nil
			}
			all.isOpen = false
			if all.opensAt.Before(one.opensAt) {
				all.opensAt = one.opensAt
			}
		}
	}
	return all, nil
}

func anyWindowAt(now time.Time, list []landscapev1alpha1.SyncWindow) (windowState, error) {
	if len(list) == 0 {
		return windowState{isOpen: true}, nil
	}
	state := windowState{}
	for i, w := range list {
		schedule, zone, err := windows.Parse(w)
		if err != nil {
			return windowState{}, fmt.Errorf("spec.windows[%d]: %w", i, err)
		}
		open, next := scheduleStateAt(now, schedule, zone, w.Duration.Duration)
		if open {
			return windowState{isOpen: true}, nil
		}
		if !next.IsZero() && (state.opensAt.IsZero() || next.Before(state.opensAt)) {
			state.opensAt = next
		}
	}
	return state, nil
}

// maxClockShift exceeds any clock change.
const maxClockShift = 3 * time.Hour

// scheduleStateAt reports whether a window is open, and when it opens next. The schedule is wall
// clock time, the duration real time. A skipped beginning counts as if clocks had not been put
// forward. A repeated one opens the first time (as in RFC 5545).
func scheduleStateAt(now time.Time, schedule cron.Schedule, zone *time.Location, duration time.Duration) (open bool, next time.Time) {
	var last time.Time // end of the search, once the window is known to be closed
	for wall := schedule.Next(wallClock(now.Add(-duration), zone).Add(-maxClockShift)); !wall.IsZero() && (last.IsZero() || wall.Before(last)); wall = schedule.Next(wall) {
		began := instantOf(wall, zone)
		switch {
		case !began.After(now.Add(-duration)):
			continue
		case !began.After(now):
			return true, time.Time{}
		case next.IsZero():
			last = wall.Add(maxClockShift)
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

// instantOf returns when clocks first show a time. A skipped time counts with the offset before the
// change.
func instantOf(wall time.Time, zone *time.Location) time.Time {
	before := wall.Add(-wallClock(wall.Add(-24*time.Hour), zone).Sub(wall.Add(-24 * time.Hour)))
	after := wall.Add(-wallClock(wall.Add(24*time.Hour), zone).Sub(wall.Add(24 * time.Hour)))
	if !wallClock(before, zone).Equal(wall) && wallClock(after, zone).Equal(wall) {
		return after
	}
	return before
}
