// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// The objects of a Shoot are in the etcd of its control plane. If the namespace of the control
// plane is being deleted, no one can or has to delete these objects. So the Shoot's
// ManagedResources are released, or they would block the namespace forever.

// ReleaseTerminating releases the ManagedResources of Shoots in terminating control plane
// namespaces of a cluster, even if the Shoots are no longer reconciled. It makes no requests if
// there are none.
func (r *Reconciler) ReleaseTerminating(ctx context.Context, local *apply.Cluster) error {
	gvk := resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource")
	all, err := local.List(ctx, gvk, "", labels.Everything())
	if apply.IsUnserved(err) {
		return nil
	}
	if err != nil {
		return local.Explain(apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}, "list", err)
	}
	rm := &managedresource.Reconciler{Engine: r.Engine, Source: local, Clock: r.Clock}
	var ofShoots map[apply.Ref]bool
	var problems []error
	for _, mr := range all {
		ref := apply.RefOf(mr)
		if mr.GetDeletionTimestamp() == nil || len(mr.GetFinalizers()) == 0 {
			continue
		}
		space, err := local.GetLive(ctx, apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: ref.Namespace})
		if err != nil || local.TerminatingError(space) == nil {
			continue // only the ManagedResource is being deleted
		}
		if ofShoots == nil {
			if ofShoots, err = shootManagedResources(ctx, local); err != nil {
				return err
			}
		}
		if !ofShoots[ref] {
			continue
		}
		if _, err := rm.ReleaseObjects(ctx, ref.Namespace, ref.Name); err != nil {
			problems = append(problems, fmt.Errorf("release %s for the deletion of its namespace: %w", ref, err))
		}
	}
	return errors.Join(problems...)
}

// shootManagedResources returns the ManagedResources with objects in Shoots, by the inventories of
// their bundles.
func shootManagedResources(ctx context.Context, local *apply.Cluster) (map[apply.Ref]bool, error) {
	inventories, err := local.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, InventoryNamespace,
		labels.SelectorFromSet(labels.Set{LabelCluster: render.ClusterShoot}))
	if err != nil {
		return nil, fmt.Errorf("read the inventories of Shoots on %s: %w", local.Name(), err)
	}
	out := map[apply.Ref]bool{}
	for _, inventory := range inventories {
		entries, err := apply.NewConfigMapInventory(local, InventoryNamespace, inventory.GetName(), nil).Load(ctx)
		if err != nil {
			return nil, fmt.Errorf("inventory %s: %w", inventory.GetName(), err)
		}
		for _, e := range entries {
			if e.Kind == "ManagedResource" {
				out[e.Ref] = true
			}
		}
	}
	return out, nil
}
