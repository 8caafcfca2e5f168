package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/source/receiver"
)

// followed is a Seed or Shoot that a sync has written: its gardenlet reconciles it now.
type followed struct {
	ref  apply.Ref
	told string
}

// wrote notes what a sync has written of what gardenlets look after. It is called by many goroutines.
func (j *job) wrote(r apply.ObjectResult) {
	gk := r.Ref.GVK().GroupKind()
	if gk.Group != gardencorev1beta1.SchemeGroupVersion.Group || gk.Kind != "Seed" && gk.Kind != "Shoot" {
		return
	}
	switch r.Action {
	case apply.Created, apply.Configured, apply.Adopted:
		j.mu.Lock()
		defer j.mu.Unlock()
		j.written = append(j.written, &followed{ref: r.Ref})
	}
}

// takeWritten gives what was written since the last time.
func (j *job) takeWritten() []*followed {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.written
	j.written = nil
	slices.SortFunc(out, func(a, b *followed) int { return strings.Compare(a.ref.String(), b.ref.String()) })
	return out
}

// gardenlets tells whoever follows the sync what the gardenlets make of it, until all are done. It looks at what is in memory:
// the virtual garden is not asked.
func (s *syncer) gardenlets(ctx context.Context, j *job, waiting []*followed, message string) {
	virtual := j.converger.Cluster(landscape.Virtual)
	commit := j.revision.Commit
	say := func(text string) {
		s.hub.tell(commit, receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseWaiting, Message: text})
	}
	say(message + "; waiting for the gardenlets: " + names(waiting))
	timer := s.Clock.NewTimer(lookAgain(len(waiting)))
	defer timer.Stop()
	var failed []string
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		var rest []*followed
		for _, f := range waiting {
			live, err := virtual.Get(ctx, f.ref)
			state, text := gardencorev1beta1.LastOperationStatePending, ""
			switch {
			case apierrors.IsNotFound(err):
				continue
			case err == nil:
				state, text = operationOf(live)
			}
			if text != "" && text != f.told {
				f.told = text
				say(f.ref.Kind + " " + f.ref.Name + ": " + text)
			}
			switch state {
			case gardencorev1beta1.LastOperationStateSucceeded:
			case gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateAborted:
				failed = append(failed, fmt.Sprintf("%s %s: %s", f.ref.Kind, f.ref.Name, text))
			default:
				rest = append(rest, f)
			}
		}
		waiting = rest
		timer.Reset(lookAgain(len(waiting)))
	}
	done := receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseApplied, Message: message, Done: true}
	if len(failed) > 0 {
		done.Phase, done.Err = receiver.PhaseFailed, listed(failed)
	}
	s.hub.tell(commit, done)
}

// lookAgain is how long to wait before objects are looked at again: a second for a few. Thousands, as the first sync of a landscape
// writes them, are looked at less often: each look copies every object, and it may go on for as long as a sync may take.
func lookAgain(objects int) time.Duration {
	return time.Second + time.Duration(objects)*10*time.Millisecond
}

func names(list []*followed) string {
	var out []string
	for i, f := range list {
		if i == shownProblems && len(list) > shownProblems+1 {
			out = append(out, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		out = append(out, f.ref.Kind+" "+f.ref.Name)
	}
	return strings.Join(out, ", ")
}

// operationOf is the last operation of an object as far as it is about its present generation.
func operationOf(live *unstructured.Unstructured) (gardencorev1beta1.LastOperationState, string) {
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration") // of another form it is 0
	if observed < live.GetGeneration() {
		return gardencorev1beta1.LastOperationStatePending, ""
	}
	op, _, _ := unstructured.NestedMap(live.Object, "status", "lastOperation")
	state, _ := op["state"].(string)
	description, _ := op["description"].(string)
	progress, _ := op["progress"].(int64)
	if state == "" {
		return gardencorev1beta1.LastOperationStatePending, ""
	}
	return gardencorev1beta1.LastOperationState(state), shortened(fmt.Sprintf("%s (%d%%): %s", state, progress, description))
}
