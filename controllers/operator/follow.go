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

// followEvery is how often the object is looked at.
const followEvery = time.Second

// FollowObject tells the progress of a sync by what the status of the Landscape says, for those who
// cannot ask the operator itself. The channel ends after the line that is Done, or with the
// context. Without a commit it follows whatever is synced, from the next sync on.
func FollowObject(ctx context.Context, clk clock.WithTicker, get getter, commit string) <-chan receiver.Progress {
	return (&objectFollower{commit: commit}).follow(ctx, clk, get)
}

// getter reads the Landscape; nil if it is gone.
type getter func(context.Context) (*landscapev1alpha1.Landscape, error)

// followRequest follows the sync that the annotation of a Landscape asked for.
func followRequest(ctx context.Context, clk clock.WithTicker, get getter, asked *landscapev1alpha1.Landscape) <-chan receiver.Progress {
	f := &objectFollower{request: asked.Annotations[landscapev1alpha1.AnnotationSyncRequested]}
	if h := asked.Status.History; len(h) > 0 && h[0].EndTime != nil {
		f.former = &h[0]
	}
	return f.follow(ctx, clk, get)
}

// followNext follows the sync that is asked for by the annotation next, or that begins without.
func followNext(ctx context.Context, clk clock.WithTicker, get getter, now *landscapev1alpha1.Landscape) <-chan receiver.Progress {
	f := &objectFollower{asked: now.Annotations[landscapev1alpha1.AnnotationSyncRequested], next: true}
	if h := now.Status.History; len(h) > 0 {
		f.former = h[0].DeepCopy()
	}
	return f.follow(ctx, clk, get)
}

