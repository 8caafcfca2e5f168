// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/rotation"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/internal/printable"
)

// progressInterval is the minimum time between writes of progress (upstream: 5 s).
const progressInterval = 5 * time.Second

// commonStatus is the part of a status that all owners share.
type commonStatus struct {
	Conditions         []gardencorev1beta1.Condition    `json:"conditions,omitempty"`
	LastOperation      *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	LastErrors         []gardencorev1beta1.LastError    `json:"lastErrors,omitempty"`
	ObservedGeneration int64                            `json:"observedGeneration,omitempty"`
}

// ReadStatus reads the live status of an owner, from the cache if possible.
func ReadStatus(ctx context.Context, c *apply.Cluster, ref apply.Ref) (*unstructured.Unstructured, commonStatus, error) {
	var status commonStatus
	obj, err := c.Get(ctx, ref)
	if err != nil {
		obj, err = c.GetLive(ctx, ref)
	}
	if err != nil {
		return nil, status, c.Explain(ref, "read", err)
	}
	status, err = decodeStatus(c, ref, obj)
	return obj, status, err
}

func decodeStatus(c *apply.Cluster, ref apply.Ref, obj *unstructured.Unstructured) (status commonStatus, err error) {
	content, _, _ := unstructured.NestedMap(obj.Object, "status")
	if content == nil {
		return status, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		return status, fmt.Errorf("status of %s on cluster %s: %w", ref, c.Name(), err)
	}
	return status, nil
}

// readStatus is ReadStatus, without a request if the live object is known.
func (o *ownerSession) readStatus(ctx context.Context) (*unstructured.Unstructured, commonStatus, error) {
	if o.CachedObject != nil {
		if obj := o.CachedObject(); obj != nil {
			status, err := decodeStatus(o.ObjectCluster, o.Ref, obj)
			return obj, status, err
		}
	}
	return ReadStatus(ctx, o.ObjectCluster, o.Ref)
}

// statusWriter writes lastOperation of one reconciliation.
type statusWriter struct {
	reconciler *Reconciler
	owner      *ownerSession
	generation int64
	// deleting means that the operation is a deletion.
	deleting bool
	// requestedOperation is the requested operation; it is nil for none.
	requestedOperation *RequestedOperation
	// write sends fields of the status.
	write func(ctx context.Context, fields map[string]any) error

	mu        sync.Mutex
	operation gardencorev1beta1.LastOperation
	lastWrite time.Time
	// hasProgress means that there is progress to write; isWriting means that a goroutine writes
	// it.
	hasProgress, isWriting bool
	writers                sync.WaitGroup
	stopped                chan struct{}
	stopOnce               sync.Once
}

func (r *Reconciler) newStatus(o *ownerSession) *statusWriter {
	s := &statusWriter{reconciler: r, owner: o, stopped: make(chan struct{})}
	s.write = s.patch
	return s
}

// startReconcile is start for reconciliations: it also starts the requested operations. refused is
// the error of impossible ones.
func (s *statusWriter) startReconcile(ctx context.Context) (refused, err error) {
	o := s.owner
	if !o.hasRotations() {
		return nil, s.start(ctx)
	}
	live, err := o.ObjectCluster.GetLive(ctx, o.Ref)
	if err != nil {
		return nil, o.ObjectCluster.Explain(o.Ref, "read", err)
	}
	status, err := decodeStatus(o.ObjectCluster, o.Ref, live)
	if err != nil {
		return nil, err
	}
	fields, asked, refused, err := s.reconciler.startOperations(ctx, o, live, metav1.NewTime(s.reconciler.Clock.Now()))
	if err != nil {
		return nil, err
	}
	if err := s.writeProcessing(ctx, live, status, fields); err != nil {
		return nil, err
	}
	s.requestedOperation = newRequestedOperation(o, live, asked)
	return refused, o.removeOperation(ctx, asked)
}

