// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/rotation"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

const (
	annotationOperation = "gardener.cloud/operation"
	annotationTimestamp = "gardener.cloud/timestamp"
	// operationRedeploy on a Gardenlet is an operation of the operator.
	operationRedeploy = "force-redeploy"
	// operationPollInterval is the interval at which a followed operation is read.
	operationPollInterval = time.Second
	// operationStartTime is the time within which a running gardenlet, even a busy one, starts an
	// operation: until then nothing is reported.
	operationStartTime = 20 * time.Second
)

// OperationNotPossibleError means that an operation cannot be requested now.
type OperationNotPossibleError struct {
	Operation, Object string
	Obstacles         []schemas.Obstacle
	// object is the object at that time.
	object *unstructured.Unstructured
}

// IsQueued reports whether the only obstacle is another operation that has not started yet.
func (e *OperationNotPossibleError) IsQueued() bool {
	return len(e.Obstacles) == 1 && e.Obstacles[0].Withdraw != ""
}

func (e *OperationNotPossibleError) Error() string {
	return fmt.Sprintf("%s: %s cannot be requested: %s", e.Object, e.Operation, e.obstacleText(func(o schemas.Obstacle) string { return o.Withdraw }))
}

// obstacleText lists all obstacles, and how to withdraw other operations.
func (e *OperationNotPossibleError) obstacleText(withdraw func(schemas.Obstacle) string) string {
	var out []string
	for _, o := range e.Obstacles {
		out = append(out, o.Text)
		if o.Withdraw != "" {
			out = append(out, withdraw(o))
		}
	}
	return strings.Join(out, "; ")
}

// checkPossible returns an error if the object cannot run the operation in its present state.
func checkPossible(ctx context.Context, cluster *apply.Cluster, live *unstructured.Unstructured, operation string) error {
	obstacles, err := schemas.OperationObstacles(ctx, live, operation)
	if err != nil {
		return fmt.Errorf("checking the operation: %w", err)
	}
	if operation == schemas.OperationConfirmDeletion && live.GetAnnotations()[owner.AnnotationConfirmDeletion] == "true" {
		return nil
	}
	if live.GetDeletionTimestamp() != nil && operation != "reconcile" && operation != "retry" && operation != schemas.OperationConfirmDeletion {
		obstacles = append(obstacles, schemas.Obstacle{Text: "it is being deleted"})
	}
	if len(obstacles) > 0 {
		for i := range obstacles {
			obstacles[i].Text, obstacles[i].Withdraw = cluster.RewriteKubectlOrNameCluster(obstacles[i].Text), cluster.RewriteKubectlOrNameCluster(obstacles[i].Withdraw)
		}
		return &OperationNotPossibleError{Operation: operation, Object: apply.RefOf(live).String(), Obstacles: obstacles, object: live}
	}
	return nil
}

// requestOperation sets the annotation of an operation exactly once: in one write with the mark,
// and only if the object has not changed.
func requestOperation(ctx context.Context, cluster *apply.Cluster, live *unstructured.Unstructured, operation, mark string, now time.Time) error {
	annotations := map[string]any{annotationOperation: operation}
	if operation == schemas.OperationConfirmDeletion {
		annotations = map[string]any{owner.AnnotationConfirmDeletion: "true", annotationTimestamp: now.UTC().Format(time.RFC3339Nano)}
	}
	if mark != "" {
		annotations[AnnotationOperationID] = mark
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	ref := apply.RefOf(live)
	mapping, err := cluster.Mapping(ctx, ref.GVK())
	if err != nil {
		return cluster.Explain(ref, "annotate", err)
	}
	_, err = cluster.Dynamic().Resource(mapping.Resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: managerOperation})
	if err != nil {
		return cluster.Explain(ref, "annotate", err)
	}
	return nil
}

