// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// Facts returns the facts about found objects that rendering may use, without unusable objects.
func Facts(found []LookupResult) (map[string]render.ReferenceFact, error) {
	var out map[string]render.ReferenceFact
	for _, f := range found {
		if f.Object == nil || f.Credentials { // no component reads credentials
			continue
		}
		fact, err := render.ReferenceFactOf(f.ConfigReference, f.Object)
		if err != nil {
			return nil, fmt.Errorf("the reference in %s: %w", f.Fields[0], err)
		}
		if out == nil {
			out = map[string]render.ReferenceFact{}
		}
		out[render.ReferenceKey(f.Kind, f.Name)] = fact
	}
	return out, nil
}

// WithDeclared replaces live objects with those that Git declares, which is their state after the
// next apply.
func WithDeclared(found []LookupResult, in render.Input) []LookupResult {
	out := slices.Clone(found)
	for i := range out {
		if out[i].Credentials {
			if declared, has := declaredCredentials(in); has {
				out[i] = declared
			}
			continue
		}
		if declared := in.DeclaredReferences[render.ReferenceKey(out[i].Kind, out[i].Name)]; declared != nil {
			out[i].Object, out[i].Problem = asStored(declared()), nil
		}
	}
	return out
}

// declaredCredentials returns the credentials if Git declares both binding and Secret.
func declaredCredentials(in render.Input) (LookupResult, bool) {
	if in.DeclaredCredentials == nil {
		return LookupResult{}, false
	}
	found, has, err := findCredentials(in, "", func(ref apply.Ref) (*unstructured.Unstructured, error) {
		return in.DeclaredCredentials(ref.Kind, ref.Namespace, ref.Name), nil
	})
	if !has || err != nil || found.Object == nil {
		return LookupResult{}, false
	}
	found.Object = asStored(found.Object)
	return found, true
}

// asStored converts the content to the form that an API server stores.
func asStored(declared *unstructured.Unstructured) *unstructured.Unstructured {
	texts, has, err := unstructured.NestedStringMap(declared.Object, "stringData")
	if !has || err != nil {
		return declared
	}
	data, _, _ := unstructured.NestedMap(declared.Object, "data") // nil if data is not a map
	stored := map[string]any{}
	maps.Copy(stored, data)
	for key, text := range texts {
		stored[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	declared.Object["data"] = stored
	delete(declared.Object, "stringData")
	return declared
}
