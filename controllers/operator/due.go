package operator

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/pergola-dev/pergola/internal/backoff"
)

// Triggers of a sync, as status.history names them.
const (
	triggerCommit   = "Commit"
	triggerInterval = "Interval"
	triggerRequest  = "Request"
	triggerRetry    = "Retry"
	triggerSpec     = "Spec"
	triggerPin      = "Pin"
	// triggerOperation is an operation that the Garden is asked for.
	triggerOperation = "Operation"
	// triggerApproval is triggerSpec where nothing but approvals differ.
	triggerApproval = "Approval"
)

// situation is everything that decides whether a sync is due.
type situation struct {
	now time.Time
	is  revisionsKnown
	// busy says that attempted is on its way.
	busy  bool
	asked askedFor
	// failures in a row; permanent ones get no better by trying again soon.
	failures  int
	permanent bool
	times     timing
	// suspended and blocked say why nothing is done, if they are not empty.
	suspended, blocked string
}

// revisionsKnown are the commits of a situation.
type revisionsKnown struct {
	// wanted is the commit to apply, empty while it is not known; applied the one that is applied
	// by this process, and attempted the one that was tried last.
	wanted, applied, attempted string
	pinned                     bool
	// retagged says that the source names the commit that was tried last by another tag now, or by
	// one that was made anew: with it the revision may be verified, and has another name.
	retagged bool
}

// askedFor says why a sync may be due besides a new commit.
type askedFor struct {
	// requested says that somebody asked for a sync; respecified that the object says something
	// else than at the last one; operated that the Garden was asked for an operation.
	requested, respecified, operated bool
	// approved says that what the object says otherwise are approvals alone.
	approved bool
}

// timing says when a sync may be due.
type timing struct {
	// ended is when the last sync was over.
	ended           time.Time
	windows         windowState
	interval, retry time.Duration
	// spread is the share of an interval that this Landscape waits longer than others, from 0 to 1.
	spread float64
}

// decision is what to do now, or until when to wait.
type decision struct {
	// trigger of the sync that is due; empty for none.
	trigger string
	// waiting says to people what a sync that would be due waits for.
	waiting string
	// at is when to look again at the latest; zero for not before something happens.
	at time.Time
}

// decide says whether a sync is due.
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

// due looks at what there is to do, whether it may be done or not.
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
	case s.asked.operated && s.failures == 0: // else it is tried again anyway
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

// spreadOut adds up to a tenth.
func spreadOut(interval time.Duration, share float64) time.Duration {
	return interval + time.Duration(float64(interval)*share/10)
}

// spreadOf gives each name a share from 0 to 1 that stays the same.
func spreadOf(name string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return float64(h.Sum32()) / (1 << 32)
}
