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

// statusWriter holds the status of a Landscape and writes its changes. It is the only writer.
type statusWriter struct {
	client client.Client
	live   client.Reader // not from the cache
	sure   func() bool   // this replica surely holds the lease
	clock  clock.Clock
	log    *slog.Logger

	object *landscapev1alpha1.Landscape
	// stored is the status in the API server, version a resourceVersion of the object with it.
	stored  landscapev1alpha1.LandscapeStatus
	version string
	// now is the desired status, written the last written one.
	now, written landscapev1alpha1.LandscapeStatus
	known        bool
	// progressed is when a change of progress alone was last written.
	progressed time.Time
}

// progressEvery is the minimum interval of writes for progress alone.
const progressEvery = 2 * time.Second

func (w *statusWriter) of(object *landscapev1alpha1.Landscape) (first bool) {
	// Only the status of the first object counts; later the memory is newer.
	w.object = object
	if w.known {
		if equality.Semantic.DeepEqual(object.Status, w.stored) {
			w.version = object.ResourceVersion // only another part of it changed
		}
		return false
	}
	w.known = true
	w.stored, w.version = *object.Status.DeepCopy(), object.ResourceVersion
	w.now, w.written = *object.Status.DeepCopy(), *object.Status.DeepCopy()
	// Older operators did not record the path.
	if w.now.LastAppliedRevision != "" && w.now.LastAppliedPath == "" {
		w.now.LastAppliedPath = folderOf(object)
	}
	ended(w.now.History, w.clock.Now(), landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncInterrupted, Message: "the operator ended in the middle of it"})
	return true
}

// set updates the conditions and the attempted revision.
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

// next sets when a failed or waiting sync is retried. Regular syncs are not worth a write.
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

// ended closes the open record.
func (w *statusWriter) ended(at time.Time, r landscapev1alpha1.SyncRecord) {
	ended(w.now.History, at, r)
}

// refused records a revision that cannot be applied, and reports whether that is news. An invalid
// revision has one record, however often it is read.
func (w *statusWriter) refused(r landscapev1alpha1.SyncRecord, message string, invalid bool) (news bool) {
	same, recorded := repeats(w.now.History, r, message, invalid)
	if !recorded {
		w.begun(r)
		w.ended(r.StartTime.Time, landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncFailed, Message: message})
	}
	return !same
}

// operation sets the last operation.
func (w *statusWriter) operation(state gardencorev1beta1.LastOperationState, progress int32, description string) {
	op := gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeReconcile, State: state, Progress: progress, Description: shortened(description),
		LastUpdateTime: metav1.NewTime(w.clock.Now())}
	if last := w.now.LastOperation; last != nil && last.State == op.State && last.Progress == op.Progress && last.Description == op.Description {
		return
	}
	w.now.LastOperation = &op
}

// errors sets the errors of the last sync.
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

// flush writes the status if it changed. It reports whether somebody else wrote it, in which case
// nothing is written.
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

// onlyProgress reports whether only the progress of the operation changed.
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

// errOvertaken means that somebody else wrote the status.
var errOvertaken = errors.New("somebody else has written the status")

// writeAttempts limits retries after concurrent changes of the object.
const writeAttempts = 5

// write replaces the status, unless another operator wrote it or the object was recreated.
func (w *statusWriter) write(ctx context.Context) error {
	if !w.sure() {
		return nil // the next holder writes it
	}
	var err error
	for range writeAttempts {
		// A status patch is not rejected for a wrong metadata.uid, only for a failed test.
		patch, problem := json.Marshal([]map[string]any{
			{"op": "test", "path": "/metadata/uid", "value": w.object.UID},
			{"op": "test", "path": "/metadata/resourceVersion", "value": w.version},
			{"op": "add", "path": "/status", "value": w.now},
		})
		if problem != nil {
			return problem
		}
		// Patch decodes into stored, where fields that the answer lacks would remain.
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

// isRefused reports whether a test of a patch failed; the answer does not say which. The answer to
// an invalid status names the object.
func isRefused(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// interrupted records that the operator ends.
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

// notReady returns why other Landscapes cannot depend on a Landscape; empty if they can.
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

// commitOf returns the commit of a revision such as main@sha1:0a1b….
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
