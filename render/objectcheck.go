// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/render/strict"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// objectCheck checks the objects of a component against the schemas of their kinds.
type objectCheck struct {
	kinds *kindSchemas
	input *Input
}

func (o Options) newObjectCheck(in *Input) objectCheck { return objectCheck{kinds: o.kinds, input: in} }

func (c objectCheck) schemaOf(gvk schema.GroupVersionKind) *strict.Kind { return c.kinds.schemaOf(gvk) }

// clusterMinor is the Kubernetes minor release of a cluster.
func (c objectCheck) clusterMinor(cluster string) int {
	version, err := semver.NewVersion(helmKubeVersion(*c.input, cluster))
	if err != nil {
		version = semver.MustParse(DefaultKubernetesVersion)
	}
	return int(version.Minor())
}

// check lists the faults of an object.
func (c objectCheck) check(o *unstructured.Unstructured, minor int) []structure.Finding {
	kind := c.schemaOf(o.GroupVersionKind())
	if kind == nil {
		return nil
	}
	found := kind.Check(o.Object, minor)
	if strict.IsRole(o.GroupVersionKind()) {
		found = append(found, strict.CheckRole(o.Object, c.kinds.plurals)...)
	}
	if _, copied := o.GetAnnotations()[MarkCopiedValues]; copied { // the cluster fills in its data
		found = slices.DeleteFunc(found, func(f structure.Finding) bool { return f.Type == string(schemas.TypeRequired) && f.Path[0] == "data" })
	}
	return found
}

func (c objectCheck) checkForm(o *unstructured.Unstructured, minor int) []structure.Finding {
	if kind := c.schemaOf(o.GroupVersionKind()); kind != nil {
		return kind.CheckStructure(o.Object, minor)
	}
	return nil
}

// checkWithoutNamespace is check for an object without its final namespace.
func (c objectCheck) checkWithoutNamespace(o *unstructured.Unstructured, minor int) []structure.Finding {
	return slices.DeleteFunc(c.check(o, minor), strict.IsMissingNamespace)
}

// checkBundles finds faults of rendered objects that API servers would reject or drop. Each error
// has the object's origin.
func (c objectCheck) checkBundles(bundles []Bundle) error {
	var problems []error
	for _, b := range bundles {
		minor := c.clusterMinor(b.Cluster)
		for _, o := range b.Objects {
			check := c.check
			if o.GetKind() == "CustomResourceDefinition" {
				// The full check takes as long as all other objects; tests run it for the
				// catalogue, and overlays were checked.
				check = c.checkForm
			}
			for _, found := range check(o.Unstructured, minor) {
				f := objectFinding(schemas.Position{File: o.Origin.File, Line: o.Origin.Line}, o.Unstructured, found)
				problems = append(problems, fmt.Errorf("bundle %s: %w", b.Name, f))
			}
		}
	}
	return errors.Join(problems...)
}

// checkChart is bundles for a chart from a registry, which is not part of the landscape: the bundle
// gets a problem.
func (c objectCheck) checkChart(objects []Object, cluster string) error {
	minor := c.clusterMinor(cluster)
	for _, o := range objects {
		for _, found := range c.checkWithoutNamespace(o.Unstructured, minor) {
			return &chartError{text: "the chart renders objects that API servers reject: " + objectFinding(schemas.Position{File: o.Origin.File}, o.Unstructured, found).Error()}
		}
	}
	return nil
}

// objectFinding is about a field of a rendered object.
func objectFinding(at schemas.Position, o *unstructured.Unstructured, found structure.Finding) finding {
	return finding{
		Position: at, field: found.Path.String(), kind: schemas.ViolationType(found.Type), message: found.Message,
		object: objectIdentity{o.GetKind(), o.GetNamespace(), o.GetName()},
	}
}
