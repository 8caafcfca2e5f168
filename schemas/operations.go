// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OperationConfirmDeletion stands for the annotation that confirms the deletion of an object.
const OperationConfirmDeletion = "confirm-deletion"

// AnnotationDeletion confirms the deletion of an object (upstream's
// pkg/apis/core/v1beta1/constants).
const AnnotationDeletion = "confirmation.gardener.cloud/deletion"

// KindsWithOperations returns the kinds that have one-shot operations, and whether they are
// namespaced.
func KindsWithOperations() map[string]bool {
	return map[string]bool{"Garden": false, "Seed": false, "Shoot": true, "ManagedSeed": true, "Gardenlet": true, "Project": false}
}

// kindOperations returns the operations of a kind, except the rollout of workers, which names
// pools.
func kindOperations(kind string) []string {
	out := []string{}
	switch kind {
	case "Garden":
		out = append(out, "reconcile")
		for _, r := range gardenRotations() {
			out = append(out, r.operation)
		}
	case "Seed":
		out = append(out, "reconcile", "renew-garden-access-secrets", "renew-kubeconfig", "renew-workload-identity-tokens")
	case "Shoot":
		out = slices.Concat(hibernationBlockedOperations[:], combinableOperations[:], exclusiveOperations[:])
	case "ManagedSeed":
		out = append(out, "reconcile", "renew-kubeconfig")
	case "Gardenlet":
		out = append(out, "reconcile", "renew-kubeconfig", "force-redeploy")
	}
	if slices.Contains([]string{"Garden", "Seed", "Shoot", "Project"}, kind) {
		out = append(out, OperationConfirmDeletion)
	}
	slices.Sort(out)
	return out
}

// OperationProblem describes why a kind does not have an operation, or returns "". As in the
// annotation, ';' separates several operations.
func OperationProblem(kind, operation string) string {
	if _, known := KindsWithOperations()[kind]; !known {
		return fmt.Sprintf("a %s has no operations; kinds with operations are %s", kind, strings.Join(slices.Sorted(maps.Keys(KindsWithOperations())), ", "))
	}
	known := kindOperations(kind)
	parts := strings.Split(operation, ";")
	for _, one := range parts {
		one = strings.TrimSpace(one)
		switch {
		case one == OperationConfirmDeletion && len(parts) > 1:
			return one + " cannot be combined with other operations"
		case slices.Contains(known, one), kind == "Shoot" && isRollout(one):
		default:
			rest := "there are " + strings.Join(known, ", ")
			if len(known) == 1 {
				rest = "there is only " + known[0]
			}
			return fmt.Sprintf("there is no operation %q on a %s%s; %s", one, kind, suggestionHint(one, known), rest)
		}
	}
	if len(parts) > 1 && kind != "Garden" && kind != "Shoot" {
		return fmt.Sprintf("a %s takes one operation at a time", kind)
	}
	return ""
}

// PendingOperationMessage describes the requested operation of an object that no controller has
// started yet, or returns "". WithdrawCommand returns the command to withdraw it.
func PendingOperationMessage(live *unstructured.Unstructured) string {
	waiting := live.GetAnnotations()[annotationOperation]
	if waiting == "" {
		return ""
	}
	name := live.GetName()
	if namespace := live.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("the operation %q of %s %s has not started yet and blocks others until its controller starts it", waiting, live.GetKind(), name)
}

// WithdrawCommand returns the command that withdraws the operation of an object.
func WithdrawCommand(live *unstructured.Unstructured) string {
	at := strings.ToLower(live.GetKind()) + " "
	if namespace := live.GetNamespace(); namespace != "" {
		at += "-n " + namespace + " "
	}
	return fmt.Sprintf("to withdraw it: kubectl annotate %s%s %s-", at, live.GetName(), annotationOperation)
}

// WithdrawAdvice is the advice for people who may use another cluster, such as in an Event or a
// chat. A command without a cluster goes to their current one.
const WithdrawAdvice = "to withdraw it, remove its annotation " + annotationOperation

// Obstacle is a reason why an operation is not possible.
type Obstacle struct {
	Text string
	// Withdraw describes how to withdraw the operation that has not started yet; it is empty for
	// any other obstacle.
	Withdraw string
}

// OperationChecker checks operations on declared objects. It is not safe for concurrent use.
type OperationChecker struct{ checker *Checker }

