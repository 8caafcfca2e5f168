// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// requireUnique requires that an object is rendered once: two bundles would overwrite each other.
func (w *referenceWalk) requireUnique(o Object) {
	twins := func(among []Object) []Object {
		byNamespace := map[string][]Object{}
		for _, other := range among {
			if gvk := other.GroupVersionKind(); gvk.GroupKind() == o.GroupVersionKind().GroupKind() && other.GetName() == o.GetName() && isSameNamespace(other.GetNamespace(), w.namespace) {
				byNamespace[other.GetNamespace()] = append(byNamespace[other.GetNamespace()], other)
			}
		}
		for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
			if found := byNamespace[namespace]; len(found) > 1 {
				return found
			}
		}
		return nil
	}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"metadata", "name"}, isExclusive: true, rule: ruleOverlay,
		id:    fmt.Sprintf("%s %s alone", o.GroupVersionKind().GroupKind(), path.Join(w.namespace, o.GetName())),
		isMet: func(among []Object) bool { return len(twins(among)) == 0 },
		missingMessage: func(among []Object) string {
			var places []string
			for _, twin := range twins(among) {
				places = append(places, twin.Origin.String())
			}
			return fmt.Sprintf("is rendered twice for the cluster (%s): patch it in the overlay of the component that has it, or choose another name", strings.Join(places, " and "))
		},
	})
}

// requireOnlyBudget requires that a PodDisruptionBudget is the only one for its pods: API servers
// accept a second one, but then reject every eviction.
func (w *referenceWalk) requireOnlyBudget(o Object) {
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"spec", "selector"}, isExclusive: true,
		id:    fmt.Sprintf("PodDisruptionBudget %s alone for %s", o.GetName(), budgetSelector(o)),
		isMet: func(among []Object) bool { _, _, found := competingBudget(o, among); return !found },
		missingMessage: func(among []Object) string {
			rival, pods, _ := competingBudget(o, among)
			return fmt.Sprintf("PodDisruptionBudget %s also selects pods of %s %s; API servers evict no pod with two budgets, so nodes cannot be drained: remove or change one",
				rival.GetName(), pods.GetKind(), pods.GetName())
		},
	})
}

// requireEvictable requires that a PodDisruptionBudget allows evictions, or no node can be drained.
func (w *referenceWalk) requireEvictable(o Object) {
	least, most := valueIn(o.Object, "spec", "minAvailable"), valueIn(o.Object, "spec", "maxUnavailable")
	field, why := "maxUnavailable", func([]Object) string {
		if text := fmt.Sprint(most); text == "0" || text == "0%" {
			return "no pod may be unavailable"
		}
		return ""
	}
	if least != nil {
		field, why = "minAvailable", func(among []Object) string {
			if fmt.Sprint(least) == "100%" {
				return "all pods must be available"
			}
			count, isCount := least.(int64)
			for _, pods := range among {
				for _, template := range podTemplates(pods.Unstructured) {
					replicas, given := valueIn(pods.Object, "spec", "replicas").(int64)
					if isCount && given && isSameNamespace(pods.GetNamespace(), o.GetNamespace()) && budgetSelector(o).Matches(labels.Set(labelsIn(valueIn(template, "metadata", "labels")))) && replicas > 0 && count >= replicas {
						return fmt.Sprintf("%s %s has %d replicas, and all must be available", pods.GetKind(), pods.GetName(), replicas)
					}
				}
			}
			return ""
		}
	}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"spec", field}, id: "a pod that PodDisruptionBudget " + o.GetName() + " lets go",
		isMet:          func(among []Object) bool { return why(among) == "" },
		missingMessage: func(among []Object) string { return why(among) + ": no pod can be evicted, so nodes cannot be drained" },
	})
}

// competingBudget finds another PodDisruptionBudget for the same pods, and the object that creates
// these pods.
func competingBudget(o Object, among []Object) (rival, pods Object, found bool) {
	own := budgetSelector(o)
	for _, pods := range among {
		if !isSameNamespace(pods.GetNamespace(), o.GetNamespace()) {
			continue
		}
		for _, template := range podTemplates(pods.Unstructured) {
			set := labels.Set(labelsIn(valueIn(template, "metadata", "labels")))
			if !own.Matches(set) {
				continue
			}
			for _, rival := range among {
				if rival.GetKind() == "PodDisruptionBudget" && rival.GetName() != o.GetName() && isSameNamespace(rival.GetNamespace(), o.GetNamespace()) && budgetSelector(rival).Matches(set) {
					return rival, pods, true
				}
			}
		}
	}
	return rival, pods, false
}

// budgetSelector is the selector of a PodDisruptionBudget. Without one it selects nothing.
func budgetSelector(o Object) labels.Selector {
	var selector *metav1.LabelSelector
	if given, ok := valueIn(o.Object, "spec", "selector").(map[string]any); ok {
		selector = &metav1.LabelSelector{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(given, selector) != nil {
			selector = nil
		}
	}
	out, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return out
}