func (f *objectFollower) follow(ctx context.Context, clk clock.WithTicker, get getter) <-chan receiver.Progress {
	out := make(chan receiver.Progress, backlog)
	go func() {
		defer close(out)
		tick := clk.NewTicker(followEvery)
		defer tick.Stop()
		for {
			l, err := get(ctx)
			for _, p := range f.look(l, err, clk.Now()) {
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

// objectFollower remembers what was told.
type objectFollower struct {
	commit string
	// request is the value of the annotation, empty where a commit is followed.
	request string
	// next says that the request is the first one after asked.
	next  bool
	asked string
	// taken says that the request was taken up, handled that the look before has seen nothing go on
	// after it.
	taken   bool
	handled bool
	// former is the newest sync of before, which is not the one that was asked for.
	former *landscapev1alpha1.SyncRecord
	told   string
}

// look compares the object with what was told last.
func (f *objectFollower) look(l *landscapev1alpha1.Landscape, err error, now time.Time) []receiver.Progress {
	say := func(phase, message string) []receiver.Progress {
		if message == f.told {
			return nil
		}
		f.told = message
		return []receiver.Progress{{Time: now, Phase: phase, Message: message}}
	}
	switch {
	case err != nil:
		return say(receiver.PhaseQueued, "the Landscape cannot be read: "+err.Error())
	case l == nil:
		return []receiver.Progress{{Time: now, Phase: receiver.PhaseFailed, Done: true, Err: "the Landscape is gone"}}
	}
	if asked := l.Annotations[landscapev1alpha1.AnnotationSyncRequested]; f.next && f.request == "" && asked != f.asked {
		f.request = asked
	}
	if f.request != "" && !f.isTaken(l) {
		return say(receiver.PhaseQueued, "waiting for the operator")
	}
	if c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeGardenletsWorking); c != nil && !reconciles(l) {
		f.handled = false // what they make of it comes at their end
		return say(receiver.PhaseWaiting, c.Message)
	}
	// While anything goes on after a request, what has ended is not its sync: the operator ends the
	// one that it was at before.
	if r := f.record(l); r != nil && r.EndTime != nil && (f.request == "" || !reconciles(l)) {
		done := doneOf(*r, now)
		if ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady); f.request != "" && done.Err == "" && ready != nil && ready.Reason == reasonWaiting {
			// what was applied is not what was asked for
			done.Phase, done.Message = receiver.PhaseHeld, ready.Message
		}
		if source := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeSourceReady); f.request != "" && done.Err == "" && source != nil && source.Status == gardencorev1beta1.ConditionFalse {
			// what was applied is not what the source has now
			done.Phase, done.Err = receiver.PhaseFailed, source.Message
		}
		return []receiver.Progress{approvable(done, l)}
	}
	if p := f.still(l, now); p != nil {
		*p = approvable(*p, l)
		return []receiver.Progress{*p}
	}
	if op := l.Status.LastOperation; op != nil && op.State == gardencorev1beta1.LastOperationStateProcessing {
		return say(receiver.PhaseApplying, op.Description)
	}
	if p := f.held(l, now); p != nil {
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

// isTaken tells whether the operator has taken up the request, or one of somebody else that came in
// its place: it asks for the same, and later.
func (f *objectFollower) isTaken(l *landscapev1alpha1.Landscape) bool {
	last := l.Status.LastHandledSyncRequest
	f.taken = f.taken || last == f.request || last != "" && last == l.Annotations[landscapev1alpha1.AnnotationSyncRequested]
	return f.taken
}

// held is the end for who follows a commit that is not applied before somebody or something lets
// it; nil if it is.
func (f *objectFollower) held(l *landscapev1alpha1.Landscape, now time.Time) *receiver.Progress {
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	if f.commit == "" || ready == nil || reconciles(l) {
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

// still is the end of a request that came to nothing new: everything is as it has to be, or nothing
// is done.
func (f *objectFollower) still(l *landscapev1alpha1.Landscape, now time.Time) *receiver.Progress {
	if f.request == "" || reconciles(l) {
		f.handled = false
		return nil
	}
	if !f.handled { // the next look decides: the sync may begin only now
		f.handled = true
		return nil
	}
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	switch {
	case ready == nil:
		return nil
	case ready.Reason == reasonWaiting:
		return &receiver.Progress{Time: now, Phase: receiver.PhaseHeld, Message: ready.Message, Done: true}
	case ready.Status == gardencorev1beta1.ConditionTrue && !isHeld(l):
		return &receiver.Progress{Time: now, Phase: receiver.PhaseApplied, Message: ready.Message, Done: true}
	case ready.Reason == reasonSuspended:
		return &receiver.Progress{Time: now, Phase: receiver.PhaseHeld, Message: suspendedText(ready.Message, l.Namespace+"/"+l.Name), Done: true}
	case ready.Status == gardencorev1beta1.ConditionTrue:
		return &receiver.Progress{Time: now, Phase: receiver.PhaseHeld, Message: ready.Message, Done: true}
	}
	return &receiver.Progress{Time: now, Phase: receiver.PhaseFailed, Message: ready.Message, Err: ready.Message, Done: true}
}

// approvable adds to the end of a sync that is held how somebody lets it pass.
func approvable(p receiver.Progress, l *landscapev1alpha1.Landscape) receiver.Progress {
	if p.Phase == receiver.PhaseHeld && len(l.Status.Held) > 0 && isHeld(l) {
		p.Message += toApprove(l.Status.Held, l.Namespace+"/"+l.Name)
	}
	return p
}

// isHeld tells whether a Landscape says that something waits for an approval.
func isHeld(l *landscapev1alpha1.Landscape) bool {
	c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeHeld)
	return c != nil && c.Status == gardencorev1beta1.ConditionTrue
}

// reconciles tells whether a Landscape says that something goes on, other than that it is tried
// again later.
func reconciles(l *landscapev1alpha1.Landscape) bool {
	c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling)
	return c != nil && c.Reason != reasonRetrying
}

// record is the newest sync, if it is the one that is followed.
func (f *objectFollower) record(l *landscapev1alpha1.Landscape) *landscapev1alpha1.SyncRecord {
	for i := range l.Status.History {
		r := &l.Status.History[i]
		switch {
		case f.commit != "":
			if !strings.HasSuffix(r.Revision, f.commit) {
				continue
			}
			if at := appliedAt(&l.Status); at.commit == f.commit && at.folder != folderOf(l) && r.Result != landscapev1alpha1.SyncFailed {
				return nil // of the folder before
			}
			return r
		case f.former != nil && equality.Semantic.DeepEqual(r, f.former):
			return nil
		default:
			return r
		}
	}
	return nil
}

// doneOf is the last line about a sync.
func doneOf(r landscapev1alpha1.SyncRecord, now time.Time) receiver.Progress {
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
		out.Phase, out.Err = receiver.PhaseFailed, joined(r.Message, r.Gardenlets)
	}
	return out
}
