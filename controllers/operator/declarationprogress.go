// SPDX-License-Identifier: Apache-2.0

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

// declarationProgressInterval is the interval of progress lines about declarations.
const declarationProgressInterval = 5 * time.Second

// declarationProgress counts the processed declarations of a sync by cluster. Thousands of them
// take a while, and no flow step ends meanwhile.
type declarationProgress struct {
	mu         sync.Mutex
	processed  map[string]int
	reportedAt time.Time
}

// countObject counts an object, and returns the progress line if one is due; else empty.
func (d *declarationProgress) countObject(now time.Time, cluster string, totals func() map[string]int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.processed == nil {
		d.processed, d.reportedAt = map[string]int{}, now
	}
	d.processed[cluster]++
	if now.Sub(d.reportedAt) < declarationProgressInterval {
		return ""
	}
	d.reportedAt = now
	// Prunes count, too, in addition to the declared objects.
	total := totals()[cluster]
	return fmt.Sprintf("declarations of cluster %s: %d of %d", cluster, min(d.processed[cluster], total), total)
}

// reset resets the counters for the next sync.
func (d *declarationProgress) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.processed = nil
}

// recordObjectResult processes the result of one object. Apply goroutines call it.
func (s *landscapeReconciler) recordObjectResult(j *job, bundle string, r apply.ObjectResult) {
	j.recordChangedOwner(r)
	if bundle != landscape.DeclarationsBundle {
		return
	}
	line := j.declarations.countObject(s.operator.role.Clock.Now(), r.Cluster, j.converger.DeclaredTotals)
	if line == "" {
		return
	}
	s.broadcaster.broadcast(j.revision.Commit, receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseApplying, Message: line})
	s.enqueue(func() {
		if s.jobs.activeJob == j && j.isApplying {
			j.lastStep.Store(&line)
			if j.reporting.isLastOperation {
				s.status.setOperation(gardencorev1beta1.LastOperationStateProcessing, s.status.progressPercent(), j.progressText())
			}
		}
	})
}
