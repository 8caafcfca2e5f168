// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// isTransientAnnotation reports whether an annotation is not desired state: it is a one-shot
// request, or a remnant of the client that applied the object.
func isTransientAnnotation(key, _ string) bool {
	keys := conventions.ManagedResourceKeys()
	return slices.Contains([]string{
		gardencorev1beta1.GardenerOperation, gardencorev1beta1.GardenerTimestamp, keys.Origin, keys.Description, seedpublication.AnnotationUsedApprovals,
		seedpublication.AnnotationReport, AnnotationOperationID, "kubectl.kubernetes.io/last-applied-configuration",
	}, key)
}

// DeclarationOf returns a live object without the fields that only the server and controllers
// write. This package and the gardenlet render components from it.
func DeclarationOf(live *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := map[string]any{"name": live.GetName()}
	if live.GetNamespace() != "" {
		metadata["namespace"] = live.GetNamespace()
	}
	labels := live.GetLabels()
	delete(labels, conventions.ManagedResourceKeys().ManagedByLabel)
	if len(labels) > 0 {
		metadata["labels"] = toAny(labels)
	}
	annotations := live.GetAnnotations()
	maps.DeleteFunc(annotations, isTransientAnnotation)
	if len(annotations) > 0 {
		metadata["annotations"] = toAny(annotations)
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range live.Object {
		if field != "metadata" && field != "status" {
			out.Object[field] = value
		}
	}
	out.Object["metadata"] = metadata
	return out
}

func toAny(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}
