package operator

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// steps remembers reported flow steps. Followers do not see unchanged steps.
type steps struct {
	mu      sync.Mutex
	changed map[string]string
}

// news reports whether an event is of interest: it changed or waited for something, became healthy
// after that, or failed.
func (t *steps) news(e owner.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := e.Owner + " " + e.Node
	switch {
	case e.State == flow.Failed:
		return true
	case e.State == flow.Applied && e.Message != "":
		if t.changed == nil {
			t.changed = map[string]string{}
		}
		again := t.changed[key] == e.Message
		t.changed[key] = e.Message
		return !again
	case e.State == flow.Healthy || e.State == flow.RolledOut:
		_, changed := t.changed[key]
		delete(t.changed, key)
		return changed
	}
	return false
}

// progressed processes one step of a flow. Many goroutines call it.
func (s *syncer) progressed(by *job, told *steps, e owner.Event) {
	commit, text := by.revision.Commit, ""
	switch e.State {
	case flow.Applied:
		text = "applied"
		if e.Message != "" {
			text += ": " + e.Message
		}
	case flow.Healthy, flow.RolledOut:
		text = "healthy"
	case flow.Failed:
		if by.control.stopped.Load() {
			return // the code that stopped the job reports it
		}
		text = "failed: " + e.Error
	default:
		return
	}
	line := fmt.Sprintf("%s › %s: %s", e.Owner, e.Node, text)
	if told.news(e) {
		s.hub.tell(commit, receiver.Progress{Time: e.At, Phase: receiver.PhaseApplying, Message: line})
	}
	s.do(func() {
		if j := s.jobs.active; j != nil && j.applying && j.revision.Commit == commit {
			j.steps.Store(&line)
			if j.told.shown {
				s.status.operation(gardencorev1beta1.LastOperationStateProcessing, int32(e.Progress.Percent), j.progress())
			}
		}
	})
}

// drifted processes a repair.
func (s *syncer) drifted(d landscape.Drift) {
	what := fmt.Sprintf("%s on cluster %s %s", d.Object, d.Cluster, d.What)
	message, severity, reason := what+": repaired", notification.Info, "DriftRepaired"
	switch {
	case d.HandedOver:
		message, reason = what+": handed over, and left as it is", "HandedOver"
	case !d.Repaired:
		message, severity, reason = what+", and could not be repaired: "+d.Error, notification.Warning, reasonDrift
	}
	if !d.HandedOver {
		s.parts.metrics.drifted(s.key, d.Cluster, d.Repaired)
	}
	s.do(func() {
		s.found.drift = d.Standing
		s.holdsRepair(d)
		if s.jobs.active != nil {
			s.notify(notification.Neutral, severity, reason, message, s.jobs.active.revision.Commit, s.jobs.active.revision.Revision())
		}
	})
}

// holdsRepair records whether a repair waits for an approval, as held deletions of a sync do.
func (s *syncer) holdsRepair(d landscape.Drift) {
	one := landscapev1alpha1.HeldDeletion{Cluster: d.Cluster, Object: d.Object.String(), Reason: d.Held, Why: d.Why, Approval: d.Approval}
	same := func(h landscapev1alpha1.HeldDeletion) bool { return h.Cluster == one.Cluster && h.Object == one.Object }
	before, here := s.found.heldDrift, heldHere(s.status.now.Held)
	s.found.heldDrift = slices.DeleteFunc(slices.Clone(before), same)
	switch {
	case d.Held != "" && slices.ContainsFunc(here, same) && !slices.ContainsFunc(before, same):
		// A sync has found it.
	case d.Held != "":
		s.found.heldDrift = append(s.found.heldDrift, one)
		here = append(slices.DeleteFunc(here, same), one)
	case slices.ContainsFunc(before, same):
		here = slices.DeleteFunc(here, same)
	}
	s.showHeld(here)
}

// cared processes the conditions of an owner.
func (s *syncer) cared(name string, conditions []gardencorev1beta1.Condition) {
	var lines []string
	for _, c := range conditions {
		if c.Status == gardencorev1beta1.ConditionFalse {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", name, c.Type, c.Message))
		}
	}
	if s.found.unhealthy == nil {
		s.found.unhealthy = map[string][]string{}
	}
	s.found.unhealthy[name] = lines
}

// notify sends an event to the destinations of this Landscape.
func (s *syncer) notify(phase notification.Phase, severity notification.Severity, reason, message, commit, revision string) {
	level := slog.LevelInfo
	if severity == notification.Warning {
		level = slog.LevelWarn
	}
	s.parts.role.Log.Log(s.life.alive, level, message, "landscape", s.key.String(), "reason", reason, "revision", revision)
	s.parts.notifier.Notify(notification.Event{
		Landscape: s.key, UID: s.object.UID, Revision: revision, Commit: commit, SourceURL: sourceURL(s.object),
		Phase: phase, Severity: severity, Reason: reason, Message: message, At: s.parts.role.Clock.Now(),
	}, s.parts.destinations(s.object))
}

// inventory records the number of objects per cluster.
func (w *statusWriter) inventory(totals map[string]int) {
	w.now.Inventory = nil
	for cluster, n := range totals {
		w.now.Inventory = append(w.now.Inventory, landscapev1alpha1.InventorySummary{Cluster: cluster, Objects: int32(n)})
	}
	slices.SortFunc(w.now.Inventory, func(a, b landscapev1alpha1.InventorySummary) int {
		if a.Cluster < b.Cluster {
			return -1
		}
		return 1
	})
}

// progress returns the progress of the last operation in percent.
func (w *statusWriter) progress() int32 {
	if op := w.now.LastOperation; op != nil && op.State == gardencorev1beta1.LastOperationStateProcessing {
		return op.Progress
	}
	return 0
}

// reasonOf returns the reason of an error for events.
func reasonOf(err error) string {
	if isInvalid(err) {
		return reasonInvalid
	}
	if r := source.ReasonOf(err); r != "" {
		return string(r)
	}
	return reasonApplyFailed
}
