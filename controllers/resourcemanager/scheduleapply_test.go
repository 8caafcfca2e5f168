// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
)

func TestScheduleApply(t *testing.T) {
	key := types.NamespacedName{Namespace: "garden", Name: "thing"}
	for name, c := range map[string]struct {
		demands []time.Duration
		step    time.Duration
		want    bool
	}{
		"at once":                          {[]time.Duration{0}, 0, true},
		"at once, and the clock goes back": {[]time.Duration{0}, -30 * time.Hour, true},
		"later":                            {[]time.Duration{time.Minute}, 59 * time.Second, false},
		"later, and it is":                 {[]time.Duration{time.Minute}, time.Minute, true},
		"the sooner one counts":            {[]time.Duration{time.Minute, 0, time.Hour}, 0, true},
		"not asked for":                    {nil, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			m := &Manager{options: Options{Clock: clock}, dueTimes: map[types.NamespacedName]time.Time{}}
			for _, after := range c.demands {
				m.scheduleApply(key, after)
			}
			clock.SetTime(clock.Now().Add(c.step))
			assert.Equal(t, c.want, m.takeDue(key))
			if c.want {
				assert.False(t, m.takeDue(key), "once")
			}
		})
	}
}
