// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// controllerAnnotationPrefixes are prefixes of annotations that Kubernetes' controllers write:
// removing them would start a fight.
var controllerAnnotationPrefixes = []string{"deployment.kubernetes.io/", "pv.kubernetes.io/", "volume.kubernetes.io/",
	"volume.beta.kubernetes.io/", "kubernetes.io/service-account.", "batch.kubernetes.io/", "control-plane.alpha.kubernetes.io/", "autoscaling.alpha.kubernetes.io/"}

// foreignMetadataPatch returns the merge patch that removes foreign labels and annotations, if the
// set says so.
func (r *setRun) foreignMetadataPatch(want, live *unstructured.Unstructured) map[string]any {
	patch := map[string]any{}
	drop := func(field string, want, have map[string]string, keep []string) {
		out := map[string]any{}
		for k := range have {
			_, wanted := want[k]
			if !wanted && !slices.ContainsFunc(keep, func(p string) bool { return strings.HasPrefix(k, p) }) {
				out[k] = nil
			}
		}
		if len(out) > 0 {
			patch[field] = out
		}
	}
	if r.set.ForceOverwriteLabels {
		drop("labels", want.GetLabels(), live.GetLabels(), []string{"kubernetes.io/metadata.name"})
	}
	if r.set.ForceOverwriteAnnotations {
		drop("annotations", want.GetAnnotations(), live.GetAnnotations(), controllerAnnotationPrefixes)
	}
	return patch
}

func (r *setRun) removeForeignMetadata(ctx context.Context, w applyRequest, answer *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	metadata := r.foreignMetadataPatch(w.obj, answer)
	if len(metadata) == 0 {
		return answer, nil
	}
	if r.dry {
		for field := range metadata {
			for k := range metadata[field].(map[string]any) {
				unstructured.RemoveNestedField(answer.Object, "metadata", field, k)
			}
		}
		return answer, nil
	}
	return r.cluster.mergePatch(ctx, w.ref, map[string]any{"metadata": metadata}, r.set.FieldManager, "")
}
