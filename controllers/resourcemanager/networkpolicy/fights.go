package networkpolicy

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/backoff"
)

const (
	// freeRepairs is how often a policy is repaired at once.
	freeRepairs = 5
	// firstPause and lastPause bound the pauses before further repairs.
	firstPause, lastPause = time.Second, time.Minute
	// peace is how long nobody has to change a policy until it is repaired at once again.
	peace = 2 * lastPause
)

// fights slows repairs down where somebody else changes a policy again and again.
type fights struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	by    map[types.NamespacedName]fight
	// swept is when those that are over were taken out.
	swept time.Time
}

type fight struct {
	rounds int
	last   time.Time
}

// pause tells how long to wait before a policy is repaired, and whether this is the moment to tell
// people.
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
