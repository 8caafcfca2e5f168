// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// withSecretValues returns a copy of a bundle with values in copied Secrets and ConfigMaps
// (render.MarkCopiedValues) and in objects of charts (render.MarkFilledValues). The bundle itself
// has no values, so they exist only in applied objects. With all, a missing value is an error; a
// plan leaves it empty or as rendered, because its source may not exist yet.
func (o *ownerSession) withSecretValues(ctx context.Context, b render.Bundle, all bool) (render.Bundle, error) {
	originals := &valueSources{owner: o, valuesByRef: map[apply.Ref]map[string]string{}, requireAll: all}
	copied := false
	for i, obj := range b.Objects {
		with, err := originals.fillObject(ctx, obj.Unstructured)
		if err != nil {
			return b, fmt.Errorf("bundle %s: %s: %w", b.Name, apply.RefOf(obj.Unstructured), err)
		}
		if with == nil {
			continue
		}
		if !copied {
			b.Objects, copied = slices.Clone(b.Objects), true
		}
		b.Objects[i].Unstructured = with
	}
	return b, nil
}

// valueSources reads the sources of values, each once.
type valueSources struct {
	owner       *ownerSession
	valuesByRef map[apply.Ref]map[string]string
	// requireAll makes a missing value an error.
	requireAll bool
}

// fillObject returns an object with its values, or nil if it needs none.
func (s *valueSources) fillObject(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	copies, err := render.CopiedValues(obj)
	if err != nil {
		return nil, err
	}
	if copies != nil {
		data := make(map[string]any, len(copies))
		for key, from := range copies {
			value, _, err := s.sourceValue(ctx, obj.GetKind(), from.Name, from.Key, "its value "+key)
			if err != nil {
				return nil, err
			}
			data[key] = value
		}
		return withCopiedData(obj, data), nil
	}
	tokens, err := render.FilledValues(obj)
	if err != nil || tokens == nil {
		return nil, err
	}
	values := make(map[string]string, len(tokens))
	for token, from := range tokens {
		value, has, err := s.sourceValue(ctx, from.Kind, from.Name, from.Key, "a value")
		if err != nil {
			return nil, err
		}
		if from.Kind == "Secret" {
			raw, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return nil, fmt.Errorf("key %s of %s is not base64", from.Key, from.Name)
			}
			value = string(raw)
		}
		if has {
			values[token] = value
		}
	}
	return render.FillValues(obj, values), nil
}

// sourceValue returns a stored value; errors quote its use.
func (s *valueSources) sourceValue(ctx context.Context, kind, name, key, what string) (string, bool, error) {
	ref := apply.Ref{APIVersion: "v1", Kind: kind, Namespace: s.owner.ControlPlane(), Name: name}
	source, known := s.valuesByRef[ref]
	if !known {
		var err error
		if source, err = s.owner.readValues(ctx, ref); err != nil {
			return "", false, fmt.Errorf("it gets values of another %s: %w", kind, err)
		}
		s.valuesByRef[ref] = source
	}
	value, has := source[key]
	if !has && s.requireAll {
		return "", false, fmt.Errorf("it gets %s from key %s of %s in cluster %s, which does not exist", what, key, ref, s.owner.Local.Name())
	}
	return value, has, nil
}

// withCopiedData returns a copy with its values.
func withCopiedData(rendered *unstructured.Unstructured, data map[string]any) *unstructured.Unstructured {
	out := rendered.DeepCopy()
	annotations := out.GetAnnotations()
	delete(annotations, render.MarkCopiedValues)
	if len(annotations) == 0 {
		annotations = nil
	}
	out.SetAnnotations(annotations)
	out.Object["data"] = data
	return out
}

// readValues returns the stored values of a Secret or ConfigMap beside the control plane, or nil if
// it does not exist. An immutable one may come from the cache.
func (o *ownerSession) readValues(ctx context.Context, ref apply.Ref) (map[string]string, error) {
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
		return nil, fmt.Errorf("the values of %s in cluster %s are not strings", ref, o.Local.Name())
	}
	return values, nil
}
