// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// Operations of operations/ are executed exactly once. First, the intent and the UID of the object
// are recorded. Then one write sets the annotation of the operation together with its id. Then the
// record is completed. After a crash in between, the id on the object shows whether the request
// arrived. Records are never deleted: an id is used once.

// AnnotationOperationID on an object is the id of its last operation from a landscape.
const AnnotationOperationID = "landscape.pergola.dev/operation-id"

const (
	operationsBundle = "operations"
	operationPrefix  = "op."
	managerOperation = "pergola-operate"
	// maxShownOperations limits the operations in a status.
	maxShownOperations = 50
)

// States of a record.
const (
	operationIntended = "intended"
	operationDone     = "done"
	operationExpired  = "expired"
)

// operationRecord is the record of one operation.
type operationRecord struct {
	Digest    string    `json:"digest"`
	Object    string    `json:"object"`
	Operation string    `json:"operation"`
	State     string    `json:"state"`
	UID       types.UID `json:"uid,omitempty"`
	At        time.Time `json:"at"`
}

// operationLedger has the records of a landscape, read from the server because the live cache may
// be late.
type operationLedger struct {
	converger *Converger
	ref       apply.Ref
	version   string
	byID      map[string]operationRecord
}

func (c *Converger) operationRecords(ctx context.Context) (*operationLedger, error) {
	r := &operationLedger{converger: c, ref: configMapRef, byID: map[string]operationRecord{}}
	r.ref.Namespace, r.ref.Name = owner.InventoryNamespace, inventoryName(c.landscape.Config.Name, operationsBundle)
	return r, r.read(ctx)
}

func (r *operationLedger) read(ctx context.Context) error {
	live, err := r.converger.connections.clusters[Runtime].GetLive(ctx, r.ref)
	if apierrors.IsNotFound(err) {
		r.version = ""
		return nil
	}
	if err != nil {
		return r.converger.connections.clusters[Runtime].Explain(r.ref, "read", err)
	}
	r.version = live.GetResourceVersion()
	data, _, _ := unstructured.NestedStringMap(live.Object, "data")
	for key, text := range data {
		id, is := strings.CutPrefix(key, operationPrefix)
		var record operationRecord
		if !is {
			continue
		}
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			return fmt.Errorf("%s: the record of operation %s cannot be read: restore the ConfigMap; without it operations could be executed twice: %w", r.ref, id, err)
		}
		r.byID[id] = record
	}
	return nil
}

// write stores the record of one operation, unless the records have changed since they were read.
func (r *operationLedger) write(ctx context.Context, id string, record operationRecord) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if r.version == "" {
		if err := r.converger.writeRecord(ctx, r.ref, operationsBundle, map[string]any{}, managerRecords); err != nil {
			return err
		}
		if err := r.read(ctx); err != nil {
			return err
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": r.version}, "data": map[string]any{operationPrefix + id: string(text)}})
	if err != nil {
		return err
	}
	answer, err := r.converger.configMapClient().Patch(ctx, r.ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: managerOperation})
	if err != nil {
		return r.converger.connections.clusters[Runtime].Explain(r.ref, "write", err)
	}
	r.version, r.byID[id] = answer.GetResourceVersion(), record
	return nil
}

// maxOperationTries limits the attempts for an operation in one run when others write the object.
const maxOperationTries = 5