func operationTarget(kind, namespace, name string) apply.Ref {
	version := gardencorev1beta1.SchemeGroupVersion.String()
	switch kind {
	case "Garden":
		version = operatorv1alpha1.SchemeGroupVersion.String()
	case "ManagedSeed", "Gardenlet":
		version = seedmanagementv1alpha1.SchemeGroupVersion.String()
	}
	return apply.Ref{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}
}

// Operation is a request of a person.
type Operation struct {
	// Object has the form "Shoot garden-local/local".
	Object, Operation string
	// Wait follows the object until the operation has ended; OnProgress receives changes meanwhile.
	Wait       bool
	OnProgress func(string)
}

// CheckOperation returns an error if the object or its kind does not support an operation. It sends
// no request.
func CheckOperation(object, operation string) error {
	kind, _, _, problem := landscapes.ParseOperationTarget(object)
	if problem == "" {
		problem = schemas.OperationProblem(kind, operation)
	}
	if problem != "" {
		return errors.New(problem)
	}
	return nil
}

// Operate requests an operation once, if the object can run it now. With Wait it returns when the
// operation has ended; a failed operation is an error.
func (c *Converger) Operate(ctx context.Context, o Operation) error {
	if err := CheckOperation(o.Object, o.Operation); err != nil {
		return err
	}
	kind, namespace, name, _ := landscapes.ParseOperationTarget(o.Object)
	cluster, ref := c.connections.clusters[operationCluster(kind)], operationTarget(kind, namespace, name)
	if cluster == nil {
		return fmt.Errorf("no access to cluster %s: set spec.clusters in landscape.yaml, or give --kubeconfig %[1]s=PATH", operationCluster(kind))
	}
	asked := c.options.Clock.Now()
	for attempt := 0; ; attempt++ {
		live, err := cluster.GetLive(ctx, ref)
		if err != nil {
			return cluster.Explain(ref, "read", err)
		}
		if err := checkPossible(ctx, cluster, live, o.Operation); err != nil {
			return err
		}
		err = requestOperation(ctx, cluster, live, o.Operation, "", asked)
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) || attempt >= 4 {
			return err
		}
	}
	if o.Operation == schemas.OperationConfirmDeletion {
		return nil
	}
	if !isImplemented(kind, o.Operation) && o.OnProgress != nil {
		o.OnProgress(cluster.RewriteKubectlOrNameCluster(fmt.Sprintf("requested, but no part of Pergola implements it in this version: the annotation stays, and blocks other operations, until a controller starts it. "+
			"To withdraw it: kubectl annotate %s %s-", apply.KubectlName(ref), annotationOperation)))
	}
	if !o.Wait {
		return nil
	}
	return c.followOperation(ctx, cluster, ref, o, asked)
}

// isImplemented reports whether a part of Pergola runs an operation: the gardenlet, the operator,
// or the reconciler of the Garden. The table is in docs/reference/operations.md.
func isImplemented(kind, operation string) bool {
	switch kind {
	case "Garden":
		return operation != schemas.OperationConfirmDeletion
	case "Shoot":
		return operation == "reconcile" || operation == "retry"
	case "Seed":
		return operation == "reconcile" || isAnnotationOnly(kind, operation)
	}
	return isAnnotationOnly(kind, operation)
}

// isAnnotationOnly reports whether an operation has no lastOperation: its controller removes the
// annotation at the end.
func isAnnotationOnly(kind, operation string) bool {
	switch kind {
	case "Seed":
		return operation == gardencorev1beta1.GardenerOperationRenewKubeconfig || operation == gardencorev1beta1.SeedOperationRenewGardenAccessSecrets ||
			operation == gardencorev1beta1.SeedOperationRenewWorkloadIdentityTokens
	case "Gardenlet":
		return operation == operationRedeploy
	}
	return false
}

