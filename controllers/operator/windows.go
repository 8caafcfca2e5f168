package operator

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// windowState says whether new revisions may be applied.
type windowState struct {
	open bool
	// changes is when it opens; zero if never, or if it is open.
	changes time.Time
}

// windowsAt looks at several lists of windows, each of which has to be open; an empty one always is.
func windowsAt(now time.Time, lists ...[]landscapev1alpha1.SyncWindow) (windowState, error) {
	all := windowState{open: true}
	for _, list := range lists {
		one, err := windowAt(now, list)
		if err != nil {
			return windowState{}, err
		}
		if !one.open {
			all.open = false
			if all.changes.Before(one.changes) {
				all.changes = one.changes // the earliest time at which all can be open; it is looked again then
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
		schedule, zone, err := parseWindow(w)
		if err != nil {
			return windowState{}, fmt.Errorf("spec.windows[%d]: %w", i, err)
		}
		local := now.In(zone)
		began := schedule.Next(local.Add(-w.Duration.Duration))
		if !began.IsZero() && !began.After(local) {
			return windowState{open: true}, nil
		}
		if next := schedule.Next(local); !next.IsZero() && (state.changes.IsZero() || next.Before(state.changes)) {
			state.changes = next.UTC()
		}
	}
	return state, nil
}

func parseWindow(w landscapev1alpha1.SyncWindow) (cron.Schedule, *time.Location, error) {
	schedule, err := cron.ParseStandard(w.Schedule)
	if err != nil {
		return nil, nil, fmt.Errorf("schedule %q: %w; write minute, hour, day of the month, month and day of the week, such as \"0 8 * * 1-5\"", w.Schedule, err)
	}
	if w.Duration.Duration <= 0 {
		return nil, nil, fmt.Errorf("duration %s: want more than 0, such as 8h", w.Duration.Duration)
	}
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil || w.TimeZone == "Local" {
		return nil, nil, fmt.Errorf("timeZone %q is not known; write one such as Europe/Berlin", w.TimeZone)
	}
	return schedule, zone, nil
}