// NewOperationChecker returns a judge. It fails if the schemas are broken.
func NewOperationChecker() (*OperationChecker, error) {
	checker, err := NewChecker(Options{})
	if err != nil {
		return nil, err
	}
	return &OperationChecker{checker}, nil
}

// Findings returns the findings about the annotation gardener.cloud/operation that occur in every
// possible status. A declaration has no status: conditions on it are checked when the operation is
// executed.
func (j *OperationChecker) Findings(declared *unstructured.Unstructured, operation string) ([]Violation, error) {
	if operation == OperationConfirmDeletion {
		return nil, nil
	}
	plain := declared.DeepCopy()
	annotations := plain.GetAnnotations()
	delete(annotations, annotationOperation)
	plain.SetAnnotations(annotations)
	known, err := j.checker.Check(Input{Object: plain})
	if err != nil {
		return nil, err
	}
	asked := withOperation(plain, operation)
	var always []Violation
	for i, status := range operableStatuses(plain) {
		asked.Object["status"] = status
		found, err := j.checker.Check(Input{Object: asked})
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(v Violation) bool {
			return v.Severity != SeverityError || !strings.HasPrefix(v.Field, "metadata.annotations") || slices.Contains(known, v) || i > 0 && !slices.Contains(always, v)
		})
		if always = found; len(always) == 0 {
			return nil, nil
		}
	}
	return always, nil
}

// operableStatuses returns the states of an object in which operations are possible. Nothing is
// rotated, a rotation waits for pools, or a rotation waits for its completion. In each state, the
// object was created, and its encryption is rolled out.
func operableStatuses(object *unstructured.Unstructured) []map[string]any {
	var encrypted []any
	switch object.GetKind() {
	case "Garden":
		for resource := range specEncryptedResources(object.Object) {
			encrypted = append(encrypted, resource.String())
		}
	case "Shoot":
		for _, resource := range readShoot(ruleInput{object: object.Object}).encryptedResources() {
			encrypted = append(encrypted, resource)
		}
	default:
		return []map[string]any{{}}
	}
	var states []map[string]any
	for _, phase := range []string{"Completed", "WaitingForWorkersRollout", "Prepared"} {
		rotation := map[string]any{}
		for _, credentials := range []string{rotationFieldCA, rotationFieldServiceAccount, rotationFieldETCD} {
			rotation[credentials] = map[string]any{"phase": phase}
		}
		if object.GetKind() == "Garden" {
			for _, r := range gardenRotations() {
				for _, credentials := range r.credentials {
					rotation[credentials] = map[string]any{"phase": phase}
				}
			}
		}
		states = append(states, map[string]any{
			"lastOperation": map[string]any{"type": "Reconcile", "state": "Succeeded", "description": "", "progress": int64(100), "lastUpdateTime": "2026-01-01T00:00:00Z"},
			"credentials":   map[string]any{"rotation": rotation, "encryptionAtRest": map[string]any{"resources": encrypted}},
		})
	}
	return states
}

// withOperation returns a copy of an object with the annotation that requests an operation.
func withOperation(object *unstructured.Unstructured, operation string) *unstructured.Unstructured {
	asked := object.DeepCopy()
	annotations := asked.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationOperation] = operation
	asked.SetAnnotations(annotations)
	return asked
}

// OperationObstacles returns the obstacles to an operation on an object in its present state, or
// none if the operation is possible.
func OperationObstacles(ctx context.Context, live *unstructured.Unstructured, operation string) ([]Obstacle, error) {
	if problem := OperationProblem(live.GetKind(), operation); problem != "" {
		return []Obstacle{{Text: problem}}, nil
	}
	if operation == OperationConfirmDeletion {
		return nil, nil
	}
	if waiting := PendingOperationMessage(live); waiting != "" {
		return []Obstacle{{Text: waiting, Withdraw: WithdrawCommand(live)}}, nil
	}
	asked := withOperation(live, operation)
	before, err := Validate(ctx, []Input{{Object: live}}, Options{})
	if err != nil {
		return nil, err
	}
	after, err := Validate(ctx, []Input{{Object: asked}}, Options{})
	if err != nil {
		return nil, err
	}
	var out []Obstacle
	for _, v := range after {
		if v.Severity == SeverityError && !slices.Contains(before, v) {
			out = append(out, Obstacle{Text: v.Message})
		}
	}
	return out, nil
}
