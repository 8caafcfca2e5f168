// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

var (
	projectKind    = gardencorev1beta1.SchemeGroupVersion.WithKind("Project")
	shootsResource = gardencorev1beta1.SchemeGroupVersion.WithResource("shoots")
)

// namespaceDeletion protects the namespace of a Project until the Project is deleted and has no
// Shoots.
func (w *webhooks) namespaceDeletion(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.Operation != admissionv1.Delete || request.SubResource != "" {
		return allowed()
	}
	namespace, err := decodeObject[unstructured.Unstructured](request.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	if namespace != nil && namespace.GetDeletionTimestamp() != nil {
		return allowed()
	}
	// Bypass the cache: a new Project counts.
	all, _, err := w.Garden.Objects(ctx, projectKind, true)
	if err != nil {
		return nil, fmt.Errorf("reading Projects: %w", err)
	}
	for _, project := range all {
		if of, _, _ := unstructured.NestedString(project.Object, "spec", "namespace"); of != request.Name {
			continue
		}
		if project.GetDeletionTimestamp() == nil {
			return forbidden("namespace %q belongs to Project %q: delete the Project instead", request.Name, project.GetName())
		}
		left, err := w.Garden.List(ctx, shootsResource, request.Name, "", 1)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading the Shoots of namespace %s: %w", request.Name, err)
		}
		if len(left) > 0 {
			return forbidden("namespace %q still has Shoots, such as %q: delete them first", request.Name, left[0].GetName())
		}
	}
	return allowed()
}
