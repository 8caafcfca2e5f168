// SPDX-License-Identifier: Apache-2.0

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

// openAPISchema is the part of an OpenAPI schema that decides what a null means.
type openAPISchema struct {
	Ref         string                    `json:"$ref"`
	AllOf       []*openAPISchema          `json:"allOf"`
	Type        string                    `json:"type"`
	Properties  map[string]*openAPISchema `json:"properties"`
	Additional  additionalProperties      `json:"additionalProperties"`
	Items       *openAPISchema            `json:"items"`
	AnyOf       []any                     `json:"anyOf"`
	OneOf       []any                     `json:"oneOf"`
	IntOrString bool                      `json:"x-kubernetes-int-or-string"`
	Preserve    bool                      `json:"x-kubernetes-preserve-unknown-fields"`
	Nullable    bool                      `json:"nullable"`
	Kinds       []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// additionalProperties is the schema of the values of a map; the API also allows a boolean.
type additionalProperties struct{ *openAPISchema }

// UnmarshalJSON reads a schema or a boolean.
func (a *additionalProperties) UnmarshalJSON(raw []byte) error {
	if text := string(raw); text == "true" || text == "false" {
		return nil
	}
	return json.Unmarshal(raw, &a.openAPISchema)
}

// isFreeForm reports whether a part has no structure.
func (f *openAPISchema) isFreeForm() bool {
	return f.Preserve || len(f.Properties) == 0 && f.Additional.openAPISchema == nil && f.Items == nil && len(f.AnyOf) == 0 && len(f.OneOf) == 0 &&
		!f.IntOrString && (f.Type == "" || f.Type == "object")
}

// openAPISchemas are the schemas of one group version, by name.
type openAPISchemas map[string]*openAPISchema

func (all openAPISchemas) resolve(f *openAPISchema) *openAPISchema {
	for f != nil {
		switch {
		case f.Ref != "":
			f = all[f.Ref[strings.LastIndexByte(f.Ref, '/')+1:]]
		case len(f.AllOf) == 1 && len(f.Properties) == 0: // a reference with a description
			nullable := f.Nullable
			if f = all.resolve(f.AllOf[0]); nullable && f != nil {
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
func (all openAPISchemas) dropNulls(v any, f *openAPISchema) {
	f = all.resolve(f)
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			var of *openAPISchema
			if f != nil {
				if of = f.Properties[k]; of == nil {
					if f.isFreeForm() {
						continue
					}
					of = f.Additional.openAPISchema
				}
			}
			of = all.resolve(of)
			if inner != nil {
				all.dropNulls(inner, of)
			} else if of == nil || !of.Nullable {
				delete(v, k)
			}
		}
	case []any:
		if f != nil && f.isFreeForm() {
			return
		}
		var of *openAPISchema
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
func (r *setRun) withoutNulls(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !hasNulls(o.Object) {
		return o, nil
	}
	o = o.DeepCopy()
	openAPISchemas{}.dropNulls(o.Object["metadata"], nil)
	for _, field := range []string{"metadata", "status"} {
		if o.Object[field] == nil {
			delete(o.Object, field)
		}
	}
	if !hasNulls(withoutStatus(o.Object)) {
		return o, nil
	}
	all, root, err := r.schemaOf(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s, which defines the meaning of the nulls in %s: %w", o.GetKind(), RefOf(o), err)
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

// schemaOf returns the schema of a kind from its CustomResourceDefinition in the set, or else from
// the server. It returns nil for kinds of client-go.
func (r *setRun) schemaOf(ctx context.Context, gvk schema.GroupVersionKind) (openAPISchemas, *openAPISchema, error) {
	if gvk.GroupKind() != crdKind && scheme.Scheme.Recognizes(gvk) {
		return nil, nil, nil
	}
	if crd := r.crds[gvk.GroupKind()]; crd != nil {
		root, err := schemaInCRD(crd, gvk.Version)
		return nil, root, err
	}
	return r.cluster.schemaOf(ctx, gvk)
}

// schemaInCRD returns the schema of a version in a CustomResourceDefinition, or nil if it has none.
func schemaInCRD(crd *unstructured.Unstructured, version string) (*openAPISchema, error) {
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
		var out *openAPISchema
		if err := json.Unmarshal(raw, &out); err != nil {
			return nil, err
		}
		return out, nil
	}
	return nil, nil
}

// schemaMaxAge is how long the schemas of a cluster are cached, unless ResetMapping drops them.
const schemaMaxAge = 10 * time.Minute

// schemaCache caches the schemas of a cluster.
type schemaCache struct {
	mu             sync.Mutex
	byGroupVersion map[schema.GroupVersion]groupVersionSchemas
}

// groupVersionSchemas has the published schemas of a group version, and the schema of each kind by
// name. A kind without a schema is nil.
type groupVersionSchemas struct {
	published openAPISchemas
	kinds     map[string]*openAPISchema
	readAt    time.Time
}

// schemaOf returns the schema of a kind on the server, or nil if it has none. A server publishes
// the schema of a new CustomResourceDefinition some time after it serves the kind. Until then
// schemaOf reads the definition.
func (c *Cluster) schemaOf(ctx context.Context, gvk schema.GroupVersionKind) (openAPISchemas, *openAPISchema, error) {
	c.schemas.mu.Lock()
	defer c.schemas.mu.Unlock()
	known, has := c.schemas.byGroupVersion[gvk.GroupVersion()]
	if !has || c.clock.Since(known.readAt) >= schemaMaxAge {
		published, err := c.readPublishedSchemas(ctx, gvk.GroupVersion())
		if err != nil {
			return nil, nil, err
		}
		known = groupVersionSchemas{published, map[string]*openAPISchema{}, c.clock.Now()}
		for _, f := range published {
			for _, kind := range f.Kinds {
				if kind.Group == gvk.Group && kind.Version == gvk.Version {
					known.kinds[kind.Kind] = f
				}
			}
		}
		if c.schemas.byGroupVersion == nil {
			c.schemas.byGroupVersion = map[schema.GroupVersion]groupVersionSchemas{}
		}
		c.schemas.byGroupVersion[gvk.GroupVersion()] = known
	}
	root, has := known.kinds[gvk.Kind]
	if !has {
		var err error
		if root, err = c.readCRDSchema(ctx, gvk); err != nil {
			return nil, nil, err
		}
		known.kinds[gvk.Kind] = root
	}
	return known.published, root, nil
}

// readPublishedSchemas reads the OpenAPI schemas of a group version, or none if the server has
// none.
func (c *Cluster) readPublishedSchemas(ctx context.Context, gv schema.GroupVersion) (openAPISchemas, error) {
	path := []string{"openapi", "v3", "apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"openapi", "v3", "api", gv.Version}
	}
	raw, err := responseBody(c.rest.Get().AbsPath(path...).SetHeader("Accept", "application/json").Do(withoutLogging(ctx)))
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas openAPISchemas `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	return document.Components.Schemas, nil
}

// readCRDSchema reads the schema of a kind in its CustomResourceDefinition, or nil if there is
// none, or this user must not read it.
func (c *Cluster) readCRDSchema(ctx context.Context, gvk schema.GroupVersionKind) (*openAPISchema, error) {
	mapping, err := c.Mapping(ctx, gvk)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	crd, err := c.GetLive(withoutLogging(ctx), Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: crdKind.Kind, Name: mapping.Resource.GroupResource().String()})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return schemaInCRD(crd, gvk.Version)
}

func (k *schemaCache) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byGroupVersion = nil
}