// start sets the operation to Processing.
func (s *statusWriter) start(ctx context.Context) error {
	obj, status, err := s.owner.readStatus(ctx)
	if err != nil {
		return err
	}
	return s.writeProcessing(ctx, obj, status, nil)
}

// writeProcessing sets the operation to Processing, with other fields.
func (s *statusWriter) writeProcessing(ctx context.Context, obj *unstructured.Unstructured, status commonStatus, besides map[string]any) error {
	s.generation = obj.GetGeneration()
	s.operation = gardencorev1beta1.LastOperation{
		Type: operationType(s.owner.Input.Owner.Kind, status.LastOperation), State: gardencorev1beta1.LastOperationStateProcessing,
		Description: "Reconciliation of " + s.owner.Ref.Kind + " " + s.owner.Ref.Name + " initialized.", LastUpdateTime: metav1.NewTime(s.reconciler.Clock.Now()),
	}
	if s.deleting {
		s.operation.Type = gardencorev1beta1.LastOperationTypeDelete
		s.operation.Description = "Deletion of " + s.owner.Ref.Kind + " " + s.owner.Ref.Name + " initialized."
	}
	s.lastWrite = s.reconciler.Clock.Now()
	fields := map[string]any{"lastOperation": s.operation, "gardener": s.reconciler.Gardener}
	maps.Copy(fields, s.identityFields())
	maps.Copy(fields, besides)
	return s.write(ctx, fields)
}

// identityFields returns the status fields that identify an owner.
func (s *statusWriter) identityFields() map[string]any {
	in := s.owner.Input
	switch in.Owner.Kind {
	case Shoot:
	case Garden:
		return map[string]any{"advertisedAddresses": advertisedAddresses(in.Objects[Garden]), "observedGeneration": s.generation}
	default:
		return nil
	}
	out := map[string]any{"technicalID": in.Owner.ControlPlaneNamespace, "uid": in.Owner.UID}
	if spec, ok := in.Objects["shoot"]["spec"].(map[string]any); ok {
		if seed, ok := spec["seedName"].(string); ok && seed != "" {
			out["seedName"] = seed
		}
	}
	return out
}

// recordProgress records the state of the flow. It is written at most once per interval, and the
// newest state is always written. round describes the current pass of several; the result is empty
// for one.
func (s *statusWriter) recordProgress(e flow.Event, round string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	percent, description := int32(min(e.Progress.Percent, 99)), fmt.Sprintf("%s: %s", e.ID, e.State)
	if e.MessageOnly {
		description = printable.Truncate(fmt.Sprintf("%s waits: %s", e.ID, e.Message), maxMessageLength)
	}
	if round != "" {
		description += " (" + round + ")"
	}
	if percent == s.operation.Progress && description == s.operation.Description {
		return
	}
	s.operation.Progress, s.operation.Description, s.hasProgress = percent, description, true
	if !s.isWriting {
		s.isWriting = true
		s.writers.Go(s.writeProgress)
	}
}

// writeProgress writes new progress once per interval until there is none.
func (s *statusWriter) writeProgress() {
	for s.waitForProgress() {
		s.mu.Lock()
		s.hasProgress, s.lastWrite = false, s.reconciler.Clock.Now()
		s.operation.LastUpdateTime = metav1.NewTime(s.lastWrite)
		operation := s.operation
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), progressInterval)
		// Progress is optional: an error here would hide important ones.
		_ = s.write(ctx, map[string]any{"lastOperation": operation})
		cancel()
	}
}

// waitForProgress waits until progress may be written; it returns false without new progress.
func (s *statusWriter) waitForProgress() bool {
	s.mu.Lock()
	s.isWriting = s.hasProgress
	again, wait := s.hasProgress, progressInterval-s.reconciler.Clock.Since(s.lastWrite)
	s.mu.Unlock()
	if !again {
		return false
	}
	if wait > 0 {
		timer := s.reconciler.Clock.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-s.stopped:
		}
	}
	select {
	case <-s.stopped:
		return false
	default:
		return true
	}
}

// stop ends the writing of progress, without waiting for the current write.
func (s *statusWriter) stop() { s.stopOnce.Do(func() { close(s.stopped) }) }

