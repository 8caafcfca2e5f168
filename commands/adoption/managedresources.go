// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/internal/printable"
)

var (
	managedResources = schema.GroupVersionKind{Group: "resources.gardener.cloud", Version: "v1alpha1", Kind: "ManagedResource"}
	operatorObjects  = schema.GroupVersionKind{Group: "operator.gardener.cloud", Version: "v1alpha1", Kind: "Extension"}
)

// managedResourceNamespaces are the namespaces of gardener-operator's ManagedResources.
var managedResourceNamespaces = []string{"garden", "istio-system"}

// isAbsent reports whether an object or its kind does not exist.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || apply.IsUnserved(err) || apply.ReasonOf(err) == apply.ReasonNotFound
}

// listObjects reads all objects of a kind without a cache, or none if the kind is not served.
func listObjects(ctx context.Context, c *apply.Cluster, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	mapping, err := c.Mapping(ctx, kind)
	if isAbsent(err) {
		return nil, nil
	}
	ref := apply.Ref{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: namespace}
	if err != nil {
		return nil, c.Explain(ref, "list", err)
	}
	found, err := c.Dynamic().Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.Explain(ref, "list", err)
	}
	return found.Items, nil
}

// checkManagedResources reports ManagedResources that the landscape does not render. They stay,
// with their objects, but their controller is stopped.
func (a *Adopter) checkManagedResources(ctx context.Context, r *Report) error {
	runtime := a.Converger.Cluster(landscape.Runtime)
	known := a.Converger.ManagedResourceNames()[landscape.Runtime]
	kept, missing := 0, []string{}
	for _, namespace := range managedResourceNamespaces {
		found, err := listObjects(ctx, runtime, managedResources, namespace)
		if err != nil {
			return err
		}
		for i := range found {
			if known[namespace+"/"+found[i].GetName()] {
				kept++
			} else {
				missing = append(missing, apply.RefOf(&found[i]).String())
			}
		}
	}
	if kept > 0 {
		r.add(Finding{Level: LevelNoAction, Area: AreaManagedResources, Cluster: landscape.Runtime, Text: fmt.Sprintf("%s are rendered under the same name and class", printable.WithCount(kept, "ManagedResource"))})
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		r.add(Finding{Level: LevelChanges, Area: AreaManagedResources, Cluster: landscape.Runtime, Objects: missing,
			Text:   fmt.Sprintf("the landscape does not render %s: they stay unchanged with their objects, and nothing updates them", printable.WithCount(len(missing), "ManagedResource")),
			Advice: "declare the ones that you need in the landscape; an Extension brings its own (extension-…)"})
	}
	return nil
}

// gardenClass is the class of the extension objects that gardener-operator creates.
const gardenClass = "garden"

// checkExtensions reports extension objects that the landscape does not render.
func (a *Adopter) checkExtensions(ctx context.Context, r *Report) error {
	runtime := a.Converger.Cluster(landscape.Runtime)
	rendered := map[string]bool{}
	for _, place := range a.Converger.RenderedObjects() {
		if place.Cluster == landscape.Runtime {
			for _, o := range place.Bundle.Objects {
				rendered[apply.RefOf(o.Unstructured).String()] = true
			}
		}
	}
	var problems []error
	for _, kind := range []string{"BackupBucket", "BackupEntry", "DNSRecord", "Extension"} {
		found, err := listObjects(ctx, runtime, schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: kind}, "")
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for i := range found {
			o := &found[i]
			if ref := apply.RefOf(o).String(); stringField(o, "spec", "class") == gardenClass && !rendered[ref] {
				r.add(Finding{Level: LevelChanges, Area: AreaExtensions, Cluster: landscape.Runtime, Objects: []string{ref}, Text: "gardener-operator created it, and the landscape does not render it: it stays unchanged, and its extension gets no more requests",
					Advice: "check that the Garden in Git declares the same (spec.dns, spec.extensions, etcd backup)"})
			}
		}
	}
	found, err := listObjects(ctx, runtime, operatorObjects, "")
	if err != nil {
		problems = append(problems, err)
	}
	var extensions []string
	for i := range found {
		if ref := apply.RefOf(&found[i]); !a.Converger.IsDeclared(landscape.Runtime, ref) {
			extensions = append(extensions, ref.String())
		}
	}
	if len(extensions) > 0 {
		r.add(Finding{Level: LevelChanges, Area: AreaExtensions, Cluster: landscape.Runtime, Objects: extensions, Text: "the landscape does not declare these objects: they stay unchanged", Advice: "add them to the landscape, without their status"})
	}
	return errors.Join(problems...)
}
