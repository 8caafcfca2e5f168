// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/receiver"
)

// followInterval is the polling interval of the object.
const followInterval = time.Second

// FollowObject reports the progress of a sync from the Landscape's status, for callers that cannot
// reach the operator. The channel closes after the line with Done, or with the context. Without a
// commit it reports the newest sync, even a finished one.
func FollowObject(ctx context.Context, clk clock.WithTicker, get landscapeGetter, commit string) <-chan receiver.Progress {
	return (&objectFollower{commit: commit}).follow(ctx, clk, get)
}

// landscapeGetter reads the Landscape; it is nil if it does not exist.
type landscapeGetter func(context.Context) (*landscapev1alpha1.Landscape, error)

// followRequest follows the sync that the annotation of a Landscape requests.
func followRequest(ctx context.Context, clk clock.WithTicker, get landscapeGetter, asked *landscapev1alpha1.Landscape) <-chan receiver.Progress {
	f := &objectFollower{syncRequest: asked.Annotations[landscapev1alpha1.AnnotationSyncRequested]}
	if h := asked.Status.History; len(h) > 0 && h[0].EndTime != nil {
		f.previousSync = &h[0]
	}
	return f.follow(ctx, clk, get)
}

// followNext follows the next sync, requested by the annotation or not.
func followNext(ctx context.Context, clk clock.WithTicker, get landscapeGetter, now *landscapev1alpha1.Landscape) <-chan receiver.Progress {
	f := &objectFollower{previousRequest: now.Annotations[landscapev1alpha1.AnnotationSyncRequested], followsNext: true}
	if h := now.Status.History; len(h) > 0 {
		f.previousSync = h[0].DeepCopy()
	}
	return f.follow(ctx, clk, get)
}

func (f *objectFollower) follow(ctx context.Context, clk clock.WithTicker, get landscapeGetter) <-chan receiver.Progress {
	out := make(chan receiver.Progress, followerBacklog)
	go func() {
		defer close(out)
		tick := clk.NewTicker(followInterval)
		defer tick.Stop()
		for {
			l, err := get(ctx)
			for _, p := range f.pollObject(l, err, clk.Now()) {
				select {
				case out <- p:
				case <-ctx.Done():
					return
				}
				if p.Done {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C():
			}
		}
	}()
	return out
}

// objectFollower remembers the last reported line.
type objectFollower struct {
	commit string
	// syncRequest is the value of the annotation; it is empty if a commit is followed.
	syncRequest string
	// followsNext means that the request is the first one after previousRequest.
	followsNext     bool
	previousRequest string
	// isRequestAccepted means that the operator accepted the request. wasIdle means that the
	// previous poll found no work in progress after that.
	isRequestAccepted bool
	wasIdle           bool
	// previousSync is the newest sync before the request.
	previousSync *landscapev1alpha1.SyncRecord
	lastLine     string
}

// pollObject compares the object with the last reported line.
func (f *objectFollower) pollObject(l *landscapev1alpha1.Landscape, err error, now time.Time) []receiver.Progress {
	say := func(phase, message string) []receiver.Progress {
		if message == f.lastLine {
			return nil
		}
		f.lastLine = message
		return []receiver.Progress{{Time: now, Phase: phase, Message: message}}
	}
	switch {
	case err != nil:
		return say(receiver.PhaseQueued, "the Landscape cannot be read: "+err.Error())
	case l == nil:
		return []receiver.Progress{{Time: now, Phase: receiver.PhaseFailed, Done: true, Err: "the Landscape no longer exists"}}
	}
	if asked := l.Annotations[landscapev1alpha1.AnnotationSyncRequested]; f.followsNext && f.syncRequest == "" && asked != f.previousRequest {
		f.syncRequest = asked
	}
	if f.syncRequest != "" && !f.hasAcceptedRequest(l) {
		return say(receiver.PhaseQueued, "waiting for the operator")
	}
	if c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeGardenletsWorking); c != nil && !isReconciling(l) {
		f.wasIdle = false // the result follows when they end
		return say(receiver.PhaseWaiting, c.Message)
	}
	// The operator first ends its current sync after a request. While anything is in progress, a
	// finished sync is not the requested one.
	if r := f.followedRecord(l); r != nil && r.EndTime != nil && (f.syncRequest == "" || !isReconciling(l)) {
		done := finalProgress(*r, now)
		if ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady); f.syncRequest != "" && done.Err == "" && ready != nil && ready.Reason == reasonWaiting {
			// The applied revision is not the requested one.
			done.Phase, done.Message = receiver.PhaseHeld, ready.Message
		}
		if source := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeSourceReady); f.syncRequest != "" && done.Err == "" && source != nil && source.Status == gardencorev1beta1.ConditionFalse {
			// The applied revision is not the one in the source.
			done.Phase, done.Err = receiver.PhaseFailed, source.Message
		}
		return []receiver.Progress{withApproveCommand(done, l)}
	}
	if p := f.unchangedResult(l, now); p != nil {
		*p = withApproveCommand(*p, l)
		return []receiver.Progress{*p}
	}
	if op := l.Status.LastOperation; op != nil && op.State == gardencorev1beta1.LastOperationStateProcessing {
		return say(receiver.PhaseApplying, op.Description)
	}
	if p := f.heldResult(l, now); p != nil {
		return []receiver.Progress{*p}
	}
	if c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling); c != nil && c.Reason != reasonRetrying {
		if c.Reason == reasonApplying {
			return say(receiver.PhaseApplying, c.Message)
		}
		return say(receiver.PhaseQueued, c.Message)
	}
	return nil
}

