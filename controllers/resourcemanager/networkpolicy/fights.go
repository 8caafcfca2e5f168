package networkpolicy

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/backoff"
)

const (
	// freeRepairs is the number of repairs of a policy without a pause.
	freeRepairs = 5
	// firstPause and lastPause bound the pauses before further repairs.
	firstPause, lastPause = time.Second, time.Minute
	// peace is how long nobody must change a policy until repairs have no pause again.
	peace = 2 * lastPause
)

// fights slows repairs down if somebody changes a policy again and again.
type fights struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	by    map[types.NamespacedName]fight
	// swept is when ended fights were removed last.
	swept time.Time
}

type fight struct {
	rounds int
	last   time.Time
}

// pause returns the wait before a policy is repaired, and whether to report the fight now.
func (f *fights) pause(policy types.NamespacedName) (wait time.Duration, often bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	if now.Sub(f.swept) > peace {
		f.swept = now
		for key, fight := range f.by {
			if now.Sub(fight.last) > peace {
				delete(f.by, key)
			}
		}
	}
	fight := f.by[policy]
	if now.Sub(fight.last) > peace {
		fight.rounds = 0
	}
	fight.rounds, fight.last = fight.rounds+1, now
	f.by[policy] = fight
	if fight.rounds <= freeRepairs {
		return 0, false
	}
	return backoff.After(fight.rounds-freeRepairs, firstPause, lastPause), fight.rounds == freeRepairs+1
}
