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

// AnnotationDeletion confirms the deletion of an object (upstream's pkg/apis/core/v1beta1/constants).
const AnnotationDeletion = "confirmation.gardener.cloud/deletion"

// OperatedKinds are the kinds on which there are one-shot operations, and whether they have a namespace.
func OperatedKinds() map[string]bool {
	return map[string]bool{"Garden": false, "Seed": false, "Shoot": true, "ManagedSeed": true, "Gardenlet": true, "Project": false}
}

// operationsOf are the operations of a kind, besides the rollout of workers, which names pools.
func operationsOf(kind string) []string {
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
		out = slices.Concat(sleepless[:], parallel[:], alone[:])
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

// OperationProblem says why an operation cannot be one of a kind; empty if it can. Several operations are divided by ';' as in the
// annotation.
func OperationProblem(kind, operation string) string {
	if _, known := OperatedKinds()[kind]; !known {
		return fmt.Sprintf("there are no operations on a %s, but on %s", kind, strings.Join(slices.Sorted(maps.Keys(OperatedKinds())), ", "))
	}
	known := operationsOf(kind)
	parts := strings.Split(operation, ";")
	for _, one := range parts {
		one = strings.TrimSpace(one)
		switch {
		case one == OperationConfirmDeletion && len(parts) > 1:
			return one + " goes alone"
		case slices.Contains(known, one), kind == "Shoot" && isRollout(one):
		default:
			rest := "there are " + strings.Join(known, ", ")
			if len(known) == 1 {
				rest = "there is only " + known[0]
			}
			return fmt.Sprintf("there is no operation %q on a %s%s; %s", one, kind, meant(one, known), rest)
		}
	}
	if len(parts) > 1 && kind != "Garden" && kind != "Shoot" {
		return fmt.Sprintf("a %s takes one operation at a time", kind)
	}
	return ""
}

// OperationWaiting says that an operation which an object was asked for was not taken up yet, and how that is withdrawn; empty if there is
// none.
func OperationWaiting(live *unstructured.Unstructured) string {
	waiting := live.GetAnnotations()[annotationOperation]
	if waiting == "" {
		return ""
	}
	name, at := live.GetKind()+" ", strings.ToLower(live.GetKind())+" "
	if namespace := live.GetNamespace(); namespace != "" {
		name, at = name+namespace+"/", at+"-n "+namespace+" "
	}
	name, at = name+live.GetName(), at+live.GetName()
	return fmt.Sprintf("the operation %q of %s was not taken up yet, and blocks others until a controller that does it has; to withdraw it: kubectl annotate %s %s-",
		waiting, name, at, annotationOperation)
}

// OperationPossible says what stands against an operation on an object in its present state; nothing if it can be asked for.
func OperationPossible(ctx context.Context, live *unstructured.Unstructured, operation string) ([]string, error) {
	if problem := OperationProblem(live.GetKind(), operation); problem != "" {
		return []string{problem}, nil
	}
	if operation == OperationConfirmDeletion {
		return nil, nil
	}
	if waiting := OperationWaiting(live); waiting != "" {
		return []string{waiting}, nil
	}
	asked := live.DeepCopy()
	annotations := asked.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationOperation] = operation
	asked.SetAnnotations(annotations)
	before, err := Validate(ctx, []Input{{Object: live}}, Options{})
	if err != nil {
		return nil, err
	}
	after, err := Validate(ctx, []Input{{Object: asked}}, Options{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range after {
		if v.Severity == SeverityError && !slices.Contains(before, v) {
			out = append(out, v.Message)
		}
	}
	return out, nil
}
