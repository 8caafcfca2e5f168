// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/render"
)

// The care of a Garden judges every ManagedResource in its namespaces, as in upstream. That
// includes those outside bundles, of extensions and of removed components that still terminate.

const (
	conditionRuntimeHealthy       = "RuntimeComponentsHealthy"
	conditionVirtualHealthy       = "VirtualComponentsHealthy"
	conditionObservabilityHealthy = "ObservabilityComponentsHealthy"

	// conditionTypeLabel on a ManagedResource has the condition that it counts for.
	conditionTypeLabel = "care.gardener.cloud/condition-type"
)

// conditionsOf returns the conditions that a bundle counts for. A ManagedResource in the virtual
// garden always counts for VirtualComponentsHealthy, too.
func conditionsOf(b render.Bundle) []string {
	switch {
	case b.Condition == "":
		return nil
	case b.Cluster == render.ClusterVirtual && !b.Delivery.Direct && b.Condition != conditionVirtualHealthy:
		return []string{b.Condition, conditionVirtualHealthy}
	}
	return []string{b.Condition}
}

// conditionsOfResource returns the conditions that a ManagedResource counts for by its class and
// label.
func conditionsOfResource(mr *unstructured.Unstructured) []string {
	class, _, _ := unstructured.NestedString(mr.Object, "spec", "class")
	label := mr.GetLabels()[conditionTypeLabel]
	var out []string
	if class != "" && (label == "" || label == conditionRuntimeHealthy) {
		out = append(out, conditionRuntimeHealthy)
	}
	if class == "" || label == conditionVirtualHealthy {
		out = append(out, conditionVirtualHealthy)
	}
	if label == conditionObservabilityHealthy {
		out = append(out, conditionObservabilityHealthy)
	}
	return out
}

// unhealthyForeignResources returns, by condition, the first unhealthy ManagedResource in the
// owner's namespaces that belongs to no bundle. Without known bundles it returns none.
func (r *Reconciler) unhealthyForeignResources(ctx context.Context, o *ownerSession, bundles []render.Bundle) (map[string]*health.Verdict, error) {
	namespaces := settingsByKind[o.Input.Owner.Kind].careNamespaces
	if len(bundles) == 0 {
		return nil, nil
	}
	ours := map[apply.Ref]bool{}
	for _, b := range bundles {
		if !b.Delivery.Direct {
			ours[bundleManagedResourceRef(b)] = true
		}
	}
	out := map[string]*health.Verdict{}
	for _, namespace := range namespaces {
		found, err := managedResourcesIn(ctx, o.Local, namespace)
		if err != nil {
			return nil, err
		}
		for _, mr := range found {
			if ours[managedResourceRef(namespace, mr.GetName())] {
				continue
			}
			f := health.CareManagedResource(mr, r.ConditionSettings.ProgressingThreshold, r.Clock.Now())
			if f == nil {
				continue
			}
			v := withLocation(o.Local, &health.Verdict{Kind: mr.GetKind(), Namespace: namespace, Name: mr.GetName(), Reason: f.Reason, Message: f.Message, Codes: f.Codes})
			for _, name := range conditionsOfResource(mr) {
				out[name] = cmp.Or(out[name], v)
			}
		}
	}
	return out, nil
}

func managedResourceRef(namespace, name string) apply.Ref {
	return apply.Ref{APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedResource", Namespace: namespace, Name: name}
}

// managedResourcesIn lists the ManagedResources of a namespace by name.
func managedResourcesIn(ctx context.Context, c *apply.Cluster, namespace string) ([]*unstructured.Unstructured, error) {
	return listInNamespace(ctx, c, resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"), namespace, nil, "spec,status.conditions,status.observedGeneration")
}

// listInNamespace lists all objects of a kind in a namespace by name. Our objects come from the
// live cache; of foreign objects, a watch follows some fields. The list is empty if the kind is not
// served.
func listInNamespace(ctx context.Context, c *apply.Cluster, gvk schema.GroupVersionKind, namespace string, labelled labels.Set, keep string) ([]*unstructured.Unstructured, error) {
	all, err := c.List(ctx, gvk, namespace, labels.SelectorFromSet(labelled))
	if apply.IsUnserved(err) {
		return nil, nil
	}
	ref := apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace}
	if err != nil {
		return nil, c.Explain(ref, "list", err)
	}
	mapping, err := c.Mapping(ctx, gvk)
	if err != nil {
		return nil, c.Explain(ref, "list", err)
	}
	keys := conventions.ManagedResourceKeys()
	others := keys.ManagedByLabel + "!=" + keys.ManagedByValue
	if len(labelled) > 0 {
		others += "," + labelled.String()
	}
	foreign, err := c.Follow(ctx, apply.FollowedList{Resource: mapping.Resource, Namespace: namespace, Selector: others, Fields: keep})
	if err != nil {
		return nil, c.Explain(ref, "list", err)
	}
	all = append(all, foreign...)
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, nil
}
