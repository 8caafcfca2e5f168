// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/backoff"
)

const (
	// maxImmediateRepairs is the number of repairs of a policy without a pause.
	maxImmediateRepairs = 5
	// minRepairPause and maxRepairPause bound the pauses before further repairs.
	minRepairPause, maxRepairPause = time.Second, time.Minute
	// quietPeriod is how long no one must change a policy until repairs have no pause again.
	quietPeriod = 2 * maxRepairPause
)

// repairLimiter slows repairs down if someone changes a policy again and again.
type repairLimiter struct {
	clock     clock.PassiveClock
	mu        sync.Mutex
	histories map[types.NamespacedName]repairHistory
	// lastSweep is when ended fights were removed last.
	lastSweep time.Time
}

type repairHistory struct {
	repairs int
	last    time.Time
}

// recordRepair returns the wait before a policy is repaired, and whether to report the fight now.
func (f *repairLimiter) recordRepair(policy types.NamespacedName) (wait time.Duration, often bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	if now.Sub(f.lastSweep) > quietPeriod {
		f.lastSweep = now
		for key, fight := range f.histories {
			if now.Sub(fight.last) > quietPeriod {
				delete(f.histories, key)
			}
		}
	}
	fight := f.histories[policy]
	if now.Sub(fight.last) > quietPeriod {
		fight.repairs = 0
	}
	fight.repairs, fight.last = fight.repairs+1, now
	f.histories[policy] = fight
	if fight.repairs <= maxImmediateRepairs {
		return 0, false
	}
	return backoff.Delay(fight.repairs-maxImmediateRepairs, minRepairPause, maxRepairPause), fight.repairs == maxImmediateRepairs+1
}
