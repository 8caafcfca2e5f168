// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// TestWindowsAcrossClockChanges: a window opens once at each beginning for its duration, whatever
// clocks do.
func TestWindowsAcrossClockChanges(t *testing.T) {
	// Clock changes in 2026: Berlin from 02:00 to 03:00 at 01:00Z of March 29, and from 03:00 to
	// 02:00 at 01:00Z of October 25. New York from 02:00 to 03:00 at 07:00Z of March 8, and from
	// 02:00 to 01:00 at 06:00Z of November 1. Lord Howe changes by half an hour.
	for name, test := range map[string]struct {
		schedule, duration, zone string
		// from and to bound the checked time, open has the beginnings and ends in it.
		from, to string
		open     []string
	}{
		"forward, within":             {"0 22 * * *", "8h", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T12:00", []string{"2026-03-28T21:00", "2026-03-29T05:00"}},
		"forward, left out":           {"30 2 * * *", "1h", "Europe/Berlin", "2026-03-28T12:00", "2026-03-30T12:00", []string{"2026-03-29T01:30", "2026-03-29T02:30", "2026-03-30T00:30", "2026-03-30T01:30"}},
		"forward, begins at it":       {"0 3 * * *", "1h", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T12:00", []string{"2026-03-29T01:00", "2026-03-29T02:00"}},
		"forward, every half hour":    {"*/30 * * * *", "10m", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T02:00", []string{"2026-03-29T00:00", "2026-03-29T00:10", "2026-03-29T00:30", "2026-03-29T00:40", "2026-03-29T01:00", "2026-03-29T01:10", "2026-03-29T01:30", "2026-03-29T01:40"}},
		"forward, New York":           {"15 2 * * 0", "30m", "America/New_York", "2026-03-08T00:00", "2026-03-08T12:00", []string{"2026-03-08T07:15", "2026-03-08T07:45"}},
		"forward, half an hour":       {"15 2 * * *", "1h", "Australia/Lord_Howe", "2026-10-03T12:00", "2026-10-04T00:00", []string{"2026-10-03T15:45", "2026-10-03T16:45"}},
		"back, within":                {"0 22 * * *", "8h", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T12:00", []string{"2026-10-24T20:00", "2026-10-25T04:00"}},
		"back, comes twice":           {"30 2 * * *", "20m", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T12:00", []string{"2026-10-25T00:30", "2026-10-25T00:50"}},
		"back, comes twice, New York": {"30 1 * * *", "2h", "America/New_York", "2026-11-01T00:00", "2026-11-01T12:00", []string{"2026-11-01T05:30", "2026-11-01T07:30"}},
		"back, after it":              {"0 3 * * *", "1h", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T12:00", []string{"2026-10-25T02:00", "2026-10-25T03:00"}},
		"working days over the change": {"0 8 * * 1-5", "8h", "Europe/Berlin", "2026-03-27T00:00", "2026-03-31T00:00",
			[]string{"2026-03-27T07:00", "2026-03-27T15:00", "2026-03-30T06:00", "2026-03-30T14:00"}},
		"no zone": {"30 2 * * *", "1h", "", "2026-03-28T12:00", "2026-03-29T12:00", []string{"2026-03-29T02:30", "2026-03-29T03:30"}},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(text string) time.Time {
				out, err := time.Parse("2006-01-02T15:04", text)
				require.NoError(t, err)
				return out
			}
			duration, err := time.ParseDuration(test.duration)
			require.NoError(t, err)
			list := []landscapev1alpha1.SyncWindow{{Schedule: test.schedule, Duration: metav1.Duration{Duration: duration}, TimeZone: test.zone}}
			var changes []string
			was := false
			promised := time.Time{}
			for now := at(test.from); now.Before(at(test.to)); now = now.Add(time.Minute) {
				state, err := windowStateAt(now, list)
				require.NoError(t, err)
				if state.isOpen != was {
					changes = append(changes, now.Format("2006-01-02T15:04"))
					if state.isOpen && !promised.IsZero() {
						assert.Equal(t, promised, now, "it opens when it was said to")
					}
				}
				if !state.isOpen {
					assert.True(t, state.opensAt.After(now), "%s: %s", now, state.opensAt)
					promised = state.opensAt
				}
				was = state.isOpen
			}
			assert.Equal(t, test.open, changes)
		})
	}
}

func TestWindowScheduleForms(t *testing.T) {
	for _, schedule := range []string{"@every 1h", "TZ=Asia/Tokyo 0 8 * * *", "CRON_TZ=Asia/Tokyo 0 8 * * *"} {
		_, err := windowStateAt(noon, []landscapev1alpha1.SyncWindow{{Schedule: schedule, Duration: metav1.Duration{Duration: time.Hour}}})
		require.ErrorContains(t, err, fmt.Sprintf("spec.windows[0]: schedule %q", schedule))
		require.ErrorContains(t, err, "timeZone")
	}
	state, err := windowStateAt(noon, []landscapev1alpha1.SyncWindow{{Schedule: "@daily", Duration: metav1.Duration{Duration: 13 * time.Hour}}})
	require.NoError(t, err)
	assert.True(t, state.isOpen)
	// A long window with frequent beginnings costs no more than others.
	began := time.Now()
	for range 100 {
		_, err = windowStateAt(noon, []landscapev1alpha1.SyncWindow{{Schedule: "* * * * *", Duration: metav1.Duration{Duration: 1000 * time.Hour}}})
		require.NoError(t, err)
	}
	assert.Less(t, time.Since(began), 20*time.Second)
}
