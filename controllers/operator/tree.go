// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/render"
)

// TreeOwner is an owner of objects in a cluster: a landscape, a Garden, a Seed or a Shoot, with its
// bundles.
type TreeOwner struct {
	// Owner has the form of its label: landscape.local, garden.local, shoot.garden-local.local.
	Owner string `json:"owner"`
	// StaleRole says since when its gardenlet or operator does not renew its lease; it is nil if it
	// does, or if that is unknown.
	StaleRole *landscape.StaleRole `json:"silent,omitempty"`
	Bundles   []TreeBundle         `json:"bundles"`
}

// TreeBundle is a bundle with its objects.
type TreeBundle struct {
	Name      string       `json:"name"`
	Component string       `json:"component,omitempty"`
	Cluster   string       `json:"cluster"`
	Objects   []TreeObject `json:"objects"`
	// Error says why the objects are not known.
	Error string `json:"error,omitempty"`
}

// TreeObject is an object of an inventory.
type TreeObject struct {
	Object string `json:"object"`
	// Source is the file and line of its declaration, if known.
	Source string `json:"source,omitempty"`
	// IsTerminating objects are being deleted.
	IsTerminating bool `json:"leaving,omitempty"`
	// Objects are the objects of a ManagedResource.
	Objects []TreeObject `json:"objects,omitempty"`
	// OwnedBy names the owner that has the object: the inventory lists it, but its owner never
	// applied it, because the other one declares it, too.
	OwnedBy string `json:"ownedBy,omitempty"`
	// OtherOwners are other owners that list and applied the object. It moved between them; only
	// the object itself tells the current one.
	OtherOwners    []string `json:"alsoOf,omitempty"`
	inventoryEntry apply.Entry
}

// Tree reads the inventories of a cluster. It reads only ConfigMaps, ManagedResources and the two
// Leases of their writers.
func Tree(ctx context.Context, config *rest.Config, now time.Time) ([]TreeOwner, error) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client for inventories: %w", err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	if err := c.List(ctx, list, client.InNamespace(owner.InventoryNamespace), client.HasLabels{owner.LabelInventory}); err != nil {
		return nil, fmt.Errorf("reading the inventories: %w", err)
	}
	owners := map[string]*TreeOwner{}
	for i := range list.Items {
		cm := &list.Items[i]
		labels := cm.GetLabels()
		name := labels[owner.LabelInventory]
		if owners[name] == nil {
			owners[name] = &TreeOwner{Owner: name}
		}
		owners[name].Bundles = append(owners[name].Bundles, treeBundle(ctx, c, cm))
	}
	var out []TreeOwner
	for _, o := range owners {
		slices.SortFunc(o.Bundles, func(a, b TreeBundle) int {
			return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
		})
		out = append(out, *o)
	}
	setSeedNames(out)
	markShared(out)
	markStale(ctx, c, out, now)
	slices.SortFunc(out, func(a, b TreeOwner) int { return strings.Compare(a.Owner, b.Owner) })
	return out, nil
}

// setSeedNames replaces the cluster name seed by the name of the Seed. A cluster with the
// inventories of a Seed is that seed.
func setSeedNames(owners []TreeOwner) {
	name := ""
	for _, o := range owners {
		if seed, is := strings.CutPrefix(o.Owner, owner.Seed+"."); is {
			name = seed
		}
	}
	if name == "" {
		return
	}
	for _, o := range owners {
		for i := range o.Bundles {
			if o.Bundles[i].Cluster == render.ClusterSeed {
				o.Bundles[i].Cluster = name
			}
		}
	}
}

// markStale sets Silence. An unreadable Lease is ignored.
func markStale(ctx context.Context, c client.Reader, owners []TreeOwner, now time.Time) {
	leases := func(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
		lease := &coordinationv1.Lease{}
		return lease, c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, lease)
	}
	operator, operatorErr := landscape.StaleOperator(ctx, leases, now)
	gardenlet, gardenletErr := landscape.StaleGardenlet(ctx, leases, now)
	for i, o := range owners {
		kind, _, _ := strings.Cut(o.Owner, ".")
		switch {
		case kind != owner.Seed && kind != owner.Shoot && operatorErr == nil:
			owners[i].StaleRole = operator
		case (kind == owner.Seed || kind == owner.Shoot) && gardenletErr == nil:
			owners[i].StaleRole = gardenlet
		}
	}
}

func treeBundle(ctx context.Context, c client.Reader, cm *unstructured.Unstructured) TreeBundle {
	labels := cm.GetLabels()
	b := TreeBundle{Name: labels[owner.LabelBundle], Cluster: labels[owner.LabelCluster], Component: strings.ReplaceAll(labels[owner.LabelComponent], ".", "/")}
	entries, err := apply.EntriesOf(cm)
	if err != nil {
		b.Error = err.Error()
		return b
	}
	for _, e := range entries {
		o := TreeObject{Object: e.Ref.String(), Source: e.Source, IsTerminating: e.Deleting, inventoryEntry: e}
		if e.Kind == "ManagedResource" {
			o.Objects, b.Error = managedResourceObjects(ctx, c, e.Ref)
		}
		b.Objects = append(b.Objects, o)
	}
	return b
}

// managedResourceObjects returns the objects that a ManagedResource applied.
func managedResourceObjects(ctx context.Context, c client.Reader, ref apply.Ref) ([]TreeObject, string) {
	mr := &unstructured.Unstructured{}
	mr.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	if err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, mr); err != nil {
		return nil, fmt.Sprintf("reading %s: %v", ref, err)
	}
	var out []TreeObject
	// A malformed list has no objects.
	resources, _, _ := unstructured.NestedSlice(mr.Object, "status", "resources")
	for _, r := range resources {
		fields, _ := r.(map[string]any)
		text := func(key string) string { s, _ := fields[key].(string); return s }
		out = append(out, TreeObject{Object: apply.Ref{APIVersion: text("apiVersion"), Kind: text("kind"), Namespace: text("namespace"), Name: text("name")}.String()})
	}
	return out, ""
}
