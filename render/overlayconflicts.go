// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// This file has references to objects that act on the same pods as the given one.

// requireOnlySelector requires that a workload is the only one with its selector: two would count
// each other's pods.
func (w *referenceWalk) requireOnlySelector(o Object) {
	selector := labelsIn(valueIn(o.Object, "spec", "selector", "matchLabels"))
	if len(selector) == 0 || len(podTemplates(o.Unstructured)) == 0 {
		return
	}
	rivals := func(among []Object) []Object {
		return slices.DeleteFunc(slices.Clone(among), func(other Object) bool {
			return len(podTemplates(other.Unstructured)) == 0 || other.GetName() == o.GetName() && other.GetKind() == o.GetKind() || other.GetKind() == "Job" || other.GetKind() == "CronJob" ||
				!isSameNamespace(other.GetNamespace(), w.namespace) || fmt.Sprint(labelsIn(valueIn(other.Object, "spec", "selector", "matchLabels"))) != fmt.Sprint(selector)
		})
	}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"spec", "selector"}, isExclusive: true, id: fmt.Sprintf("%s %s alone for %v", o.GetKind(), o.GetName(), selector),
		isMet: func(among []Object) bool { return len(rivals(among)) == 0 },
		missingMessage: func(among []Object) string {
			rival := rivals(among)[0]
			return fmt.Sprintf("%s %s has the same selector, so Services and budgets of one select the pods of both: give this one its own labels", rival.GetKind(), rival.GetName())
		},
	})
}

// requireMinReplicas requires enough replicas for a VerticalPodAutoscaler: it does not evict below
// minReplicas.
func (w *referenceWalk) requireMinReplicas(object map[string]any) {
	kind, name := textAt(object, "spec", "targetRef", "kind"), textAt(object, "spec", "targetRef", "name")
	least, ok := valueIn(object, "spec", "updatePolicy", "minReplicas").(int64)
	if !ok {
		return
	}
	replicas := func(among []Object) (all []int64) {
		for _, o := range objectsNamed(among, kind, name, w.namespace) {
			if n, is := valueIn(o.Object, "spec", "replicas").(int64); is {
				all = append(all, n)
			}
		}
		return all
	}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"spec", "updatePolicy", "minReplicas"}, id: fmt.Sprintf("%d replicas of %s %s", least, kind, name),
		isMet: func(among []Object) bool {
			return !slices.ContainsFunc(replicas(among), func(n int64) bool { return n > 0 && n < least })
		},
		missingMessage: func(among []Object) string {
			return fmt.Sprintf("%s %s has %d replicas, so the autoscaler evicts none of them and its recommendation has no effect", kind, name, slices.Min(replicas(among)))
		},
	})
}

// requirePolicyBinding requires a binding of an admission policy; without it the policy has no
// effect.
func (w *referenceWalk) requirePolicyBinding(o Object) {
	binding := o.GetKind() + "Binding"
	bindings := func(among []Object) []Object {
		return slices.DeleteFunc(slices.Clone(among), func(b Object) bool {
			return b.GetKind() != binding || textAt(b.Object, "spec", "policyName") != o.GetName()
		})
	}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"metadata", "name"}, id: binding + " of " + o.GetName(),
		isMet:          func(among []Object) bool { return len(bindings(among)) > 0 },
		missingMessage: func([]Object) string { return fmt.Sprintf("has no effect: no %s names it in spec.policyName", binding) },
	})
}

// requireQuotaAmounts requires that pods of a namespace set the amounts of a ResourceQuota, or API
// servers reject them.
func (w *referenceWalk) requireQuotaAmounts(object map[string]any) {
	hard, _ := valueIn(object, "spec", "hard").(map[string]any)
	for _, amount := range sortedKeys(hard) {
		kind, resource, _ := strings.Cut(amount, ".")
		if (kind != "limits" && kind != "requests") || (resource != "cpu" && resource != "memory") {
			continue
		}
		lacking := func(among []Object) (names []string) {
			for _, o := range among {
				for _, template := range podTemplates(o.Unstructured) {
					for _, container := range mapsIn(valueIn(template, "spec", "containers")) {
						if isSameNamespace(o.GetNamespace(), w.namespace) && valueIn(container, "resources", kind, resource) == nil && (kind == "limits" || valueIn(container, "resources", "limits", resource) == nil) {
							names = append(names, o.GetKind()+" "+o.GetName())
						}
					}
				}
			}
			slices.Sort(names)
			return slices.Compact(names)
		}
		w.found = append(w.found, objectReference{
			path: fieldpath.Path{"spec", "hard", fieldpath.Key(amount)}, isExclusive: true, id: fmt.Sprintf("%s of all pods in %s for a quota", amount, w.namespace),
			isMet: func(among []Object) bool { return len(lacking(among)) == 0 },
			missingMessage: func(among []Object) string {
				return fmt.Sprintf("API servers then reject pods without %s, and these have none: %s", amount, strings.Join(firstNames(lacking(among)), ", "))
			},
		})
	}
}
