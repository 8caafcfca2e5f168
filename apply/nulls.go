package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// A null in a field of an API type means that the field is unset. Rendered charts are full of
// nulls, and an apply would own these fields. In a free-form part, such as the values of a chart, a
// null is a value that the server stores. So nulls are dropped by the schema of the kind. Kinds of
// client-go have no free-form part; other schemas are read if an object has a null.

// form is the part of an OpenAPI schema that decides what a null means.
type form struct {
	Ref         string           `json:"$ref"`
	AllOf       []*form          `json:"allOf"`
	Type        string           `json:"type"`
	Properties  map[string]*form `json:"properties"`
	Additional  additional       `json:"additionalProperties"`
	Items       *form            `json:"items"`
	AnyOf       []any            `json:"anyOf"`
	OneOf       []any            `json:"oneOf"`
	IntOrString bool             `json:"x-kubernetes-int-or-string"`
	Preserve    bool             `json:"x-kubernetes-preserve-unknown-fields"`
	Nullable    bool             `json:"nullable"`
	Kinds       []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// additional is the schema of the values of a map; the API also allows a boolean.
type additional struct{ *form }

// UnmarshalJSON reads a schema or a boolean.
func (a *additional) UnmarshalJSON(raw []byte) error {
	if text := string(raw); text == "true" || text == "false" {
		return nil
	}
	return json.Unmarshal(raw, &a.form)
}

// isFree reports whether a part has no structure.
func (f *form) isFree() bool {
	return f.Preserve || len(f.Properties) == 0 && f.Additional.form == nil && f.Items == nil && len(f.AnyOf) == 0 && len(f.OneOf) == 0 &&
		!f.IntOrString && (f.Type == "" || f.Type == "object")
}

// forms are the schemas of one group version, by name.
type forms map[string]*form

func (all forms) of(f *form) *form {
	for f != nil {
		switch {
		case f.Ref != "":
			f = all[f.Ref[strings.LastIndexByte(f.Ref, '/')+1:]]
		case len(f.AllOf) == 1 && len(f.Properties) == 0: // a reference with a description
			nullable := f.Nullable
			if f = all.of(f.AllOf[0]); nullable && f != nil {
				with := *f
				with.Nullable = true
				f = &with
			}
			return f
		default:
			return f
		}
	}
	return nil
}

// dropNulls removes null entries of maps outside of free-form parts. Without a schema there is no
// free-form part.
func (all forms) dropNulls(v any, f *form) {
	f = all.of(f)
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			var of *form
			if f != nil {
				if of = f.Properties[k]; of == nil {
					if f.isFree() {
						continue
					}
					of = f.Additional.form
				}
			}
			of = all.of(of)
			if inner != nil {
				all.dropNulls(inner, of)
			} else if of == nil || !of.Nullable {
				delete(v, k)
			}
		}
	case []any:
		if f != nil && f.isFree() {
			return
		}
		var of *form
		if f != nil {
			of = f.Items
		}
		for _, item := range v {
			all.dropNulls(item, of)
		}
	}
}

// hasNulls reports whether a map in a value has a null entry.
func hasNulls(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if inner == nil || hasNulls(inner) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if hasNulls(item) {
				return true
			}
		}
	}
	return false
}

// withoutNulls returns an object without nulls that mean unset.
func (r *run) withoutNulls(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !hasNulls(o.Object) {
		return o, nil
	}
	o = o.DeepCopy()
	forms{}.dropNulls(o.Object["metadata"], nil)
	for _, field := range []string{"metadata", "status"} {
		if o.Object[field] == nil {
			delete(o.Object, field)
		}
	}
	if !hasNulls(withoutStatus(o.Object)) {
		return o, nil
	}
	all, root, err := r.formOf(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s, which says what the nulls in %s mean: %w", o.GetKind(), RefOf(o), err)
	}
	all.dropNulls(o.Object, root)
	return o, nil
}

func withoutStatus(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for field, v := range object {
		if field != "status" {
			out[field] = v
		}
	}
	return out
}

