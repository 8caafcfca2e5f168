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

// A takeover takes fields away that nobody owns any more. A dry run goes by the admission webhooks
// of the cluster, as the apply does, and one that had put such a field in does it again: then
// nothing is seen to go. But a webhook of those who hand over may be gone when it is applied. So
// these fields are told apart from those that the API server fills in itself, by the same template
// of pods in an object that such webhooks are not asked about.

// templateOf is where workloads have the template of their pods.
var templateOf = []string{"spec", "template"}

// templatesKind has nothing but a template of pods, and the defaults of one.
var templatesKind = Ref{APIVersion: "v1", Kind: "PodTemplate"}

// putBack are the fields of a template of pods that go with a takeover, and that a webhook has put
// back into what the server foresees.
func (r *run) putBack(ctx context.Context, ref Ref, foreseen *unstructured.Unstructured, goes *fieldpath.Set) []change.Field {
	if pods := podsAt[ref.GroupKind()]; !slices.Equal(pods, append(slices.Clone(templateOf), "spec")) {
		return nil
	}
	back := fieldpath.NewSet()
	goes.Iterate(func(p fieldpath.Path) {
		if _, there := lookup(foreseen.Object, p); there && len(p) > len(templateOf) && p[:len(templateOf)].Equals(fieldpath.MakePathOrDie("spec", "template")) {
			back.Insert(p.Copy())
		}
	})
	if back.Empty() {
		return nil
	}
	without, _ := prune(foreseen.Object, back).(map[string]any)
	template, _, _ := unstructured.NestedMap(without, templateOf...)
	full, err := r.c.defaultedTemplate(ctx, ref.Namespace, template, r.set.FieldManager)
	if err != nil {
		return nil // what the server may not be asked stays as it was foreseen
	}
	mutated := fieldpath.NewSet()
	back.Iterate(func(p fieldpath.Path) {
		if _, fills := lookup(full, p[len(templateOf):]); !fills {
			mutated.Insert(p.Copy())
		}
	})
	if mutated.Empty() {
		return nil
	}
	without, _ = prune(foreseen.Object, mutated).(map[string]any)
	return redact.Compare(foreseen.Object, without)
}

// defaultedTemplate is a template of pods as the server fills it in.
func (c *Cluster) defaultedTemplate(ctx context.Context, namespace string, template map[string]any, manager string) (map[string]any, error) {
	mapping, err := c.Mapping(ctx, templatesKind.GVK())
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"template": template}}
	o.SetGroupVersionKind(templatesKind.GVK())
	o.SetNamespace(namespace)
	o.SetGenerateName("pergola-")
	body, err := payload(o)
	if err != nil {
		return nil, err
	}
	path := pathOf(mapping, namespace, "")
	raw, err := bodyOf(c.rest.Post().AbsPath(path[:len(path)-1]...).Param("dryRun", metav1.DryRunAll).
		Param("fieldManager", manager).SetHeader("Content-Type", "application/json").Body(body).Do(quiet(ctx)))
	if err != nil {
		return nil, err
	}
	answer, err := objectAnswered(raw)
	if err != nil {
		return nil, err
	}
	full, _, _ := unstructured.NestedMap(answer.Object, "template")
	return full, nil
}
