package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
)

// statusWriter holds the status of a Landscape and writes it when it differs from what was written
// last. Nobody else writes it.
type statusWriter struct {
	client client.Client
	live   client.Reader // not from memory
	sure   func() bool   // nobody else can be at work
	clock  clock.Clock
	log    *slog.Logger

	object *landscapev1alpha1.Landscape
	// stored is the status as the API server has it, in a version of the object that had it.
	stored  landscapev1alpha1.LandscapeStatus
	version string
	// now is the status as it has to be, written as it was written last.
	now, written landscapev1alpha1.LandscapeStatus
	known        bool
	// progressed is when mere progress was written last.
	progressed time.Time
}

// progressEvery is how often mere progress is written.
const progressEvery = 2 * time.Second

// of takes the object; its status counts at the first time, afterwards what is in memory is newer.
func (w *statusWriter) of(object *landscapev1alpha1.Landscape) (first bool) {
	w.object = object
	if w.known {
		if equality.Semantic.DeepEqual(object.Status, w.stored) {
			w.version = object.ResourceVersion // something else of it was changed
		}
		return false
	}
	w.known = true
	w.stored, w.version = *object.Status.DeepCopy(), object.ResourceVersion
	w.now, w.written = *object.Status.DeepCopy(), *object.Status.DeepCopy()
	// of an operator that did not note it
	if w.now.LastAppliedRevision != "" && w.now.LastAppliedPath == "" {
		w.now.LastAppliedPath = folderOf(object)
	}
	ended(w.now.History, w.clock.Now(), landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncInterrupted, Message: "the operator ended in the middle of it"})
	return true
}

// set brings the conditions up to date, and says which revision was tried last.
func (w *statusWriter) set(v view, attempted string, generation int64) {
	b := condition.New(w.clock, nil)
	w.now.Conditions = conditions(b, w.now.Conditions, v)
	w.now.ObservedGeneration, w.now.HeldCount, w.now.WaitingRevision = generation, int32(v.withheld.heldWaiting), ""
	if v.waits() {
		w.now.WaitingRevision = v.is.wanted
	}
	if attempted != "" {
		w.now.LastAttemptedRevision = attempted
	}
}

// next says when a sync that failed or waits is tried again. Those that are only due again some
// time are not worth a write.
func (w *statusWriter) next(at time.Time) {
	w.now.NextSync = nil
	if !at.IsZero() {
		w.now.NextSync = &metav1.Time{Time: at.Truncate(time.Second)}
	}
}

// begun opens a record of the history.
func (w *statusWriter) begun(r landscapev1alpha1.SyncRecord) {
	w.now.History = begun(w.now.History, r)
}

// ended closes it.
func (w *statusWriter) ended(at time.Time, r landscapev1alpha1.SyncRecord) {
	ended(w.now.History, at, r)
}

// refused notes a revision that cannot be applied, and tells whether that is news. An invalid one
// is recorded once, however often it is read.
func (w *statusWriter) refused(r landscapev1alpha1.SyncRecord, message string, invalid bool) (news bool) {
	same, recorded := repeats(w.now.History, r, message, invalid)
	if !recorded {
		w.begun(r)
		w.ended(r.StartTime.Time, landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncFailed, Message: message})
	}
	return !same
}

// operation says how far a sync is.
func (w *statusWriter) operation(state gardencorev1beta1.LastOperationState, progress int32, description string) {
	op := gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeReconcile, State: state, Progress: progress, Description: shortened(description),
		LastUpdateTime: metav1.NewTime(w.clock.Now())}
	if last := w.now.LastOperation; last != nil && last.State == op.State && last.Progress == op.Progress && last.Description == op.Description {
		return
	}
	w.now.LastOperation = &op
}

// errors of the last sync.
func (w *statusWriter) errors(problems []string) {
	w.now.LastErrors = nil
	now := metav1.NewTime(w.clock.Now())
	for i, p := range problems {
		if i == 10 {
			w.now.LastErrors = append(w.now.LastErrors, gardencorev1beta1.LastError{Description: fmt.Sprintf("and %d more", len(problems)-i), LastUpdateTime: &now})
			return
		}
		w.now.LastErrors = append(w.now.LastErrors, gardencorev1beta1.LastError{Description: shortened(p), Codes: condition.Codes(p), LastUpdateTime: &now})
	}
}

