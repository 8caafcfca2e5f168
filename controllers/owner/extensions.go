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
	"github.com/pergola-dev/pergola/schemas/across"
)

// What the Extensions of the operator install belongs to the Garden: it is rendered with it, and
// has its steps in the Garden's flow. Here is what is done for the Extensions themselves; what is
// said of them is in extensions_status.go.

// readExtensions finds the Extensions that there are, whoever made them. What Git declares goes
// before what is there; what Git does not declare any more is still there while it is being
// deleted.
func (r *Reconciler) readExtensions(ctx context.Context, o *subject) error {
	if o.Input.Owner.Kind != Garden {
		return nil
	}
	gvk := operatorv1alpha1.SchemeGroupVersion.WithKind(render.KindExtension.Kind)
	live, err := listWhole(ctx, o.Home, gvk)
	if err != nil {
		return err
	}
	r.mergeExtensions(o, live)
	pulled := r.pullCharts(ctx, o)
	checksums, err := o.resourceChecksums(ctx)
	if err != nil {
		return err
	}
	o.note(func(*State) { o.Input.Charts, o.Input.ResourceChecksums = pulled, checksums })
	return nil
}

// resourceChecksums tell contents of what Extensions take values from apart, so that what a chart
// makes of its configuration follows them.
func (o *subject) resourceChecksums(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for _, resource := range o.Input.WantedResources() {
		ref := apply.Ref{APIVersion: "v1", Kind: resource.ResourceRef.Kind, Namespace: o.ControlPlane(), Name: resource.ResourceRef.Name}
		key := render.ReferenceKey(ref.Kind, ref.Name)
		if _, known := out[key]; known {
			continue
		}
		values, err := o.valuesOf(ctx, ref)
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

// mergeExtensions puts those that there are beside those that Git declares.
func (r *Reconciler) mergeExtensions(o *subject, live []*unstructured.Unstructured) {
	o.note(func(s *State) {
		s.extensions = live
		all := maps.Clone(o.declared)
		if all == nil {
			all = map[string]render.Extension{}
		}
		for _, obj := range live {
			if _, ours := all[obj.GetName()]; !ours {
				e := render.ExtensionOf(obj)
				e.Leaving = obj.GetDeletionTimestamp() != nil
				all[e.Name] = e
			}
		}
		o.Input.Extensions = all
		o.Input.SettleExtensions()
	})
}

// pullCharts asks for the charts of Extensions. One that cannot be had is no error here: it is one
// of the bundle that it is for.
func (r *Reconciler) pullCharts(ctx context.Context, o *subject) map[string]render.Chart {
	if r.Charts == nil {
		return nil
	}
	return r.Charts.All(ctx, o.Input.WantedCharts(), func(secret string) (map[string][]byte, error) {
		ref := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: o.Input.ReferenceNamespace(), Name: secret}
		live, err := o.Home.GetLive(ctx, ref)
		if err != nil {
			return nil, o.Home.Explain(ref, "read", err)
		}
		var s corev1.Secret
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &s)
		return s.Data, err
	})
}

// listWhole asks for all objects of a kind, also those that nobody has given a label of ours; none
// where the kind is not served.
func listWhole(ctx context.Context, c *apply.Cluster, gvk schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
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

// installedFor are the bundles of an Extension; steps of the flows have the same names.
func installedFor(extension string) []string {
	return []string{
		bundleRuntime(extension), "extension-registration-" + extension, "extension-admission-access-" + extension,
		bundleAdmissionVirtual(extension), bundleAdmissionRuntime(extension),
	}
}

// Names of ManagedResources (upstream's).
func bundleRuntime(extension string) string { return "extension-" + extension + "-garden" }
func bundleAdmissionVirtual(extension string) string {
	return "extension-admission-virtual-" + extension
}
func bundleAdmissionRuntime(extension string) string {
	return "extension-admission-runtime-" + extension
}

// extensionReferences are the Secrets and ConfigMaps that Extensions name: they are protected as
// those of the Garden are.
func (o *subject) extensionReferences() []across.Reference {
	var out []across.Reference
	for _, e := range o.input().Extensions {
		if !e.Leaving {
			out = append(out, across.References(render.KindExtension.Kind, map[string]any{"spec": e.Spec})...)
		}
	}
	return out
}

// guardExtensions keeps Extensions from going before what was installed for them has.
func (r *run) guardExtensions(ctx context.Context) error {
	var problems []error
	for _, live := range r.owner.now().extensions {
		if live.GetDeletionTimestamp() == nil && !slices.Contains(live.GetFinalizers(), finalizerOperator) {
			problems = append(problems, finalizers.Change(ctx, r.owner.Home, kinds[Garden].role, apply.RefOf(live), finalizers.With(finalizerOperator)))
		}
	}
	return errors.Join(problems...)
}

// releaseExtensions lets those go that are being deleted and that the Garden does not need. One
// that Git declares is made anew by the next run.
func (r *run) releaseExtensions(ctx context.Context) error {
	rendered := map[string]bool{}
	for _, b := range r.owner.Bundles() {
		rendered[b.Name] = true
	}
	var problems []error
	for _, live := range r.owner.now().extensions {
		name := live.GetName()
		if live.GetDeletionTimestamp() == nil || !r.owner.isDeclared(name) && slices.ContainsFunc(installedFor(name), func(b string) bool { return rendered[b] }) {
			continue
		}
		if left, err := r.isInstalled(ctx, name); err != nil || left && !r.owner.isDeclared(name) {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, finalizers.Change(ctx, r.owner.Home, kinds[Garden].role, apply.RefOf(live), finalizers.Without(finalizerOperator)))
	}
	return errors.Join(problems...)
}

// isInstalled tells whether something is left of what was installed for an Extension: a deletion
// may be held until somebody approves it.
func (r *run) isInstalled(ctx context.Context, extension string) (bool, error) {
	for _, name := range installedFor(extension) {
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

// isDeclared tells whether Git declares an Extension.
func (o *subject) isDeclared(extension string) bool {
	_, is := o.declared[extension]
	return is
}