// formOf returns the schema of a kind from its CustomResourceDefinition in the set, or else from
// the server. It returns nil for kinds of client-go.
func (r *run) formOf(ctx context.Context, gvk schema.GroupVersionKind) (forms, *form, error) {
	if gvk.GroupKind() != crdKind && scheme.Scheme.Recognizes(gvk) {
		return nil, nil, nil
	}
	if crd := r.crds[gvk.GroupKind()]; crd != nil {
		root, err := formIn(crd, gvk.Version)
		return nil, root, err
	}
	return r.c.formOf(ctx, gvk)
}

// formIn returns the schema of a version in a CustomResourceDefinition; nil if it has none.
func formIn(crd *unstructured.Unstructured, version string) (*form, error) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if m["name"] != version {
			continue
		}
		content, _, _ := unstructured.NestedFieldNoCopy(m, "schema", "openAPIV3Schema")
		raw, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		var out *form
		if err := json.Unmarshal(raw, &out); err != nil {
			return nil, err
		}
		return out, nil
	}
	return nil, nil
}

// formsAge is how long the schemas of a cluster are cached, unless ResetMapping drops them.
const formsAge = 10 * time.Minute

// knownForms caches the schemas of a cluster.
type knownForms struct {
	mu sync.Mutex
	of map[schema.GroupVersion]formsRead
}

// formsRead has the published schemas of a group version, and the schema of each kind by name. A
// kind without a schema is nil.
type formsRead struct {
	forms  forms
	kinds  map[string]*form
	readAt time.Time
}

// formOf returns the schema of a kind on the server; nil if it has none. A server publishes the
// schema of a new CustomResourceDefinition some time after it serves the kind. Until then formOf
// reads the definition.
func (c *Cluster) formOf(ctx context.Context, gvk schema.GroupVersionKind) (forms, *form, error) {
	c.schemas.mu.Lock()
	defer c.schemas.mu.Unlock()
	known, has := c.schemas.of[gvk.GroupVersion()]
	if !has || c.clock.Since(known.readAt) >= formsAge {
		published, err := c.publishedForms(ctx, gvk.GroupVersion())
		if err != nil {
			return nil, nil, err
		}
		known = formsRead{published, map[string]*form{}, c.clock.Now()}
		for _, f := range published {
			for _, kind := range f.Kinds {
				if kind.Group == gvk.Group && kind.Version == gvk.Version {
					known.kinds[kind.Kind] = f
				}
			}
		}
		if c.schemas.of == nil {
			c.schemas.of = map[schema.GroupVersion]formsRead{}
		}
		c.schemas.of[gvk.GroupVersion()] = known
	}
	root, has := known.kinds[gvk.Kind]
	if !has {
		var err error
		if root, err = c.definedForm(ctx, gvk); err != nil {
			return nil, nil, err
		}
		known.kinds[gvk.Kind] = root
	}
	return known.forms, root, nil
}

// publishedForms reads the OpenAPI schemas of a group version; none if the server has none.
func (c *Cluster) publishedForms(ctx context.Context, gv schema.GroupVersion) (forms, error) {
	path := []string{"openapi", "v3", "apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"openapi", "v3", "api", gv.Version}
	}
	raw, err := bodyOf(c.rest.Get().AbsPath(path...).SetHeader("Accept", "application/json").Do(quiet(ctx)))
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas forms `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	return document.Components.Schemas, nil
}

// definedForm reads the schema of a kind in its CustomResourceDefinition; nil if there is none, or
// this user must not read it.
func (c *Cluster) definedForm(ctx context.Context, gvk schema.GroupVersionKind) (*form, error) {
	mapping, err := c.Mapping(ctx, gvk)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	crd, err := c.GetLive(quiet(ctx), Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: crdKind.Kind, Name: mapping.Resource.GroupResource().String()})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return formIn(crd, gvk.Version)
}

func (k *knownForms) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of = nil
}
