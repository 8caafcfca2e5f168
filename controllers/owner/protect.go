package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/schemas/across"
)

// Finalizers of a Garden, and of what it refers to (upstream's).
const (
	finalizerOperator  = "gardener.cloud/operator"
	finalizerReference = "gardener.cloud/reference-protection"
)

// guard keeps a Garden, and what it refers to, from going before it was taken down. There is one Garden: another one is refused.
func (r *run) guard(ctx context.Context) error {
	o := r.owner
	if o.Input.Owner.Kind != Garden {
		return nil
	}
	if err := r.onlyGarden(ctx); err != nil {
		return err
	}
	if err := changeFinalizers(ctx, o.Home, o.Ref, withFinalizers(finalizerOperator, finalizerReference)); err != nil {
		return err
	}
	if err := r.readExtensions(ctx, o); err != nil {
		return err
	}
	if err := r.guardExtensions(ctx); err != nil {
		return err
	}
	return r.protect(ctx, append(across.References("Garden", o.Input.Objects[Garden]), o.extensionReferences()...), false)
}

// unguard lets go what the Garden does not refer to any more, once nothing of it uses that.
func (r *run) unguard(ctx context.Context) error {
	if r.owner.Input.Owner.Kind != Garden {
		return nil
	}
	if err := r.releaseExtensions(ctx); err != nil {
		return err
	}
	return r.protect(ctx, append(across.References("Garden", r.owner.Input.Objects[Garden]), r.owner.extensionReferences()...), true)
}

// onlyGarden is an error for a Garden beside another one that was there before.
func (r *run) onlyGarden(ctx context.Context) error {
	o := r.owner
	mapping, err := o.Home.Mapping(ctx, o.Ref.GVK())
	if err != nil {
		return o.Home.Explain(o.Ref, "list the Gardens beside", err)
	}
	client, err := metadata.NewForConfig(o.Home.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", o.Home.Name(), err)
	}
	list, err := client.Resource(mapping.Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o.Home.Explain(o.Ref, "list the Gardens beside", err)
	}
	own := slices.IndexFunc(list.Items, func(g metav1.PartialObjectMetadata) bool { return g.Name == o.Ref.Name })
	if own < 0 {
		return nil // what follows says so
	}
	for i := range list.Items {
		if other := &list.Items[i]; i != own && goesBefore(other, &list.Items[own]) {
			return fmt.Errorf("there is the Garden %q already, and only one is possible: nothing is made for this one until that is gone", other.Name)
		}
	}
	return nil
}

// goesBefore says which of two Gardens counts: one that something was made for, else the older one.
func goesBefore(a, b *metav1.PartialObjectMetadata) bool {
	made := func(g *metav1.PartialObjectMetadata) bool { return slices.Contains(g.Finalizers, finalizerOperator) }
	switch {
	case made(a) != made(b):
		return made(a)
	case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// protect gives the finalizer to what is referred to; release takes it from all else in the namespace.
func (r *run) protect(ctx context.Context, referred []across.Reference, release bool) error {
	o := r.owner
	client, err := metadata.NewForConfig(o.Home.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", o.Home.Name(), err)
	}
	var problems []error
	for kind, plural := range map[string]string{"Secret": "secrets", "ConfigMap": "configmaps"} {
		of := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: plural}).Namespace(o.Input.Owner.ControlPlaneNamespace)
		list, err := of.List(ctx, metav1.ListOptions{})
		if err != nil {
			return o.Home.Explain(apply.Ref{APIVersion: "v1", Kind: kind, Namespace: o.Input.Owner.ControlPlaneNamespace}, "list", err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			ref := apply.Ref{APIVersion: "v1", Kind: kind, Namespace: item.Namespace, Name: item.Name}
			wanted := slices.ContainsFunc(referred, func(r across.Reference) bool { return r.Kind == kind && r.Name == item.Name })
			has := slices.Contains(item.Finalizers, finalizerReference)
			switch {
			case wanted && !has && item.DeletionTimestamp == nil:
				err = patchFinalizers(ctx, o.Home, of, ref, item, withFinalizers(finalizerReference))
			case !wanted && has && release:
				err = patchFinalizers(ctx, o.Home, of, ref, item, withoutFinalizers(finalizerReference))
			}
			problems = append(problems, err)
			err = nil
		}
	}
	return errors.Join(problems...)
}

func withFinalizers(wanted ...string) func([]string) []string {
	return func(have []string) []string {
		out := slices.Clone(have)
		for _, f := range wanted {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
		return out
	}
}

func withoutFinalizers(gone ...string) func([]string) []string {
	return func(have []string) []string {
		return slices.DeleteFunc(slices.Clone(have), func(f string) bool { return slices.Contains(gone, f) })
	}
}

// changeFinalizers changes those of an object.
func changeFinalizers(ctx context.Context, c *apply.Cluster, ref apply.Ref, change func([]string) []string) error {
	mapping, err := c.Mapping(ctx, ref.GVK())
	if err != nil {
		return c.Explain(ref, "write the finalizers of", err)
	}
	client, err := metadata.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	of := metadata.ResourceInterface(client.Resource(mapping.Resource).Namespace(ref.Namespace))
	item, err := of.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return c.Explain(ref, "read", err)
	}
	return patchFinalizers(ctx, c, of, ref, item, change)
}

// finalizerAttempts is how often it is looked again when somebody else writes at the same time.
const finalizerAttempts = 5

// patchFinalizers writes the finalizers as a whole, so it insists on the version that was read.
func patchFinalizers(ctx context.Context, c *apply.Cluster, of metadata.ResourceInterface, ref apply.Ref, item *metav1.PartialObjectMetadata, change func([]string) []string) error {
	for attempt := 1; ; attempt++ {
		wanted := change(item.Finalizers)
		if slices.Equal(wanted, item.Finalizers) {
			return nil
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": wanted, "resourceVersion": item.ResourceVersion, "uid": item.UID}})
		if err != nil {
			return err
		}
		_, err = of.Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: kinds[Garden].role})
		if apierrors.IsConflict(err) && attempt < finalizerAttempts {
			next, rerr := of.Get(ctx, ref.Name, metav1.GetOptions{})
			if rerr == nil {
				item = next // changed meanwhile, or another one of the same name, which is as much referred to
				continue
			}
			err = rerr
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return c.Explain(ref, "write the finalizers of", err)
	}
}

// bare is an object that says nothing but who it is.
func bare(ref apply.Ref) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(ref.APIVersion)
	o.SetKind(ref.Kind)
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	return o
}

// IsGuarded tells whether a Garden waits for its components to be taken down.
func IsGuarded(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetFinalizers(), func(f string) bool { return f == finalizerOperator || f == finalizerReference })
}
