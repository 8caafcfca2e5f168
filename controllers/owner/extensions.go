// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner/finalizers"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// Extensions of the operator belong to the Garden: their bundles are rendered with it, and are
// steps of its flow. This file handles the Extensions themselves; their conditions are in
// extensions_status.go.

// readExtensions reads the existing Extensions. A declaration in Git replaces the live object. A
// live Extension that Git no longer declares still counts during its deletion.
func (r *Reconciler) readExtensions(ctx context.Context, o *ownerSession) error {
	if o.Input.Owner.Kind != Garden {
		return nil
	}
	gvk := operatorv1alpha1.SchemeGroupVersion.WithKind(render.KindExtension.Kind)
	live, err := listAllObjects(ctx, o.ObjectCluster, gvk)
	if err != nil {
		return err
	}
	r.mergeExtensions(o, live)
	pulled := r.pullCharts(ctx, o)
	checksums, err := o.resourceChecksums(ctx)
	if err != nil {
		return err
	}
	o.updateState(func(*State) { o.Input.Charts, o.Input.ResourceChecksums = pulled, checksums })
	return nil
}

// resourceChecksums returns checksums of the resources with values for Extensions, so that charts
// are rendered again when the values change.
func (o *ownerSession) resourceChecksums(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for _, resource := range o.Input.RequiredResources() {
		ref := apply.Ref{APIVersion: "v1", Kind: resource.ResourceRef.Kind, Namespace: o.ControlPlane(), Name: resource.ResourceRef.Name}
		key := render.ReferenceKey(ref.Kind, ref.Name)
		if _, known := out[key]; known {
			continue
		}
		values, err := o.readValues(ctx, ref)
		if err != nil {
			return nil, err
		}
		content := make(map[string][]byte, len(values))
		for name, value := range values {
			content[name] = []byte(value)
		}
		out[key] = render.ChecksumOf(content)
	}
	return out, nil
}

// mergeExtensions adds the live Extensions to the declared ones.
func (r *Reconciler) mergeExtensions(o *ownerSession, live []*unstructured.Unstructured) {
	o.updateState(func(s *State) {
		s.extensions = live
		all := maps.Clone(o.declaredExtensions)
		if all == nil {
			all = map[string]render.Extension{}
		}
		for _, obj := range live {
			if _, ours := all[obj.GetName()]; !ours {
				e := render.ExtensionOf(obj)
				e.Deleting = obj.GetDeletionTimestamp() != nil
				all[e.Name] = e
			}
		}
		o.Input.Extensions = all
		o.Input.MarkRequiredExtensions()
	})
}

// pullCharts pulls the charts of Extensions. A failure is an error of only the chart's bundle.
func (r *Reconciler) pullCharts(ctx context.Context, o *ownerSession) map[string]render.Chart {
	if r.Charts == nil {
		return nil
	}
	return r.Charts.PullAll(ctx, o.Input.RequiredCharts(), func(secret string) (map[string][]byte, error) {
		ref := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: o.Input.ReferenceNamespace(), Name: secret}
		live, err := o.ObjectCluster.GetLive(ctx, ref)
		if err != nil {
			return nil, o.ObjectCluster.Explain(ref, "read", err)
		}
		var s corev1.Secret
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &s)
		return s.Data, err
	})
}

// listAllObjects lists all objects of a kind without the label selector of the cache; it is empty
// if the kind is not served.
func listAllObjects(ctx context.Context, c *apply.Cluster, gvk schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	mapping, err := c.Mapping(ctx, gvk)
	if apply.IsUnserved(err) {
		return nil, nil
	}
	ref := apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
	if err != nil {
		return nil, c.Explain(ref, "list", err)
	}
	list, err := c.Dynamic().Resource(mapping.Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.Explain(ref, "list", err)
	}
	out := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// extensionBundles returns the bundles of an Extension; steps of the flows have the same names.
func extensionBundles(extension string) []string {
	return []string{
		bundleRuntime(extension), "extension-registration-" + extension, "extension-admission-access-" + extension,
		bundleAdmissionVirtual(extension), bundleAdmissionRuntime(extension),
	}
}

func bundleRuntime(extension string) string { return "extension-" + extension + "-garden" }
func bundleAdmissionVirtual(extension string) string {
	return "extension-admission-virtual-" + extension
}
func bundleAdmissionRuntime(extension string) string {
	return "extension-admission-runtime-" + extension
}

// extensionReferences returns the Secrets and ConfigMaps that Extensions refer to. They are
// protected like those of the Garden.
func (o *ownerSession) extensionReferences() []crosscheck.ConfigReference {
	var out []crosscheck.ConfigReference
	for _, e := range o.inputCopy().Extensions {
		if !e.Deleting {
			out = append(out, crosscheck.ConfigReferences(render.KindExtension.Kind, map[string]any{"spec": e.Spec})...)
		}
	}
	return out
}

// addExtensionFinalizers adds finalizers, so that Extensions exist until their bundles are deleted.
func (r *run) addExtensionFinalizers(ctx context.Context) error {
	var problems []error
	for _, live := range r.owner.currentState().extensions {
		if live.GetDeletionTimestamp() == nil && !slices.Contains(live.GetFinalizers(), finalizerOperator) {
			problems = append(problems, finalizers.Change(ctx, r.owner.ObjectCluster, settingsByKind[Garden].fieldManager, apply.RefOf(live), finalizers.Add(finalizerOperator)))
		}
	}
	return errors.Join(problems...)
}

// removeExtensionFinalizers removes the finalizers of deleted Extensions that the Garden does not
// need. The next run recreates an Extension that Git declares.
func (r *run) removeExtensionFinalizers(ctx context.Context) error {
	rendered := map[string]bool{}
	for _, b := range r.owner.Bundles() {
		rendered[b.Name] = true
	}
	var problems []error
	for _, live := range r.owner.currentState().extensions {
		name := live.GetName()
		if live.GetDeletionTimestamp() == nil || !r.owner.isExtensionDeclared(name) && slices.ContainsFunc(extensionBundles(name), func(b string) bool { return rendered[b] }) {
			continue
		}
		if left, err := r.hasExtensionBundles(ctx, name); err != nil || left && !r.owner.isExtensionDeclared(name) {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, finalizers.Change(ctx, r.owner.ObjectCluster, settingsByKind[Garden].fieldManager, apply.RefOf(live), finalizers.Remove(finalizerOperator)))
	}
	return errors.Join(problems...)
}

// hasExtensionBundles reports whether bundles of an Extension still exist: their deletion may be
// held until it is approved.
func (r *run) hasExtensionBundles(ctx context.Context, extension string) (bool, error) {
	for _, name := range extensionBundles(extension) {
		ref := managedResourceRef(r.owner.ControlPlane(), name)
		_, err := r.owner.Local.GetLive(ctx, ref)
		if err == nil {
			return true, nil
		}
		if !apierrors.IsNotFound(err) && !apply.IsUnserved(err) {
			return false, r.owner.Local.Explain(ref, "read", err)
		}
	}
	return false, nil
}

// isExtensionDeclared reports whether Git declares an Extension.
func (o *ownerSession) isExtensionDeclared(extension string) bool {
	_, is := o.declaredExtensions[extension]
	return is
}
