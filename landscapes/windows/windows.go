// SPDX-License-Identifier: Apache-2.0

// Package windows parses the times in which new revisions of a landscape are applied.
package windows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// Error describes an invalid window.
type Error struct {
	// Field is the field of the window, such as schedule.
	Field string
	// Value is the value of the field.
	Value string
	// Message says what is wrong and what to write instead.
	Message string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Message) }

// Parse returns the schedule and time zone of a window. Each error is an *Error.
func Parse(w landscapev1alpha1.SyncWindow) (cron.Schedule, *time.Location, error) {
	schedule, err := cron.ParseStandard(w.Schedule)
	if _, fields := schedule.(*cron.SpecSchedule); err == nil && (!fields || strings.Contains(w.Schedule, "TZ=")) {
		err = errors.New("it has no times of day (@every), or a zone, which belongs in timeZone")
	}
	if err != nil {
		return nil, nil, &Error{"schedule", w.Schedule, err.Error() + "; write minute, hour, day of the month, month and day of the week, such as \"0 8 * * 1-5\""}
	}
	if w.Duration.Duration <= 0 {
		return nil, nil, &Error{"duration", w.Duration.Duration.String(), "want more than 0, such as 8h"}
	}
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil || w.TimeZone == "Local" {
		return nil, nil, &Error{"timeZone", w.TimeZone, "no zone of that name is known; write one such as Europe/Berlin"}
	}
	return schedule, zone, nil
}
