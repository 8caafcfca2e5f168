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

// situation is the input of the decision whether a sync is due.
type situation struct {
	now time.Time
	is  revisionsKnown
	// busy means that the attempted commit is being synced.
	busy  bool
	asked askedFor
	// failures counts failures in a row. permanent means that an early retry does not help.
	failures  int
	permanent bool
	times     timing
	// suspended and blocked are the reasons why no sync starts, if not empty.
	suspended, blocked string
}

// revisionsKnown are the commits of a situation.
type revisionsKnown struct {
	// wanted is the commit to apply, empty while unknown. applied is the applied commit, empty if a
	// later attempt is incomplete. attempted is the last attempted commit.
	wanted, applied, attempted string
	pinned                     bool
	// retagged means that the attempted commit has another tag or a new tag object now. The new tag
	// may have a valid signature, and it renames the revision.
	retagged bool
}

// askedFor has the reasons for a sync other than a new commit.
type askedFor struct {
	// requested means a sync request, respecified a change of the spec since the last sync, and
	// operated a requested operation of the Garden.
	requested, respecified, operated bool
	// approved means that only approvals differ in the spec.
	approved bool
}

// timing has the times that make a sync due.
type timing struct {
	// ended is the end of the last sync.
	ended           time.Time
	windows         windowState
	interval, retry time.Duration
	// spread is this Landscape's share of the jitter in spreadOut, from 0 to 1.
	spread float64
}

// decision says whether to sync now, or how long to wait.
type decision struct {
	// trigger is the trigger of the due sync; empty for none.
	trigger string
	// waiting tells people why a due sync waits.
	waiting string
	// at is the latest time of the next check; zero if only an event needs one.
	at time.Time
}

// decide returns whether a sync is due.
func decide(s situation) decision {
	switch {
	case s.suspended != "":
		return decision{waiting: s.suspended}
	case s.is.wanted == "":
		return decision{waiting: "the revision is not known yet"}
	}
	d := s.due()
	if d.trigger == "" {
		return d
	}
	if s.blocked != "" {
		return decision{waiting: s.blocked}
	}
	if s.is.wanted != s.is.applied && !s.times.windows.open {
		waiting := "no window opens ever again: see spec.windows, and status.windows, which are those of landscape.yaml"
		if !s.times.windows.changes.IsZero() {
			waiting = fmt.Sprintf("waiting for the next window, which opens at %s", s.times.windows.changes.UTC().Format(time.RFC3339))
		}
		return decision{waiting: waiting, at: s.times.windows.changes}
	}
	return d
}

// due returns the sync that is due, regardless of whether it may start.
func (s situation) due() decision {
	switch {
	case s.is.wanted != s.is.attempted && s.is.pinned:
		return decision{trigger: triggerPin}
	case s.is.wanted != s.is.attempted:
		return decision{trigger: triggerCommit}
	case s.is.retagged:
		return decision{trigger: triggerCommit}
	case s.asked.respecified && s.asked.approved:
		return decision{trigger: triggerApproval}
	case s.asked.respecified:
		return decision{trigger: triggerSpec}
	case s.busy:
		return decision{}
	case s.asked.requested:
		return decision{trigger: triggerRequest}
	case s.asked.operated && s.failures == 0: // else the retry covers it
		return decision{trigger: triggerOperation}
	}
	trigger, at := triggerInterval, s.times.ended.Add(spreadOut(s.times.interval, s.times.spread))
	if s.failures > 0 && !s.permanent {
		trigger, at = triggerRetry, s.times.ended.Add(backoff.After(s.failures, s.times.retry, max(s.times.interval, s.times.retry)))
	}
	if s.now.Before(at) {
		return decision{at: at}
	}
	return decision{trigger: trigger}
}

// spreadOut adds up to a tenth of the interval.
func spreadOut(interval time.Duration, share float64) time.Duration {
	return interval + time.Duration(float64(interval)*share/10)
}

// spreadOf returns a stable share from 0 to 1 for a name.
func spreadOf(name string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return float64(h.Sum32()) / (1 << 32)
}
