package managedresource

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// role writes status and finalizers, on behalf of upstream's component of that name.
const role = "gardener-resource-manager"

// statusInventory keeps the inventory where upstream has it: status.resources.
type statusInventory struct {
	cluster *apply.Cluster
	mr      *resourcesv1alpha1.ManagedResource
}

func newStatusInventory(c *apply.Cluster, mr *resourcesv1alpha1.ManagedResource) apply.Inventory {
	return &statusInventory{cluster: c, mr: mr}
}

func (i *statusInventory) Load(context.Context) ([]apply.Entry, error) {
	entries := make([]apply.Entry, 0, len(i.mr.Status.Resources))
	for _, res := range i.mr.Status.Resources {
		entries = append(entries, apply.Entry{
			Ref:    apply.Ref{APIVersion: res.APIVersion, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name},
			Labels: res.Labels, Annotations: res.Annotations,
			Applied: res.AppliedDigest, Live: res.LiveDigest, CreateOnly: res.CreateOnly,
		})
	}
	return entries, nil
}

func (i *statusInventory) Save(ctx context.Context, entries []apply.Entry) error {
	resources := make([]resourcesv1alpha1.ObjectReference, 0, len(entries))
	for _, e := range entries {
		resources = append(resources, resourcesv1alpha1.ObjectReference{
			ObjectReference: corev1.ObjectReference{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name},
			Labels:          e.Labels, Annotations: e.Annotations,
			AppliedDigest: e.Applied, LiveDigest: e.Live, CreateOnly: e.CreateOnly,
		})
	}
	if reflect.DeepEqual(resources, i.mr.Status.Resources) {
		return nil
	}
	if err := patchStatus(ctx, i.cluster, i.mr, map[string]any{"resources": resources}); err != nil {
		return err
	}
	i.mr.Status.Resources = resources
	return nil
}

// Remove does nothing: the inventory goes with the ManagedResource.
func (i *statusInventory) Remove(context.Context) error { return nil }

func patchStatus(ctx context.Context, c *apply.Cluster, mr *resourcesv1alpha1.ManagedResource, status map[string]any) error {
	_, err := c.MergePatch(ctx, ref(mr.Namespace, mr.Name), map[string]any{"status": status}, role, "status")
	if err != nil {
		return c.Explain(ref(mr.Namespace, mr.Name), "write the status", err)
	}
	return nil
}

// Inventory of a ManagedResource, as it is in its status.
func (r *Reconciler) Inventory(mr *resourcesv1alpha1.ManagedResource) apply.Inventory {
	return newStatusInventory(r.Source, mr)
}