// flush writes the status, if there is something new. It tells whether somebody else has written
// it, so that nothing was.
func (w *statusWriter) flush(ctx context.Context) (overtaken bool) {
	if w.object == nil || equality.Semantic.DeepEqual(w.now, w.written) {
		return false
	}
	if now := w.clock.Now(); w.onlyProgress() {
		if now.Sub(w.progressed) < progressEvery {
			return false
		}
		w.progressed = now
	}
	err := w.write(ctx)
	if errors.Is(err, errOvertaken) {
		return true
	}
	if err != nil && ctx.Err() == nil {
		w.log.Error("the status of a Landscape cannot be written", "landscape", client.ObjectKeyFromObject(w.object).String(), "error", err)
	}
	return false
}

// onlyProgress tells whether nothing is new but how far the operation is.
func (w *statusWriter) onlyProgress() bool {
	a, b := w.now.LastOperation, w.written.LastOperation
	if a == nil || b == nil || a.State != b.State {
		return false
	}
	other := *w.now.DeepCopy()
	other.LastOperation = b
	for i := range other.Conditions {
		if c := condition.Get(w.written.Conditions, other.Conditions[i].Type); c != nil && c.Status == other.Conditions[i].Status && c.Reason == other.Conditions[i].Reason {
			other.Conditions[i] = *c
		}
	}
	return equality.Semantic.DeepEqual(other, w.written)
}

// errOvertaken says that the status is not what was written last.
var errOvertaken = errors.New("somebody else has written the status")

// attempts to write beside people who change the object, each of which changes its version.
const writeAttempts = 5

// write replaces the status that is known by the one that has to be. Nothing is written over what
// another operator has written meanwhile, nor to an object that was made anew under the name.
func (w *statusWriter) write(ctx context.Context) error {
	if !w.sure() {
		return nil // the next one writes it
	}
	var err error
	for range writeAttempts {
		// A patch of a status is not refused for a wrong metadata.uid, only for a test that fails.
		patch, problem := json.Marshal([]map[string]any{
			{"op": "test", "path": "/metadata/uid", "value": w.object.UID},
			{"op": "test", "path": "/metadata/resourceVersion", "value": w.version},
			{"op": "add", "path": "/status", "value": w.now},
		})
		if problem != nil {
			return problem
		}
		// The answer is read into it, which leaves what is not in the answer.
		stored := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: w.object.Namespace, Name: w.object.Name}}
		if err = w.client.Status().Patch(ctx, stored, client.RawPatch(types.JSONPatchType, patch)); err == nil {
			w.version, w.stored, w.written = stored.ResourceVersion, stored.Status, *w.now.DeepCopy()
			return nil
		}
		if !isRefused(err) {
			return client.IgnoreNotFound(err)
		}
		live := &landscapev1alpha1.Landscape{}
		if err := w.live.Get(ctx, client.ObjectKeyFromObject(w.object), live); err != nil {
			return client.IgnoreNotFound(err)
		}
		switch {
		case live.UID != w.object.UID:
			return nil
		case !equality.Semantic.DeepEqual(live.Status, w.stored):
			return errOvertaken
		}
		w.version = live.ResourceVersion
	}
	return err
}

// isRefused tells whether a test of a patch failed. The answer does not say which one it was, other
// than that to a status which is invalid: that names the object.
func isRefused(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// interrupted says that the operator ends.
func (w *statusWriter) interrupted(at time.Time) {
	if w.object == nil {
		return
	}
	w.ended(at, landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncInterrupted, Message: "the operator ended in the middle of it"})
	if op := w.now.LastOperation; op != nil && op.State == gardencorev1beta1.LastOperationStateProcessing {
		w.operation(gardencorev1beta1.LastOperationStateAborted, op.Progress, "the operator ended in the middle of it")
	}
	w.now.Conditions = condition.Remove(w.now.Conditions, landscapev1alpha1.LandscapeReconciling)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	w.flush(ctx)
}

// notReady says why a Landscape is none that others can build on; empty if it is.
func notReady(l *landscapev1alpha1.Landscape) string {
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	switch {
	case ready == nil:
		return "it was not synced yet"
	case ready.Status != gardencorev1beta1.ConditionTrue:
		return fmt.Sprintf("it is not ready (%s)", ready.Reason)
	case l.Status.ObservedGeneration != l.Generation:
		return "its last change was not looked at yet"
	}
	return ""
}

// commitOf takes the commit out of a revision, main@sha1:0a1b….
func commitOf(revision string) string {
	name := revision
	if _, after, ok := strings.Cut(revision, "@"); ok {
		name = after
	}
	if after, ok := strings.CutPrefix(name, "sha1:"); ok {
		return after
	}
	return name
}
