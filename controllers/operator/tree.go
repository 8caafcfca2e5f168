package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// TreeOwner is who has objects in a cluster: a landscape, a Garden, a Seed or a Shoot, with its bundles.
type TreeOwner struct {
	// Owner as its label says: landscape.local, garden.local, shoot.garden-local.local.
	Owner   string       `json:"owner"`
	Bundles []TreeBundle `json:"bundles"`
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
	// Source is the file and line that declares it, where that is known.
	Source string `json:"source,omitempty"`
	// Leaving objects are being deleted.
	Leaving bool `json:"leaving,omitempty"`
	// Objects are those that a ManagedResource carries.
	Objects []TreeObject `json:"objects,omitempty"`
}

// Tree reads the inventories that a cluster holds. Nothing but ConfigMaps and ManagedResources is read.
func Tree(ctx context.Context, config *rest.Config) ([]TreeOwner, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("a client for inventories: %w", err)
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
	slices.SortFunc(out, func(a, b TreeOwner) int { return strings.Compare(a.Owner, b.Owner) })
	return out, nil
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
		o := TreeObject{Object: e.Ref.String(), Source: e.Source, Leaving: e.Leaving}
		if e.Kind == "ManagedResource" {
			o.Objects, b.Error = carried(ctx, c, e.Ref)
		}
		b.Objects = append(b.Objects, o)
	}
	return b
}

// carried are the objects that a ManagedResource has applied.
func carried(ctx context.Context, c client.Reader, ref apply.Ref) ([]TreeObject, string) {
	mr := &unstructured.Unstructured{}
	mr.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	if err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, mr); err != nil {
		return nil, fmt.Sprintf("reading %s: %v", ref, err)
	}
	var out []TreeObject
	resources, _, _ := unstructured.NestedSlice(mr.Object, "status", "resources") // of another form it has none
	for _, r := range resources {
		fields, _ := r.(map[string]any)
		text := func(key string) string { s, _ := fields[key].(string); return s }
		out = append(out, TreeObject{Object: apply.Ref{APIVersion: text("apiVersion"), Kind: text("kind"), Namespace: text("namespace"), Name: text("name")}.String()})
	}
	return out, ""
}
