package references

import (
	"cmp"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/render"
)

const (
	// Prefix begins the names of copies (upstream's), except that of credentials.
	Prefix = "ref-"
	// LabelCopy is on each of them.
	LabelCopy = "references.pergola.dev/copy"
)

// component is where plans and reports say that the bundle comes from. It is none of the catalogue:
// the content is not known to a render.
const component = "shoot/" + render.BundleReferences

// Copies is the bundle (upstream has a ManagedResource of its name) of all that a Shoot refers to,
// for the namespace of its control plane. It is not resolved while something is missing: then it is
// as it was. It says false where the Shoot refers to nothing.
func Copies(of render.Owner, found []Found) (render.Bundle, bool, error) {
	b := render.Bundle{
		Name: render.BundleReferences, Component: component, Owner: of, Cluster: render.ClusterSeed, Namespace: of.ControlPlaneNamespace,
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
	return b, len(found) > 0, b.Seal(unresolved...)
}

// copyOf takes the content and nothing else: labels and annotations of users mean nothing on a
// seed, and what cannot be changed here may well be replaced there.
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
	out.SetName(Prefix + original.GetName())
	out.SetNamespace(namespace)
	out.SetLabels(map[string]string{LabelCopy: "true"})
	// The original may be made anew with another type, which cannot be changed.
	out.SetAnnotations(map[string]string{resourcesv1alpha1.DeleteOnInvalidUpdate: "true"})
	return out
}
