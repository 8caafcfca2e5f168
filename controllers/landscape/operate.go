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
	// operationRedeploy on a Gardenlet is done by the operator.
	operationRedeploy = "force-redeploy"
	// watchInterval is how often a followed operation is looked at.
	watchInterval = time.Second
	// takeUpTime is within which a gardenlet that runs takes an operation up, also one that is
	// busy: earlier nobody is said not to have.
	takeUpTime = 20 * time.Second
)

// NotPossibleError says why an operation cannot be asked for now.
type NotPossibleError struct {
	Operation, Object string
	Obstacles         []schemas.Obstacle
	// live is the object as it was when it could not.
	live *unstructured.Unstructured
}

// Waits reports whether nothing stands against it but another operation that was not taken up yet.
func (e *NotPossibleError) Waits() bool {
	return len(e.Obstacles) == 1 && e.Obstacles[0].Withdraw != ""
}

func (e *NotPossibleError) Error() string {
	return fmt.Sprintf("%s: %s cannot be asked for: %s", e.Object, e.Operation, e.reasons(func(o schemas.Obstacle) string { return o.Withdraw }))
}

// reasons are all obstacles, with how an operation is withdrawn.
func (e *NotPossibleError) reasons(withdraw func(schemas.Obstacle) string) string {
	var out []string
	for _, o := range e.Obstacles {
		out = append(out, o.Text)
		if o.Withdraw != "" {
			out = append(out, withdraw(o))
		}
	}
	return strings.Join(out, "; ")
}

// possible is an error for an operation that the object cannot do in its present state.
func possible(ctx context.Context, cluster *apply.Cluster, live *unstructured.Unstructured, operation string) error {
	obstacles, err := schemas.OperationPossible(ctx, live, operation)
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
			obstacles[i].Text, obstacles[i].Withdraw = cluster.CommandsHere(obstacles[i].Text), cluster.CommandsHere(obstacles[i].Withdraw)
		}
		return &NotPossibleError{Operation: operation, Object: apply.RefOf(live).String(), Obstacles: obstacles, live: live}
	}
	return nil
}

// ask sets the annotation of an operation, once: in one write with the mark, and only if the object
// is as it was read.
func ask(ctx context.Context, cluster *apply.Cluster, live *unstructured.Unstructured, operation, mark string, now time.Time) error {
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

func operatedRef(kind, namespace, name string) apply.Ref {
	version := gardencorev1beta1.SchemeGroupVersion.String()
	switch kind {
	case "Garden":
		version = operatorv1alpha1.SchemeGroupVersion.String()
	case "ManagedSeed", "Gardenlet":
		version = seedmanagementv1alpha1.SchemeGroupVersion.String()
	}
	return apply.Ref{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}
}

// Operation is one that a person asks for.
type Operation struct {
	// Object as "Shoot garden-local/local".
	Object, Operation string
	// Wait follows the object until the operation has ended; OnProgress hears what is new
	// meanwhile.
	Wait       bool
	OnProgress func(string)
}

// CheckOperation is an error for an object that has no operations, and for an operation that its
// kind does not have. It asks no cluster.
func CheckOperation(object, operation string) error {
	kind, _, _, problem := landscapes.ParseOperated(object)
	if problem == "" {
		problem = schemas.OperationProblem(kind, operation)
	}
	if problem != "" {
		return errors.New(problem)
	}
	return nil
}

// Operate asks for an operation on an object, once, if the object can do it now. With Wait it ends
// when the operation has; an operation that failed is an error.
func (c *Converger) Operate(ctx context.Context, o Operation) error {
	if err := CheckOperation(o.Object, o.Operation); err != nil {
		return err
	}
	kind, namespace, name, _ := landscapes.ParseOperated(o.Object)
	cluster, ref := c.links.clusters[operatedCluster(kind)], operatedRef(kind, namespace, name)
	if cluster == nil {
		return fmt.Errorf("no access to cluster %s: set spec.clusters in landscape.yaml, or give --kubeconfig %[1]s=PATH", operatedCluster(kind))
	}
	asked := c.options.Clock.Now()
	for attempt := 0; ; attempt++ {
		live, err := cluster.GetLive(ctx, ref)
		if err != nil {
			return cluster.Explain(ref, "read", err)
		}
		if err := possible(ctx, cluster, live, o.Operation); err != nil {
			return err
		}
		err = ask(ctx, cluster, live, o.Operation, "", asked)
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
	if !isDone(kind, o.Operation) && o.OnProgress != nil {
		o.OnProgress(cluster.CommandsHere(fmt.Sprintf("asked for, but no part of Pergola does it in this version: the annotation stays, and blocks other operations, until a controller takes it up; "+
			"to withdraw it: kubectl annotate %s %s-", apply.KubectlName(ref), annotationOperation)))
	}
	if !o.Wait {
		return nil
	}
	return c.followOperation(ctx, cluster, ref, o, asked)
}

// isDone tells whether some part of Pergola does an operation: the gardenlet, the operator, or
// whoever reconciles the Garden; docs/ownership.md has the table.
func isDone(kind, operation string) bool {
	switch kind {
	case "Garden":
		return operation != schemas.OperationConfirmDeletion
	case "Shoot":
		return operation == "reconcile" || operation == "retry"
	case "Seed":
		return operation == "reconcile" || endsWithAnnotation(kind, operation)
	}
	return endsWithAnnotation(kind, operation)
}

// endsWithAnnotation tells the operations that leave no lastOperation: whoever does one takes the
// annotation away when it is done.
func endsWithAnnotation(kind, operation string) bool {
	switch kind {
	case "Seed":
		return operation == gardencorev1beta1.GardenerOperationRenewKubeconfig || operation == gardencorev1beta1.SeedOperationRenewGardenAccessSecrets ||
			operation == gardencorev1beta1.SeedOperationRenewWorkloadIdentityTokens
	case "Gardenlet":
		return operation == operationRedeploy
	}
	return false
}

// followOperation waits until somebody has taken the operation up and ended it.
func (c *Converger) followOperation(ctx context.Context, cluster *apply.Cluster, ref apply.Ref, o Operation, asked time.Time) error {
	tick := c.options.Clock.NewTicker(watchInterval)
	defer tick.Stop()
	said, attended := "", attendance{cluster: cluster, runtime: c.links.clusters[Runtime], synced: c.readObject, reach: c.options.Connect.Flags[Runtime], operation: o.Operation}
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
			return fmt.Errorf("%s is gone", ref)
		case err != nil && ctx.Err() == nil && !apply.IsPassing(cluster.Explain(ref, "read", err)):
			return cluster.Explain(ref, "read", err)
		case err == nil && live.GetAnnotations()[annotationOperation] == o.Operation:
			if err := attended.look(ctx, live, asked, c.options.Clock.Now()); err != nil {
				return err
			}
			if c.options.Clock.Since(asked) < takeUpTime {
				break
			}
			text := notTakenUp
			if isDone(ref.Kind, o.Operation) { // else that was said when it was asked for
				text += cluster.CommandsHere(fmt.Sprintf("; other operations wait for that. To withdraw it: kubectl annotate %s %s-", apply.KubectlName(ref), annotationOperation))
			}
			tell(text)
		case err == nil && endsWithAnnotation(ref.Kind, o.Operation):
			tell("it was done")
			return nil
		case err == nil:
			text, ended, err := outcomeOf(live, asked)
			tell(text)
			if ended {
				return err
			}
		}
		if err := nextLook(ctx, tick); err != nil {
			return notEnded(o.Operation, ref, said, err)
		}
	}
}

