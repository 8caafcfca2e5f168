// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

// A takeover removes fields that have no owner left. A dry run passes the admission webhooks of the
// cluster, and a webhook that set such a field sets it again, which hides the removal. But a
// webhook of a former manager may no longer exist at the next write. A PodTemplate, which such
// webhooks ignore, distinguishes these fields from defaults of the API server.

// podTemplatePath is the path of the pod template in workloads.
var podTemplatePath = []string{"spec", "template"}

// podTemplateRef has nothing but a pod template and its defaults.
var podTemplateRef = Ref{APIVersion: "v1", Kind: "PodTemplate"}

// fieldsRestoredByWebhooks returns the fields of a pod template that a takeover removes and that a
// webhook put back into the predicted object.
func (r *setRun) fieldsRestoredByWebhooks(ctx context.Context, ref Ref, foreseen *unstructured.Unstructured, goes *fieldpath.Set) []change.Field {
	if pods := podSpecPaths[ref.GroupKind()]; !slices.Equal(pods, append(slices.Clone(podTemplatePath), "spec")) {
		return nil
	}
	back := fieldpath.NewSet()
	goes.Iterate(func(p fieldpath.Path) {
		if _, there := lookup(foreseen.Object, p); there && len(p) > len(podTemplatePath) && p[:len(podTemplatePath)].Equals(fieldpath.MakePathOrDie("spec", "template")) {
			back.Insert(p.Copy())
		}
	})
	if back.Empty() {
		return nil
	}
	without, _ := withoutFields(foreseen.Object, back).(map[string]any)
	template, _, _ := unstructured.NestedMap(without, podTemplatePath...)
	full, err := r.cluster.defaultedTemplate(ctx, ref.Namespace, template, r.set.FieldManager)
	if err != nil {
		return nil // if the request is refused, the prediction stays
	}
	mutated := fieldpath.NewSet()
	back.Iterate(func(p fieldpath.Path) {
		if _, fills := lookup(full, p[len(podTemplatePath):]); !fills {
			mutated.Insert(p.Copy())
		}
	})
	if mutated.Empty() {
		return nil
	}
	without, _ = withoutFields(foreseen.Object, mutated).(map[string]any)
	return redact.Compare(foreseen.Object, without)
}

// defaultedTemplate returns a pod template with the server's defaults.
func (c *Cluster) defaultedTemplate(ctx context.Context, namespace string, template map[string]any, manager string) (map[string]any, error) {
	mapping, err := c.Mapping(ctx, podTemplateRef.GVK())
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"template": template}}
	o.SetGroupVersionKind(podTemplateRef.GVK())
	o.SetNamespace(namespace)
	o.SetGenerateName("pergola-")
	body, err := encodeBody(o)
	if err != nil {
		return nil, err
	}
	path := pathOf(mapping, namespace, "")
	raw, err := responseBody(c.rest.Post().AbsPath(path[:len(path)-1]...).Param("dryRun", metav1.DryRunAll).
		Param("fieldManager", manager).SetHeader("Content-Type", "application/json").Body(body).Do(withoutLogging(ctx)))
	if err != nil {
		return nil, err
	}
	answer, err := decodeResponse(raw)
	if err != nil {
		return nil, err
	}
	full, _, _ := unstructured.NestedMap(answer.Object, "template")
	return full, nil
}
