package owner

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// filled gives a bundle in which Secrets and ConfigMaps that are copies have their values (render.MarkCopied). The bundle itself stays as it is: values are nowhere
// but in what is sent. What a plan does not find is left empty there (it is made before it is copied); who applies demands all of it.
func (o *Owner) filled(ctx context.Context, b render.Bundle, all bool) (render.Bundle, error) {
	found := map[apply.Ref]map[string]string{}
	copied := false
	for i, obj := range b.Objects {
		values, err := render.CopiedValues(obj.Unstructured)
		if err != nil {
			return b, fmt.Errorf("bundle %s: %s at %s: %w", b.Name, apply.RefOf(obj.Unstructured), obj.Origin, err)
		}
		if values == nil {
			continue
		}
		data := make(map[string]any, len(values))
		for key, from := range values {
			ref := apply.Ref{APIVersion: "v1", Kind: obj.GetKind(), Namespace: o.ControlPlane(), Name: from.Name}
			source, known := found[ref]
			if !known {
				if source, err = o.valuesOf(ctx, ref); err != nil {
					return b, fmt.Errorf("bundle %s: %s gets values of another %s: %w", b.Name, apply.RefOf(obj.Unstructured), ref.Kind, err)
				}
				found[ref] = source
			}
			value, has := source[from.Key]
			if !has && all {
				return b, fmt.Errorf("bundle %s: %s gets its value %s from key %s of %s in cluster %s, which is not there",
					b.Name, apply.RefOf(obj.Unstructured), key, from.Key, ref, o.Local.Name())
			}
			data[key] = value
		}
		if !copied {
			b.Objects, copied = slices.Clone(b.Objects), true
		}
		b.Objects[i].Unstructured = withValues(obj.Unstructured, data)
	}
	return b, nil
}

// withValues is a copy with its values.
func withValues(rendered *unstructured.Unstructured, data map[string]any) *unstructured.Unstructured {
	out := rendered.DeepCopy()
	annotations := out.GetAnnotations()
	delete(annotations, render.MarkCopied)
	if len(annotations) == 0 {
		annotations = nil
	}
	out.SetAnnotations(annotations)
	out.Object["data"] = data
	return out
}

// valuesOf gives the values of a Secret or ConfigMap beside the control plane, as they are stored; nothing where there is none. One that never changes is
// taken as it was seen last.
func (o *Owner) valuesOf(ctx context.Context, ref apply.Ref) (map[string]string, error) {
	live, err := o.Local.Get(ctx, ref)
	if err != nil || live.Object["immutable"] != true {
		live, err = o.Local.GetLive(ctx, ref)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, o.Local.Explain(ref, "read", err)
	}
	values, _, err := unstructured.NestedStringMap(live.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("the values of %s in cluster %s are no texts", ref, o.Local.Name())
	}
	return values, nil
}
