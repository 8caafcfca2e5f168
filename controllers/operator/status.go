// SPDX-License-Identifier: Apache-2.0

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
	client     client.Client
	apiReader  client.Reader // not from the cache
	holdsLease func() bool   // this replica surely holds the lease
	clock      clock.Clock
	log        *slog.Logger

	object *landscapev1alpha1.Landscape
	// serverStatus is the status in the API server; resourceVersion is a version of the object with
	// it.
	serverStatus    landscapev1alpha1.LandscapeStatus
	resourceVersion string
	// desired is the desired status; written is the last written one.
	desired, written landscapev1alpha1.LandscapeStatus
	isInitialized    bool
	// progressWrittenAt is when a change of progress alone was last written.
	progressWrittenAt time.Time
}

// progressWriteInterval is the minimum interval of writes for progress alone.
const progressWriteInterval = 2 * time.Second

func (w *statusWriter) setObject(object *landscapev1alpha1.Landscape) (first bool) {
	// Only the status of the first object counts; later the memory is newer.
	w.object = object
	if w.isInitialized {
		if equality.Semantic.DeepEqual(object.Status, w.serverStatus) {
			w.resourceVersion = object.ResourceVersion // only another part of it changed
		}
		return false
	}
	w.isInitialized = true
	w.serverStatus, w.resourceVersion = *object.Status.DeepCopy(), object.ResourceVersion
	w.desired, w.written = *object.Status.DeepCopy(), *object.Status.DeepCopy()
	// Older operators did not record the path.
	if w.desired.LastAppliedRevision != "" && w.desired.LastAppliedPath == "" {
		w.desired.LastAppliedPath = folderOf(object)
	}
	closeRecord(w.desired.History, w.clock.Now(), landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncInterrupted, Message: "the operator stopped during the sync"})
	return true
}

// setConditions updates the conditions and the attempted revision.
func (w *statusWriter) setConditions(v conditionInput, attempted string, generation int64) {
	b := condition.New(w.clock, nil)
	w.desired.Conditions = updateConditions(b, w.desired.Conditions, v)
	w.desired.ObservedGeneration, w.desired.HeldCount, w.desired.WaitingRevision = generation, int32(v.pending.awaitingApproval), ""
	if v.isWaiting() {
		w.desired.WaitingRevision = v.revisions.wanted
	}
	if attempted != "" {
		w.desired.LastAttemptedRevision = attempted
	}
}

// setNextSync sets when a failed or waiting sync is retried. Regular syncs are not worth a write.
func (w *statusWriter) setNextSync(at time.Time) {
	w.desired.NextSync = nil
	if !at.IsZero() {
		w.desired.NextSync = &metav1.Time{Time: at.Truncate(time.Second)}
	}
}

// openRecord opens a record of the history.
func (w *statusWriter) openRecord(r landscapev1alpha1.SyncRecord) {
	w.desired.History = prependRecord(w.desired.History, r)
}

// closeRecord closes the open record.
func (w *statusWriter) closeRecord(at time.Time, r landscapev1alpha1.SyncRecord) {
	closeRecord(w.desired.History, at, r)
}

// recordRejection records a revision that cannot be applied, and reports whether that is news. An
// invalid revision has one record, however often it is read.
func (w *statusWriter) recordRejection(r landscapev1alpha1.SyncRecord, message string, invalid bool) (news bool) {
	same, recorded := matchLastFailure(w.desired.History, r, message, invalid)
	if !recorded {
		w.openRecord(r)
		w.closeRecord(r.StartTime.Time, landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncFailed, Message: message})
	}
	return !same
}

// setOperation sets the last operation.
func (w *statusWriter) setOperation(state gardencorev1beta1.LastOperationState, progress int32, description string) {
	op := gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeReconcile, State: state, Progress: progress, Description: truncateMessage(description),
		LastUpdateTime: metav1.NewTime(w.clock.Now())}
	if last := w.desired.LastOperation; last != nil && last.State == op.State && last.Progress == op.Progress && last.Description == op.Description {
		return
	}
	w.desired.LastOperation = &op
}

// setErrors sets the errors of the last sync.
func (w *statusWriter) setErrors(problems []string) {
	w.desired.LastErrors = nil
	now := metav1.NewTime(w.clock.Now())
	for i, p := range problems {
		if i == 10 {
			w.desired.LastErrors = append(w.desired.LastErrors, gardencorev1beta1.LastError{Description: fmt.Sprintf("and %d more", len(problems)-i), LastUpdateTime: &now})
			return
		}
		w.desired.LastErrors = append(w.desired.LastErrors, gardencorev1beta1.LastError{Description: truncateMessage(p), Codes: condition.Codes(p), LastUpdateTime: &now})
	}
}

