// SPDX-License-Identifier: Apache-2.0

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

// reportedSteps remembers reported flow steps. Followers do not see unchanged steps.
type reportedSteps struct {
	mu       sync.Mutex
	messages map[string]string
}

// isReportable reports whether an event is of interest: it changed or waited for something, became
// healthy after that, or failed.
func (t *reportedSteps) isReportable(e owner.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := e.Owner + " " + e.Node
	switch {
	case e.State == flow.Failed:
		return true
	case e.State == flow.Applied && e.Message != "":
		if t.messages == nil {
			t.messages = map[string]string{}
		}
		again := t.messages[key] == e.Message
		t.messages[key] = e.Message
		return !again
	case e.State == flow.Healthy || e.State == flow.RolledOut:
		_, changed := t.messages[key]
		delete(t.messages, key)
		return changed
	}
	return false
}

// reportStep processes one step of a flow. Many goroutines call it.
func (s *landscapeReconciler) reportStep(by *job, told *reportedSteps, e owner.Event) {
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
		if by.control.isStopped.Load() {
			return // the code that stopped the job reports it
		}
		text = "failed: " + e.Error
	default:
		return
	}
	line := fmt.Sprintf("%s › %s: %s", e.Owner, e.Node, text)
	if told.isReportable(e) {
		s.broadcaster.broadcast(commit, receiver.Progress{Time: e.At, Phase: receiver.PhaseApplying, Message: line})
	}
	s.enqueue(func() {
		if j := s.jobs.activeJob; j != nil && j.isApplying && j.revision.Commit == commit {
			j.lastStep.Store(&line)
			if j.reporting.isLastOperation {
				s.status.setOperation(gardencorev1beta1.LastOperationStateProcessing, int32(e.Progress.Percent), j.progressText())
			}
		}
	})
}

// reportDrift processes a repair.
func (s *landscapeReconciler) reportDrift(d landscape.Drift) {
	what := fmt.Sprintf("%s on cluster %s %s", d.Object, d.Cluster, d.Description)
	message, severity, reason := what+": repaired", notification.Info, "DriftRepaired"
	switch {
	case d.HandedOver:
		message, reason = what+": handed over, and unchanged", "HandedOver"
	case !d.Repaired:
		message, severity, reason = what+", and could not be repaired: "+d.Error, notification.Warning, reasonDrift
	}
	if !d.HandedOver {
		s.operator.metrics.countDrift(s.key, d.Cluster, d.Repaired)
	}
	s.enqueue(func() {
		s.findings.unrepairedDrift = d.OpenProblems
		s.recordHeldRepair(d)
		if s.jobs.activeJob != nil {
			s.notify(notification.Neutral, severity, reason, message, s.jobs.activeJob.revision.Commit, s.jobs.activeJob.revision.Revision())
		}
	})
}

// recordHeldRepair records whether a repair waits for an approval, as held deletions of a sync do.
func (s *landscapeReconciler) recordHeldRepair(d landscape.Drift) {
	one := landscapev1alpha1.HeldDeletion{Cluster: d.Cluster, Object: d.Object.String(), Reason: d.HoldText, Why: d.HoldReason, Approval: d.Approval}
	same := func(h landscapev1alpha1.HeldDeletion) bool { return h.Cluster == one.Cluster && h.Object == one.Object }
	before, here := s.findings.heldRepairs, heldByOperator(s.status.desired.Held)
	s.findings.heldRepairs = slices.DeleteFunc(slices.Clone(before), same)
	switch {
	case d.HoldText != "" && slices.ContainsFunc(here, same) && !slices.ContainsFunc(before, same):
		// A sync has found it.
	case d.HoldText != "":
		s.findings.heldRepairs = append(s.findings.heldRepairs, one)
		here = append(slices.DeleteFunc(here, same), one)
	case slices.ContainsFunc(before, same):
		here = slices.DeleteFunc(here, same)
	}
	s.updateHeldStatus(here)
}

// recordOwnerConditions processes the conditions of an owner.
func (s *landscapeReconciler) recordOwnerConditions(name string, conditions []gardencorev1beta1.Condition) {
	var lines []string
	for _, c := range conditions {
		if c.Status == gardencorev1beta1.ConditionFalse {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", name, c.Type, c.Message))
		}
	}
	if s.findings.unhealthyConditions == nil {
		s.findings.unhealthyConditions = map[string][]string{}
	}
	s.findings.unhealthyConditions[name] = lines
}

// notify sends an event to the destinations of this Landscape.
func (s *landscapeReconciler) notify(phase notification.Phase, severity notification.Severity, reason, message, commit, revision string) {
	level := slog.LevelInfo
	if severity == notification.Warning {
		level = slog.LevelWarn
	}
	s.operator.role.Log.Log(s.lifetime.ctx, level, message, "landscape", s.key.String(), "reason", reason, "revision", revision)
	s.operator.notifier.Notify(notification.Event{
		Landscape: s.key, UID: s.object.UID, Revision: revision, Commit: commit, SourceURL: sourceURL(s.object),
		Phase: phase, Severity: severity, Reason: reason, Message: message, At: s.operator.role.Clock.Now(),
	}, s.operator.destinations(s.object))
}

// setInventory records the number of objects per cluster.
func (w *statusWriter) setInventory(totals map[string]int) {
	w.desired.Inventory = nil
	for cluster, n := range totals {
		w.desired.Inventory = append(w.desired.Inventory, landscapev1alpha1.InventorySummary{Cluster: cluster, Objects: int32(n)})
	}
	slices.SortFunc(w.desired.Inventory, func(a, b landscapev1alpha1.InventorySummary) int {
		if a.Cluster < b.Cluster {
			return -1
		}
		return 1
	})
}

// progressPercent returns the progress of the last operation in percent.
func (w *statusWriter) progressPercent() int32 {
	if op := w.desired.LastOperation; op != nil && op.State == gardencorev1beta1.LastOperationStateProcessing {
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