// finish writes the outcome.
func (s *statusWriter) finish(ctx context.Context, cause error) error {
	return s.writeOutcome(ctx, apply.Problems(cause))
}

// writeOutcome writes the problems, or success.
func (s *statusWriter) writeOutcome(ctx context.Context, problems []string) error {
	s.stop()
	s.writers.Wait()
	now := metav1.NewTime(s.reconciler.Clock.Now())
	op := s.operation
	op.LastUpdateTime = now
	fields := map[string]any{"observedGeneration": s.generation}
	if len(problems) == 0 {
		op.State, op.Progress = gardencorev1beta1.LastOperationStateSucceeded, 100
		op.Description = s.owner.Ref.Kind + " " + s.owner.Ref.Name + " has been successfully " + s.participleOfOperation() + "."
		if settingsByKind[s.owner.Input.Owner.Kind].hasLastErrors {
			fields["lastErrors"] = nil
		}
	} else {
		text := strings.Join(problems, "; ")
		op.State, op.Description = gardencorev1beta1.LastOperationStateError, text
		if s.reconciler.RetriesFailures {
			op.Description = strings.TrimSuffix(text, ".") + ". Operation will be retried."
		}
		if settingsByKind[s.owner.Input.Owner.Kind].hasLastErrors {
			fields["lastErrors"] = []gardencorev1beta1.LastError{{Description: text, Codes: condition.Codes(text), LastUpdateTime: &now}}
		}
	}
	fields["lastOperation"] = op
	return s.write(ctx, fields)
}

// participleOfOperation returns the past participle of the operation.
func (s *statusWriter) participleOfOperation() string {
	if s.deleting {
		return "deleted"
	}
	return "reconciled"
}

// writeInterrupted sets the operation to Pending: a stopped process or newer input is not an error.
// Earlier failures are errors.
func (s *statusWriter) writeInterrupted(ctx context.Context, cause error) error {
	if failed := apply.Failures(cause); len(failed) > 0 {
		return s.writeOutcome(ctx, failed)
	}
	s.stop()
	s.writers.Wait()
	op := s.operation
	op.State, op.LastUpdateTime = gardencorev1beta1.LastOperationStatePending, metav1.NewTime(s.reconciler.Clock.Now())
	op.Description = "It was interrupted, and continues with the next reconciliation."
	return s.write(ctx, map[string]any{"lastOperation": op})
}

func (s *statusWriter) patch(ctx context.Context, fields map[string]any) error {
	_, err := s.owner.ObjectCluster.MergePatch(ctx, s.owner.Ref, map[string]any{"status": fields}, settingsByKind[s.owner.Input.Owner.Kind].fieldManager, "status")
	if err != nil {
		return s.owner.ObjectCluster.Explain(s.owner.Ref, "write the status", err)
	}
	return nil
}

// OwnerStatus is the content of an owner's status.
type OwnerStatus struct {
	LastOperation *gardencorev1beta1.LastOperation
	Conditions    []gardencorev1beta1.Condition
	// Rotations describes the unfinished rotations of credentials for people.
	Rotations []string
}

// ReadOwnerStatus reads the status of an owner.
func ReadOwnerStatus(ctx context.Context, c *apply.Cluster, ref apply.Ref) (OwnerStatus, error) {
	live, status, err := ReadStatus(ctx, c, ref)
	out := OwnerStatus{LastOperation: status.LastOperation, Conditions: status.Conditions}
	// settingsByKind of owners are the kinds of their objects in lower case
	if err != nil || len(settingsByKind[strings.ToLower(ref.Kind)].encryptingAPIServers) == 0 {
		return out, err
	}
	content, _, _ := unstructured.NestedMap(live.Object, "status")
	state, err := rotation.ReadState(content)
	if err != nil {
		return out, fmt.Errorf("%s on cluster %s: %w", ref, c.Name(), err)
	}
	out.Rotations = state.Describe()
	return out, nil
}
