// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/pergola-dev/pergola/internal/backoff"
)

// Triggers of a sync in status.history.
const (
	triggerCommit   = "Commit"
	triggerInterval = "Interval"
	triggerRequest  = "Request"
	triggerRetry    = "Retry"
	triggerSpec     = "Spec"
	triggerPin      = "Pin"
	// triggerOperation is a requested operation of the Garden.
	triggerOperation = "Operation"
	// triggerApproval is triggerSpec if only approvals differ.
	triggerApproval = "Approval"
)

// syncInput is the input of the decision whether a sync is due.
type syncInput struct {
	now     time.Time
	commits knownCommits
	// isBusy means that the attempted commit is being synced.
	isBusy      bool
	syncReasons syncReasons
	// failures counts failures in a row. isPermanent means that an early retry does not help.
	failures    int
	isPermanent bool
	timing      syncTiming
	// suspendReason and blocked are the reasons why no sync starts, if not empty.
	suspendReason, blockReason string
}

// knownCommits are the commits of a situation.
type knownCommits struct {
	// wanted is the commit to apply, empty while unknown. applied is the applied commit; it is
	// empty if a later attempt is incomplete. attempted is the last attempted commit.
	wanted, applied, attempted string
	isPinned                   bool
	// isRetagged means that the attempted commit has another tag or a new tag object now. The new
	// tag may have a valid signature, and it renames the revision.
	isRetagged bool
}

// syncReasons has the reasons for a sync other than a new commit.
type syncReasons struct {
	// syncRequested means a sync request, respecified a change of the spec since the last sync, and
	// operationRequested a requested operation of the Garden.
	syncRequested, specChanged, operationRequested bool
	// onlyApprovalsChanged means that only approvals differ in the spec.
	onlyApprovalsChanged bool
}

// syncTiming has the times that make a sync due.
type syncTiming struct {
	// lastEnd is the end of the last sync.
	lastEnd                 time.Time
	windows                 windowState
	interval, retryInterval time.Duration
	// jitterShare is this Landscape's share of the jitter in withJitter, from 0 to 1.
	jitterShare float64
}

// decision says whether to sync now, or how long to wait.
type decision struct {
	// trigger is the trigger of the due sync; it is empty for none.
	trigger string
	// waitReason tells people why a due sync waits.
	waitReason string
	// nextCheck is the latest time of the next check; it is zero if only an event needs one.
	nextCheck time.Time
}

// decideSync returns whether a sync is due.
func decideSync(s syncInput) decision {
	switch {
	case s.suspendReason != "":
		return decision{waitReason: s.suspendReason}
	case s.commits.wanted == "":
		return decision{waitReason: "the revision is not known yet"}
	}
	d := s.dueSync()
	if d.trigger == "" {
		return d
	}
	if s.blockReason != "" {
		return decision{waitReason: s.blockReason}
	}
	if s.commits.wanted != s.commits.applied && !s.timing.windows.isOpen {
		waiting := "no window opens again: see spec.windows, and status.windows for those of landscape.yaml"
		if !s.timing.windows.opensAt.IsZero() {
			waiting = fmt.Sprintf("waiting for the next window, which opens at %s", s.timing.windows.opensAt.UTC().Format(time.RFC3339))
		}
		return decision{waitReason: waiting, nextCheck: s.timing.windows.opensAt}
	}
	return d
}

// dueSync returns the sync that is due, regardless of whether it may start.
func (s syncInput) dueSync() decision {
	switch {
	case s.commits.wanted != s.commits.attempted && s.commits.isPinned:
		return decision{trigger: triggerPin}
	case s.commits.wanted != s.commits.attempted:
		return decision{trigger: triggerCommit}
	case s.commits.isRetagged:
		return decision{trigger: triggerCommit}
	case s.syncReasons.specChanged && s.syncReasons.onlyApprovalsChanged:
		return decision{trigger: triggerApproval}
	case s.syncReasons.specChanged:
		return decision{trigger: triggerSpec}
	case s.isBusy:
		return decision{}
	case s.syncReasons.syncRequested:
		return decision{trigger: triggerRequest}
	case s.syncReasons.operationRequested && s.failures == 0: // else the retry covers it
		return decision{trigger: triggerOperation}
	}
	trigger, at := triggerInterval, s.timing.lastEnd.Add(withJitter(s.timing.interval, s.timing.jitterShare))
	if s.failures > 0 && !s.isPermanent {
		trigger, at = triggerRetry, s.timing.lastEnd.Add(backoff.Delay(s.failures, s.timing.retryInterval, max(s.timing.interval, s.timing.retryInterval)))
	}
	if s.now.Before(at) {
		return decision{nextCheck: at}
	}
	return decision{trigger: trigger}
}

// withJitter adds up to a tenth of the interval.
func withJitter(interval time.Duration, share float64) time.Duration {
	return interval + time.Duration(float64(interval)*share/10)
}

// jitterShareOf returns a stable share from 0 to 1 for a name.
func jitterShareOf(name string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return float64(h.Sum32()) / (1 << 32)
}