// writeIfChanged writes the status if it changed. It reports whether someone else wrote it, in
// which case nothing is written.
func (w *statusWriter) writeIfChanged(ctx context.Context) (overtaken bool) {
	if w.object == nil || equality.Semantic.DeepEqual(w.desired, w.written) {
		return false
	}
	if now := w.clock.Now(); w.isOnlyProgress() {
		if now.Sub(w.progressWrittenAt) < progressWriteInterval {
			return false
		}
		w.progressWrittenAt = now
	}
	err := w.write(ctx)
	if errors.Is(err, errWrittenByOther) {
		return true
	}
	if err != nil && ctx.Err() == nil {
		w.log.Error("cannot write the status of a Landscape", "landscape", client.ObjectKeyFromObject(w.object).String(), "error", err)
	}
	return false
}

// isOnlyProgress reports whether only the progress of the operation changed.
func (w *statusWriter) isOnlyProgress() bool {
	a, b := w.desired.LastOperation, w.written.LastOperation
	if a == nil || b == nil || a.State != b.State {
		return false
	}
	other := *w.desired.DeepCopy()
	other.LastOperation = b
	for i := range other.Conditions {
		if c := condition.Get(w.written.Conditions, other.Conditions[i].Type); c != nil && c.Status == other.Conditions[i].Status && c.Reason == other.Conditions[i].Reason {
			other.Conditions[i] = *c
		}
	}
	return equality.Semantic.DeepEqual(other, w.written)
}

// errWrittenByOther means that someone else wrote the status.
var errWrittenByOther = errors.New("another writer changed the status")

// writeAttempts limits retries after concurrent changes of the object.
const writeAttempts = 5

// write replaces the status, unless another operator wrote it or the object was recreated.
func (w *statusWriter) write(ctx context.Context) error {
	if !w.holdsLease() {
		return nil // the next holder writes it
	}
	var err error
	for range writeAttempts {
		// A status patch is not rejected for a wrong metadata.uid, only for a failed test.
		patch, problem := json.Marshal([]map[string]any{
			{"op": "test", "path": "/metadata/uid", "value": w.object.UID},
			{"op": "test", "path": "/metadata/resourceVersion", "value": w.resourceVersion},
			{"op": "add", "path": "/status", "value": w.desired},
		})
		if problem != nil {
			return problem
		}
		// Patch decodes into stored, where fields that the answer lacks would remain.
		stored := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: w.object.Namespace, Name: w.object.Name}}
		if err = w.client.Status().Patch(ctx, stored, client.RawPatch(types.JSONPatchType, patch)); err == nil {
			w.resourceVersion, w.serverStatus, w.written = stored.ResourceVersion, stored.Status, *w.desired.DeepCopy()
			return nil
		}
		if !isFailedPatchTest(err) {
			return client.IgnoreNotFound(err)
		}
		live := &landscapev1alpha1.Landscape{}
		if err := w.apiReader.Get(ctx, client.ObjectKeyFromObject(w.object), live); err != nil {
			return client.IgnoreNotFound(err)
		}
		switch {
		case live.UID != w.object.UID:
			return nil
		case !equality.Semantic.DeepEqual(live.Status, w.serverStatus):
			return errWrittenByOther
		}
		w.resourceVersion = live.ResourceVersion
	}
	return err
}

// isFailedPatchTest reports whether a test of a patch failed; the answer does not say which. The
// answer to an invalid status names the object.
func isFailedPatchTest(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// recordInterruption records that the operator ends.
func (w *statusWriter) recordInterruption(at time.Time) {
	if w.object == nil {
		return
	}
	w.closeRecord(at, landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncInterrupted, Message: "the operator stopped during the sync"})
	if op := w.desired.LastOperation; op != nil && op.State == gardencorev1beta1.LastOperationStateProcessing {
		w.setOperation(gardencorev1beta1.LastOperationStateAborted, op.Progress, "the operator stopped during the sync")
	}
	w.desired.Conditions = condition.Remove(w.desired.Conditions, landscapev1alpha1.LandscapeReconciling)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	w.writeIfChanged(ctx)
}

// notReadyReason returns why other Landscapes cannot depend on a Landscape, or "" if they can.
func notReadyReason(l *landscapev1alpha1.Landscape) string {
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	switch {
	case ready == nil:
		return "it has not been synced yet"
	case ready.Status != gardencorev1beta1.ConditionTrue:
		return fmt.Sprintf("it is not ready (%s)", ready.Reason)
	case l.Status.ObservedGeneration != l.Generation:
		return "its last change has not been reconciled yet"
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