// runOperations executes the pending operations on objects of one cluster. An operation that waits
// for another one is reported without an error; an operation that the object cannot run is an
// error. The next run retries both.
func (c *Converger) runOperations(ctx context.Context, cluster string) error {
	if c.connections.clusters[Runtime] == nil || c.connections.clusters[cluster] == nil || len(c.landscape.Operations) == 0 && !c.hasOperationRecords(ctx) {
		return nil
	}
	records, err := c.operationRecords(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, o := range c.landscape.Operations {
		if ctx.Err() != nil || operationCluster(o.Kind) != cluster {
			continue
		}
		_, asked := records.byID[o.ID]
		err := c.runOperation(ctx, records, o)
		// After a conflict, repeat the read; the object may no longer be able to run the operation.
		for tries := 1; apierrors.IsConflict(err) && tries < maxOperationTries && ctx.Err() == nil; tries++ {
			err = c.runOperation(ctx, records, o)
		}
		var impossible *OperationNotPossibleError
		switch {
		case errors.As(err, &impossible) && impossible.IsQueued():
			c.reportPending(o, c.queueReason(o, impossible, records), false)
		case err != nil:
			problems = append(problems, fmt.Errorf("%s:%d: operation %s, %s on %s: %w", o.File, o.Line, o.ID, o.Operation, o.Object(), err))
		default:
			c.reportPending(o, c.notStartedReason(o, records.byID[o.ID], asked), records.byID[o.ID].State == operationExpired)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.currentRun.report.Operations = records.executedOperations()
	return errors.Join(problems...)
}

// reportPending adds a pending operation to the report, if there is a reason.
func (c *Converger) reportPending(o landscapes.Operation, why pendingReason, expired bool) {
	if why.localText == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.currentRun.report.PendingOperations = append(c.currentRun.report.PendingOperations, PendingOperation{ID: o.ID, Object: o.Object(), Operation: o.Operation, Reason: why.localText, PortableReason: why.portableText, Expired: expired})
}

// pendingReason is why an operation is pending: for people with the landscape, and for people who
// may use another cluster.
type pendingReason struct{ localText, portableText string }

func samePendingReason(text string) pendingReason { return pendingReason{text, text} }

// notStartedReason returns why a recorded operation has not started; the result is empty if it has,
// or if that is unknown. A recent one may start in a moment, unless no part of Pergola runs it. It
// uses the live cache without a request.
func (c *Converger) notStartedReason(o landscapes.Operation, record operationRecord, before bool) pendingReason {
	cluster := c.connections.clusters[operationCluster(o.Kind)]
	if record.State == operationExpired {
		return samePendingReason(fmt.Sprintf("it expired (notAfter %s) before it could be executed; remove its file, and add one with another name if it is still needed", o.NotAfter.UTC().Format(time.RFC3339)))
	}
	// The text stays equal while it waits, so that it is reported once.
	waits := func(asked *unstructured.Unstructured) pendingReason {
		but := ""
		if !isImplemented(o.Kind, o.Operation) {
			but = ", but no part of Pergola implements it in this version"
		}
		text := fmt.Sprintf("it was requested %s%s: %s; ", record.At.UTC().Format(time.RFC3339), but, schemas.PendingOperationMessage(asked))
		return pendingReason{localText: text + cluster.RewriteKubectlOrNameCluster(schemas.WithdrawCommand(asked)), portableText: text + schemas.WithdrawAdvice}
	}
	if !before && record.State == operationDone && o.Operation != schemas.OperationConfirmDeletion && !isImplemented(o.Kind, o.Operation) {
		asked := &unstructured.Unstructured{} // not in the cache yet
		asked.SetKind(o.Kind)
		asked.SetNamespace(o.Namespace)
		asked.SetName(o.Name)
		asked.SetAnnotations(map[string]string{annotationOperation: o.Operation})
		return waits(asked)
	}
	live := cluster.Cached(c.operationTargetOf(o))
	if isImplemented(o.Kind, o.Operation) && c.options.Clock.Since(record.At) < operationStartTime || !before || live == nil || live.GetAnnotations()[AnnotationOperationID] != c.operationMark(o.ID) || live.GetAnnotations()[annotationOperation] != o.Operation {
		return pendingReason{}
	}
	return waits(live)
}

// hasOperationRecords checks the live cache, so a landscape without operations causes no request.
func (c *Converger) hasOperationRecords(ctx context.Context) bool {
	ref := configMapRef
	ref.Namespace, ref.Name = owner.InventoryNamespace, inventoryName(c.landscape.Config.Name, operationsBundle)
	_, err := c.connections.clusters[Runtime].Get(ctx, ref)
	return err == nil
}

func operationCluster(kind string) string {
	if kind == "Garden" {
		return Runtime
	}
	return Virtual
}

func (c *Converger) runOperation(ctx context.Context, records *operationLedger, o landscapes.Operation) error {
	record, known := records.byID[o.ID]
	switch {
	case known && record.Digest != o.Digest:
		return fmt.Errorf("its file changed after it was recorded (%s on %s, %s): an id counts once; use another file name for another operation", record.Operation, record.Object, record.State)
	case known && record.State != operationIntended:
		return nil
	case !known && !o.NotAfter.IsZero() && c.options.Clock.Now().After(o.NotAfter):
		record = operationRecord{Digest: o.Digest, Object: o.Object(), Operation: o.Operation, State: operationExpired, At: c.options.Clock.Now().UTC()}
		return records.write(ctx, o.ID, record)
	}
	target := c.operationTargetOf(o)
	live, err := c.connections.clusters[operationCluster(o.Kind)].GetLive(ctx, target)
	gone := apierrors.IsNotFound(err)
	switch {
	case meta.IsNoMatchError(err), gone && !known:
		return fmt.Errorf("cluster %s has no such object", operationCluster(o.Kind))
	case err != nil && !gone:
		return c.connections.clusters[operationCluster(o.Kind)].Explain(target, "read", err)
	}
	if known {
		// The process ended after recording the intent. A recreated object does not show whether
		// the request arrived; it gets none.
		if gone || live.GetUID() != record.UID || live.GetAnnotations()[AnnotationOperationID] == c.operationMark(o.ID) {
			record.State = operationDone
			return records.write(ctx, o.ID, record)
		}
	}
	if err := checkPossible(ctx, c.connections.clusters[operationCluster(o.Kind)], live, o.Operation); err != nil {
		return err
	}
	if !known {
		record = operationRecord{Digest: o.Digest, Object: o.Object(), Operation: o.Operation, State: operationIntended, UID: live.GetUID(), At: c.options.Clock.Now().UTC()}
		if err := records.write(ctx, o.ID, record); err != nil {
			return err
		}
	}
	if err := requestOperation(ctx, c.connections.clusters[operationCluster(o.Kind)], live, o.Operation, c.operationMark(o.ID), c.options.Clock.Now()); err != nil {
		return err
	}
	record.State, record.At = operationDone, c.options.Clock.Now().UTC()
	return records.write(ctx, o.ID, record)
}

// operationMark returns the id of an operation, unique among landscapes.
func (c *Converger) operationMark(id string) string { return c.landscape.Config.Name + "/" + id }

func (c *Converger) operationTargetOf(o landscapes.Operation) apply.Ref {
	return operationTarget(o.Kind, o.Namespace, o.Name)
}

// executedOperations returns the operations for status.operations, newest first.
func (r *operationLedger) executedOperations() []landscapev1alpha1.OperationRecord {
	var out []landscapev1alpha1.OperationRecord
	for _, id := range sortedKeys(r.byID) {
		if record := r.byID[id]; record.State == operationDone {
			out = append(out, landscapev1alpha1.OperationRecord{ID: id, Object: record.Object, Operation: record.Operation, At: metav1.NewTime(record.At)})
		}
	}
	slices.SortStableFunc(out, func(a, b landscapev1alpha1.OperationRecord) int { return b.At.Time.Compare(a.At.Time) })
	return out[:min(len(out), maxShownOperations)]
}
