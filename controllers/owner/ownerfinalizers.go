// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner/finalizers"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// Finalizers of a Garden, and of the objects that it refers to (upstream's).
const (
	finalizerOperator  = "gardener.cloud/operator"
	finalizerReference = "gardener.cloud/reference-protection"
)

// addFinalizers adds finalizers to a Garden and to the objects that it refers to. Only one Garden
// may exist: guard rejects a second one.
func (r *run) addFinalizers(ctx context.Context) error {
	o := r.owner
	if o.Input.Owner.Kind != Garden {
		return nil
	}
	if err := r.requireOnlyGarden(ctx); err != nil {
		return err
	}
	if err := finalizers.Change(ctx, o.ObjectCluster, settingsByKind[Garden].fieldManager, o.Ref, finalizers.Add(settingsByKind[Garden].finalizers...)); err != nil {
		return err
	}
	if err := r.reconciler.readExtensions(ctx, o); err != nil {
		return err
	}
	if err := r.addExtensionFinalizers(ctx); err != nil {
		return err
	}
	return r.protectReferences(ctx, append(crosscheck.ConfigReferences("Garden", o.Input.Objects[Garden]), o.extensionReferences()...), false)
}

// removeFinalizers removes the finalizers of objects that the Garden no longer refers to, after its
// components stopped using them.
func (r *run) removeFinalizers(ctx context.Context) error {
	if r.owner.Input.Owner.Kind != Garden {
		return nil
	}
	if err := r.removeExtensionFinalizers(ctx); err != nil {
		return err
	}
	return r.protectReferences(ctx, append(crosscheck.ConfigReferences("Garden", r.owner.Input.Objects[Garden]), r.owner.extensionReferences()...), true)
}

// requireOnlyGarden returns an error if another Garden existed first.
func (r *run) requireOnlyGarden(ctx context.Context) error {
	o := r.owner
	mapping, err := o.ObjectCluster.Mapping(ctx, o.Ref.GVK())
	if err != nil {
		return o.ObjectCluster.Explain(o.Ref, "list the Gardens other than", err)
	}
	client, err := metadata.NewForConfig(o.ObjectCluster.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", o.ObjectCluster.Name(), err)
	}
	list, err := client.Resource(mapping.Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o.ObjectCluster.Explain(o.Ref, "list the Gardens other than", err)
	}
	own := slices.IndexFunc(list.Items, func(g metav1.PartialObjectMetadata) bool { return g.Name == o.Ref.Name })
	if own < 0 {
		return nil // a later request reports the missing Garden
	}
	for i := range list.Items {
		if other := &list.Items[i]; i != own && isPreferredGarden(other, &list.Items[own]) {
			return fmt.Errorf("the Garden %q already exists, and only one is possible: nothing is created for this one until that one is deleted", other.Name)
		}
	}
	return nil
}

// isPreferredGarden reports whether Garden a counts instead of b: the one with our finalizer, else
// the older one.
func isPreferredGarden(a, b *metav1.PartialObjectMetadata) bool {
	made := func(g *metav1.PartialObjectMetadata) bool { return slices.Contains(g.Finalizers, finalizerOperator) }
	switch {
	case made(a) != made(b):
		return made(a)
	case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// protectReferences adds the finalizer to referred objects; with release it removes it from all
// others in the namespace.
func (r *run) protectReferences(ctx context.Context, referred []crosscheck.ConfigReference, release bool) error {
	o := r.owner
	client, err := metadata.NewForConfig(o.ObjectCluster.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", o.ObjectCluster.Name(), err)
	}
	var problems []error
	for kind, plural := range map[string]string{"Secret": "secrets", "ConfigMap": "configmaps"} {
		of := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: plural}).Namespace(o.Input.Owner.ControlPlaneNamespace)
		list, err := of.List(ctx, metav1.ListOptions{})
		if err != nil {
			return o.ObjectCluster.Explain(apply.Ref{APIVersion: "v1", Kind: kind, Namespace: o.Input.Owner.ControlPlaneNamespace}, "list", err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			ref := apply.Ref{APIVersion: "v1", Kind: kind, Namespace: item.Namespace, Name: item.Name}
			wanted := slices.ContainsFunc(referred, func(r crosscheck.ConfigReference) bool { return r.Kind == kind && r.Name == item.Name })
			has := slices.Contains(item.Finalizers, finalizerReference)
			switch {
			case wanted && !has && item.DeletionTimestamp == nil:
				err = finalizers.Patch(ctx, o.ObjectCluster, settingsByKind[Garden].fieldManager, of, ref, item, finalizers.Add(finalizerReference))
			case !wanted && has && release:
				err = finalizers.Patch(ctx, o.ObjectCluster, settingsByKind[Garden].fieldManager, of, ref, item, finalizers.Remove(finalizerReference))
			}
			problems = append(problems, err)
			err = nil
		}
	}
	return errors.Join(problems...)
}

// identityObject returns an object with only its identity.
func identityObject(ref apply.Ref) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(ref.APIVersion)
	o.SetKind(ref.Kind)
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	return o
}

// HasFinalizer reports whether a Garden has a finalizer until its components are deleted.
func HasFinalizer(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetFinalizers(), func(f string) bool { return f == finalizerOperator || f == finalizerReference })
}
