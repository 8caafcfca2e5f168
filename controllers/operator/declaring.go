package operator

import (
	"fmt"
	"sync"
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/source/receiver"
)

// declaringEvery is the interval of progress lines about declarations.
const declaringEvery = 5 * time.Second

// declaring counts the processed declarations of a sync by cluster. Thousands of them take a while,
// and no flow step ends meanwhile.
type declaring struct {
	mu   sync.Mutex
	done map[string]int
	told time.Time
}

// next counts an object, and returns the progress line if one is due; else empty.
func (d *declaring) next(now time.Time, cluster string, totals func() map[string]int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done, d.told = map[string]int{}, now
	}
	d.done[cluster]++
	if now.Sub(d.told) < declaringEvery {
		return ""
	}
	d.told = now
	// Prunes count, too, in addition to the declared objects.
	total := totals()[cluster]
	return fmt.Sprintf("declarations of cluster %s: %d of %d", cluster, min(d.done[cluster], total), total)
}

// begin resets the counters for the next sync.
func (d *declaring) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = nil
}

// dealtWith processes the result of one object. Apply goroutines call it.
func (s *syncer) dealtWith(j *job, bundle string, r apply.ObjectResult) {
	j.wrote(r)
	if bundle != landscape.DeclarationsBundle {
		return
	}
	line := j.declaring.next(s.parts.role.Clock.Now(), r.Cluster, j.converger.DeclaredTotals)
	if line == "" {
		return
	}
	s.hub.tell(j.revision.Commit, receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseApplying, Message: line})
	s.do(func() {
		if s.jobs.active == j && j.applying {
			j.steps.Store(&line)
			if j.told.shown {
				s.status.operation(gardencorev1beta1.LastOperationStateProcessing, s.status.progress(), j.progress())
			}
		}
	})
}
