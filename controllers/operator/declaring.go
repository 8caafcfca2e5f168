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

// declaringEvery is how often it is told how many declarations are applied: few are done before the
// first time.
const declaringEvery = 5 * time.Second

// declaring counts the declarations of a sync that were dealt with, by cluster. Thousands take a
// while, in which no step of a flow ends.
type declaring struct {
	mu   sync.Mutex
	done map[string]int
	told time.Time
}

// next counts an object, and gives the line that is due; empty for none.
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
	// What is to go counts as well, beyond those that are declared.
	total := totals()[cluster]
	return fmt.Sprintf("declarations of cluster %s: %d of %d", cluster, min(d.done[cluster], total), total)
}

// begin starts to count for the next sync.
func (d *declaring) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = nil
}

// dealtWith takes in what became of an object. Those who apply call it.
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