// hasAcceptedRequest reports whether the operator accepted the request, or a later one that
// replaced it: both ask for the same.
func (f *objectFollower) hasAcceptedRequest(l *landscapev1alpha1.Landscape) bool {
	last := l.Status.LastHandledSyncRequest
	f.isRequestAccepted = f.isRequestAccepted || last == f.syncRequest || last != "" && last == l.Annotations[landscapev1alpha1.AnnotationSyncRequested]
	return f.isRequestAccepted
}

// heldResult returns the final line if the followed commit waits for a window, another Landscape or
// a resume; else nil.
func (f *objectFollower) heldResult(l *landscapev1alpha1.Landscape, now time.Time) *receiver.Progress {
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	if f.commit == "" || ready == nil || isReconciling(l) {
		return nil
	}
	switch {
	case ready.Reason == reasonSuspended:
		return &receiver.Progress{Time: now, Phase: receiver.PhaseHeld, Message: suspendedText(ready.Message, l.Namespace+"/"+l.Name), Done: true}
	case ready.Reason == reasonWaiting && (strings.HasSuffix(l.Status.WaitingRevision, f.commit) || l.Status.LastAppliedRevision == ""):
		return &receiver.Progress{Time: now, Phase: receiver.PhaseHeld, Message: ready.Message, Done: true}
	}
	return nil
}

// unchangedResult returns the final line of a request without a new sync: nothing changed, or
// nothing may start.
func (f *objectFollower) unchangedResult(l *landscapev1alpha1.Landscape, now time.Time) *receiver.Progress {
	if f.syncRequest == "" || isReconciling(l) {
		f.wasIdle = false
		return nil
	}
	if !f.wasIdle { // the next poll decides: the sync may begin only now
		f.wasIdle = true
		return nil
	}
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	switch {
	case ready == nil:
		return nil
	case ready.Reason == reasonWaiting:
		return &receiver.Progress{Time: now, Phase: receiver.PhaseHeld, Message: ready.Message, Done: true}
	case ready.Status == gardencorev1beta1.ConditionTrue && !hasHeldDeletions(l):
		return &receiver.Progress{Time: now, Phase: receiver.PhaseApplied, Message: ready.Message, Done: true}
	case ready.Reason == reasonSuspended:
		return &receiver.Progress{Time: now, Phase: receiver.PhaseHeld, Message: suspendedText(ready.Message, l.Namespace+"/"+l.Name), Done: true}
	case ready.Status == gardencorev1beta1.ConditionTrue:
		return &receiver.Progress{Time: now, Phase: receiver.PhaseHeld, Message: ready.Message, Done: true}
	}
	return &receiver.Progress{Time: now, Phase: receiver.PhaseFailed, Message: ready.Message, Err: ready.Message, Done: true}
}

// withApproveCommand appends the approve command to the final line of a held sync.
func withApproveCommand(p receiver.Progress, l *landscapev1alpha1.Landscape) receiver.Progress {
	if p.Phase == receiver.PhaseHeld && len(l.Status.Held) > 0 && hasHeldDeletions(l) {
		p.Message += approveCommandFor(l.Status.Held, l.Namespace+"/"+l.Name)
	}
	return p
}

// hasHeldDeletions reports whether a Landscape has deletions that wait for an approval.
func hasHeldDeletions(l *landscapev1alpha1.Landscape) bool {
	c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeDeletionsHeld)
	return c != nil && c.Status == gardencorev1beta1.ConditionTrue
}

// isReconciling reports whether a Landscape has work in progress, other than a pending retry.
func isReconciling(l *landscapev1alpha1.Landscape) bool {
	c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling)
	return c != nil && c.Reason != reasonRetrying
}

// followedRecord returns the newest sync if it is the followed one.
func (f *objectFollower) followedRecord(l *landscapev1alpha1.Landscape) *landscapev1alpha1.SyncRecord {
	for i := range l.Status.History {
		r := &l.Status.History[i]
		switch {
		case f.commit != "":
			if !strings.HasSuffix(r.Revision, f.commit) {
				continue
			}
			if at := appliedCommitPath(&l.Status); at.commit == f.commit && at.folder != folderOf(l) && r.Result != landscapev1alpha1.SyncFailed {
				return nil // it was applied from the previous folder
			}
			return r
		case f.previousSync != nil && equality.Semantic.DeepEqual(r, f.previousSync):
			return nil
		default:
			return r
		}
	}
	return nil
}

// finalProgress returns the final line of a sync.
func finalProgress(r landscapev1alpha1.SyncRecord, now time.Time) receiver.Progress {
	out := receiver.Progress{Time: now, Message: r.Message, Done: true}
	switch r.Result {
	case landscapev1alpha1.SyncSucceeded:
		out.Phase = receiver.PhaseApplied
	case landscapev1alpha1.SyncHeld:
		out.Phase = receiver.PhaseHeld
	case landscapev1alpha1.SyncSuperseded:
		out.Phase = receiver.PhaseSuperseded
	default:
		out.Phase, out.Err = receiver.PhaseFailed, r.Message
	}
	if r.Gardenlets != "" {
		out.Phase, out.Err = receiver.PhaseFailed, joinNonEmpty(r.Message, r.Gardenlets)
	}
	return out
}
