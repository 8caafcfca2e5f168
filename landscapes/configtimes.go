// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes/windows"
	"github.com/pergola-dev/pergola/schemas"
)

// referenceDate is the fixed start for following schedules, up to five years, so that a result does
// not depend on the current date.
var referenceDate = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// checkTimes checks spec.timeout and the sync windows. The operator refuses windows that are
// invalid or never open.
func (l *loader) checkTimes(config *Declaration, spec map[string]any) {
	text, _ := spec["timeout"].(string)
	if timeout, err := time.ParseDuration(text); err == nil && timeout <= 0 {
		l.reportField(config, "spec.timeout", schemas.TypeInvalid, ruleConfig, "must be more than 0, such as 1h")
	} else if err == nil && timeout < time.Minute {
		l.warnField(config, "spec.timeout", ruleConfig, "is less than a minute, too short for objects to become healthy, so each sync would fail; write a time such as 1h")
	}
	list, _ := spec["windows"].([]any)
	never := len(list) > 0
	for i, item := range list {
		encoded, err := json.Marshal(item)
		if err != nil {
			return
		}
		var window landscapev1alpha1.SyncWindow
		if json.Unmarshal(encoded, &window) != nil {
			return // the schema reports it
		}
		schedule, _, err := windows.Parse(window)
		if wrong := (*windows.Error)(nil); errors.As(err, &wrong) {
			// the schema also reports missing fields
			if entry, _ := item.(map[string]any); entry[wrong.Field] != nil {
				l.reportField(config, fmt.Sprintf("spec.windows[%d].%s", i, wrong.Field), schemas.TypeInvalid, ruleConfig, fmt.Sprintf("%q: %s", wrong.Value, wrong.Message))
			}
			never = false
		} else if err == nil && !schedule.Next(referenceDate).IsZero() {
			never = false
			if field, message := windowWarning(window, schedule); message != "" {
				l.warnField(config, fmt.Sprintf("spec.windows[%d]%s", i, field), ruleConfig, message)
			}
		}
	}
	if never {
		l.reportField(config, "spec.windows", schemas.TypeInvalid, ruleConfig, "none of them ever opens: nothing could be applied, not even their removal")
	}
}

// windowWarning returns the field of a valid window, as .schedule, that is hardly intended, with
// advice.
func windowWarning(window landscapev1alpha1.SyncWindow, schedule cron.Schedule) (field, message string) {
	duration := window.Duration.Duration
	minutes := uint64(1)<<60 - 1
	fields, _ := schedule.(*cron.SpecSchedule)
	switch {
	case duration < time.Minute:
		return ".duration", fmt.Sprintf("%s is less than a minute, so a new revision hardly ever arrives in time; write how long the window is open, such as 8h", duration)
	case fields != nil && fields.Minute&minutes == minutes:
		return ".schedule", fmt.Sprintf("%q reopens the window each minute, so it closes %s after the last one; write one opening minute, such as \"0 8 * * 1-5\"", window.Schedule, duration)
	case isAlwaysOpen(schedule, duration):
		return "", fmt.Sprintf("is always open: it opens again before its %s are over; shorten the duration, or remove spec.windows", duration)
	}
	return "", ""
}

// maxOpenings limits how many openings of a window are compared; an hourly window opens fewer
// times in a year.
const maxOpenings = 10_000

// isAlwaysOpen reports whether a window never closes in the year after referenceDate.
func isAlwaysOpen(schedule cron.Schedule, duration time.Duration) bool {
	last := schedule.Next(referenceDate)
	for end, n := last.AddDate(1, 0, 0), 0; last.Before(end) && n < maxOpenings; n++ {
		next := schedule.Next(last)
		if next.IsZero() || next.Sub(last) > duration {
			return false
		}
		last = next
	}
	return true
}