// notTakenUp begins what is said while the annotation of an operation is on its object.
const notTakenUp = "nobody has taken it up yet"

// notEnded says that an operation is followed no longer, and how far it was.
func notEnded(operation string, ref apply.Ref, said string, err error) error {
	when := "in time"
	if !errors.Is(err, context.DeadlineExceeded) {
		when = "before it was interrupted"
	}
	if said == "" || strings.HasPrefix(said, notTakenUp) { // nothing was seen of it
		return fmt.Errorf("%s on %s was asked for, and nobody has taken it up %s: it stays asked for", operation, ref, when)
	}
	return fmt.Errorf("%s on %s was taken up, and is not known to have ended %s: it goes on without you (%s)", operation, ref, when, said)
}

func nextLook(ctx context.Context, tick clock.Ticker) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-tick.C():
		return nil
	}
}

// outcomeOf reads status.lastOperation: what it says, whether it has ended since, and how. Times in
// a status have seconds only.
func outcomeOf(live *unstructured.Unstructured, asked time.Time) (text string, ended bool, err error) {
	raw, found, _ := unstructured.NestedMap(live.Object, "status", "lastOperation")
	var last gardencorev1beta1.LastOperation
	if !found || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &last) != nil {
		return "it was taken up", false, nil
	}
	text = fmt.Sprintf("%s %s (%d%%): %s", last.Type, last.State, last.Progress, printable.Cut(last.Description, 400))
	if last.LastUpdateTime.Time.Before(asked.Truncate(time.Second)) {
		return "it was taken up", false, nil
	}
	switch last.State {
	case gardencorev1beta1.LastOperationStateSucceeded:
		next := nextOf(live)
		if next != "" {
			text = strings.TrimSuffix(text, ".")
		}
		return text + next, true, nil
	case gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateAborted:
		return text, true, fmt.Errorf("%s: %s", apply.RefOf(live), text)
	}
	return text, false, nil
}

// nextOf says what a rotation of a Garden's credentials waits for when the operation is at its end;
// empty if for nothing.
func nextOf(live *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	state, err := rotation.Read(status)
	if live.GetKind() != "Garden" || err != nil {
		return ""
	}
	out := ""
	for _, text := range state.Told() {
		out += "; " + text
	}
	return out
}
