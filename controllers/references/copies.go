// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/render"
)

const (
	// CopyPrefix begins the names of copies (as in upstream), except the copy of credentials.
	CopyPrefix = "ref-"
	// LabelCopy is set on each copy.
	LabelCopy = "references.pergola.dev/copy"
)

// copyComponent is the source of the bundle in plans and reports. It is not in the catalogue: a
// render does not know the content.
const copyComponent = "shoot/" + render.BundleReferences

// CopyBundle returns the bundle of all objects that a Shoot refers to, for the namespace of its
// control plane. (Upstream has a ManagedResource of its name.) While an object is missing, the
// bundle is unresolved and the applied one stays. The result is false if the Shoot refers to
// nothing.
func CopyBundle(of render.Owner, found []LookupResult) (render.Bundle, bool, error) {
	b := render.Bundle{
		Name: render.BundleReferences, Component: copyComponent, Owner: of, Cluster: render.ClusterSeed, Namespace: of.ControlPlaneNamespace,
		Condition: "ControlPlaneHealthy", Delivery: render.Delivery{Direct: true},
	}
	var unresolved []string
	for _, f := range found {
		original := f.Kind + " " + cmp.Or(f.Namespace, of.Namespace) + "/" + f.Name
		if f.Object == nil {
			unresolved = append(unresolved, original)
			continue
		}
		made := copyOf
		if f.Credentials {
			made = copyOfCredentials
		}
		b.Objects = append(b.Objects, render.Object{
			Unstructured: made(f.Object, of.ControlPlaneNamespace), Origin: render.Origin{File: original + " of the garden"},
		})
	}
	return b, len(found) > 0, b.SetDigest(unresolved...)
}

// copyOf copies only the content. A user's labels and annotations mean nothing on a seed, and the
// user may replace an immutable original.
func copyOf(original *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	content := map[string]any{}
	for _, field := range []string{"data", "binaryData", "type"} {
		if value, has := original.Object[field]; has {
			content[field] = value
		}
	}
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": original.GetKind()}}
	maps.Copy(out.Object, content)
	out = out.DeepCopy()
	out.SetName(CopyPrefix + original.GetName())
	out.SetNamespace(namespace)
	out.SetLabels(map[string]string{LabelCopy: "true"})
	// The original may be recreated with another type, which is immutable.
	out.SetAnnotations(map[string]string{resourcesv1alpha1.DeleteOnInvalidUpdate: "true"})
	return out
}