// followOperation waits until the operation has started and ended.
func (c *Converger) followOperation(ctx context.Context, cluster *apply.Cluster, ref apply.Ref, o Operation, asked time.Time) error {
	tick := c.options.Clock.NewTicker(operationPollInterval)
	defer tick.Stop()
	said, attended := "", handlerCheck{cluster: cluster, runtime: c.connections.clusters[Runtime], readObject: c.readLandscapeObject, runtimeFlags: c.options.Connections.KubectlFlags[Runtime], operation: o.Operation}
	tell := func(text string) {
		if text != said && o.OnProgress != nil {
			o.OnProgress(text)
		}
		said = text
	}
	for {
		live, err := cluster.GetLive(ctx, ref)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("%s no longer exists", ref)
		case err != nil && ctx.Err() == nil && !apply.IsTransient(cluster.Explain(ref, "read", err)):
			return cluster.Explain(ref, "read", err)
		case err == nil && live.GetAnnotations()[annotationOperation] == o.Operation:
			if err := attended.checkHandler(ctx, live, asked, c.options.Clock.Now()); err != nil {
				return err
			}
			if c.options.Clock.Since(asked) < operationStartTime {
				break
			}
			text := notStartedText
			if isImplemented(ref.Kind, o.Operation) { // else Operate has reported that
				text += cluster.RewriteKubectlOrNameCluster(fmt.Sprintf("; other operations wait for it. To withdraw it: kubectl annotate %s %s-", apply.KubectlName(ref), annotationOperation))
			}
			tell(text)
		case err == nil && isAnnotationOnly(ref.Kind, o.Operation):
			tell("it is done")
			return nil
		case err == nil:
			text, ended, err := operationOutcome(live, asked)
			tell(text)
			if ended {
				return err
			}
		}
		if err := waitForTick(ctx, tick); err != nil {
			return unfinishedError(o.Operation, ref, said, err)
		}
	}
}

// notStartedText starts the text that is reported while the annotation is on the object.
const notStartedText = "it has not started yet"

// unfinishedError returns an error about an operation that is no longer followed, with its
// progress.
func unfinishedError(operation string, ref apply.Ref, said string, err error) error {
	when := "in time"
	if !errors.Is(err, context.DeadlineExceeded) {
		when = "before the interruption"
	}
	if said == "" || strings.HasPrefix(said, notStartedText) { // no progress was seen
		return fmt.Errorf("%s on %s was requested, but did not start %s: the request stays", operation, ref, when)
	}
	return fmt.Errorf("%s on %s started, but did not finish %s: it continues in the background (%s)", operation, ref, when, said)
}

func waitForTick(ctx context.Context, tick clock.Ticker) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-tick.C():
		return nil
	}
}

// operationOutcome reads status.lastOperation: its text, whether it has ended since the request,
// and its error. Times in a status have a precision of seconds.
func operationOutcome(live *unstructured.Unstructured, asked time.Time) (text string, ended bool, err error) {
	raw, found, _ := unstructured.NestedMap(live.Object, "status", "lastOperation")
	var last gardencorev1beta1.LastOperation
	if !found || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &last) != nil {
		return "it has started", false, nil
	}
	text = fmt.Sprintf("%s %s (%d%%): %s", last.Type, last.State, last.Progress, printable.Truncate(last.Description, 400))
	if last.LastUpdateTime.Time.Before(asked.Truncate(time.Second)) {
		return "it has started", false, nil
	}
	switch last.State {
	case gardencorev1beta1.LastOperationStateSucceeded:
		next := nextRotationStep(live)
		if next != "" {
			text = strings.TrimSuffix(text, ".")
		}
		return text + next, true, nil
	case gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateAborted:
		return text, true, fmt.Errorf("%s: %s", apply.RefOf(live), text)
	}
	return text, false, nil
}

// nextRotationStep returns the next step of a Garden's credential rotation after the operation, or
// "" if there is none.
func nextRotationStep(live *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	state, err := rotation.ReadState(status)
	if live.GetKind() != "Garden" || err != nil {
		return ""
	}
	out := ""
	for _, text := range state.Describe() {
		out += "; " + text
	}
	return out
}
