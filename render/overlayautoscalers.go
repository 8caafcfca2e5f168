// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// allContainers in a policy of a VerticalPodAutoscaler means all containers without their own
// policy.
const allContainers = "*"

// requirePolicyContainers requires the containers that policies of a VerticalPodAutoscaler name, if
// its target is rendered.
func (w *referenceWalk) requirePolicyContainers(object map[string]any) {
	kind, name := textAt(object, "spec", "targetRef", "kind"), textAt(object, "spec", "targetRef", "name")
	if !slices.Contains([]string{"DaemonSet", "Deployment", "StatefulSet"}, kind) {
		return
	}
	containers := func(among []Object) (all []string) {
		for _, o := range objectsNamed(among, kind, name, w.namespace) {
			for _, list := range []string{"containers", "initContainers"} {
				items, _ := valueIn(o.Object, "spec", "template", "spec", list).([]any)
				for _, item := range items {
					container, _ := item.(map[string]any)
					all = append(all, textAt(container, "name"))
				}
			}
		}
		return all
	}
	path := fieldpath.Path{"spec", "resourcePolicy", "containerPolicies"}
	policies, _ := valueIn(object, textPath(path)...).([]any)
	for i, item := range policies {
		policy, _ := item.(map[string]any)
		container := textAt(policy, "containerName")
		if container == "" || container == allContainers {
			continue
		}
		w.found = append(w.found, objectReference{
			path: path.Append(i).Append("containerName"), id: fmt.Sprintf("container %s of %s %s", container, kind, name),
			isMet: func(among []Object) bool {
				all := containers(among)
				return len(all) == 0 || slices.Contains(all, container)
			},
			missingMessage: func(among []Object) string {
				return fmt.Sprintf("%s %q has no container %q%s", kind, name, container, alternativesHint(container, containers(among), "it has "))
			},
		})
	}
}

// requireScalerMetrics requires the containers that a HorizontalPodAutoscaler names, and requests
// for metrics of utilization, which is a share of the request.
func (w *referenceWalk) requireScalerMetrics(object map[string]any) {
	kind, name := textAt(object, "spec", "scaleTargetRef", "kind"), textAt(object, "spec", "scaleTargetRef", "name")
	containers := func(among []Object) (all []map[string]any) {
		for _, o := range objectsNamed(among, kind, name, w.namespace) {
			all = append(all, mapsIn(valueIn(o.Object, "spec", "template", "spec", "containers"))...)
		}
		return all
	}
	for i, metric := range mapsIn(valueIn(object, "spec", "metrics")) {
		for _, way := range []string{"resource", "containerResource"} {
			of, _ := metric[way].(map[string]any)
			resource, container := textAt(of, "name"), textAt(of, "container")
			path := fieldpath.Path{"spec", "metrics", i, way}
			measured := func(among []Object) []map[string]any {
				return slices.DeleteFunc(containers(among), func(c map[string]any) bool { return container != "" && textAt(c, "name") != container })
			}
			if container != "" {
				w.found = append(w.found, objectReference{
					path: path.Append("container"), id: fmt.Sprintf("container %s of %s %s", container, kind, name),
					isMet: func(among []Object) bool { return len(containers(among)) == 0 || len(measured(among)) > 0 },
					missingMessage: func(among []Object) string {
						var names []string
						for _, c := range containers(among) {
							names = append(names, textAt(c, "name"))
						}
						return fmt.Sprintf("%s %q has no container %q%s", kind, name, container, alternativesHint(container, names, "it has "))
					},
				})
			}
			if textAt(of, "target", "type") != "Utilization" {
				continue
			}
			lacking := func(among []Object) (names []string) {
				for _, c := range measured(among) {
					if valueIn(c, "resources", "requests", resource) == nil {
						names = append(names, textAt(c, "name"))
					}
				}
				return names
			}
			w.found = append(w.found, objectReference{
				path: path.Append("target").Append("type"), id: fmt.Sprintf("requests of %s of a %s", resource, kind),
				isMet: func(among []Object) bool { return len(lacking(among)) == 0 },
				missingMessage: func(among []Object) string {
					return fmt.Sprintf("a utilization is a share of the request, and containers of %s %q have no request of %s: %s", kind, name, resource, strings.Join(lacking(among), ", "))
				},
			})
		}
	}
}

// requireSingleScaler requires that no VerticalPodAutoscaler sets requests that a
// HorizontalPodAutoscaler uses: each would react to the other. Both may act if the metric is an
// average value, which does not depend on requests.
func (w *referenceWalk) requireSingleScaler(o Object) {
	both := func(other Object) (resource string) {
		horizontal, vertical := o, other
		if o.GetKind() == "VerticalPodAutoscaler" {
			horizontal, vertical = other, o
		}
		of, by := valueIn(horizontal.Object, "spec", "scaleTargetRef"), valueIn(vertical.Object, "spec", "targetRef")
		if horizontal.GetKind() != "HorizontalPodAutoscaler" || vertical.GetKind() != "VerticalPodAutoscaler" || !isSameNamespace(other.GetNamespace(), w.namespace) ||
			targetText(of) != targetText(by) {
			return ""
		}
		for _, metric := range mapsIn(valueIn(horizontal.Object, "spec", "metrics")) {
			for _, way := range []string{"resource", "containerResource"} {
				of, _ := metric[way].(map[string]any)
				if textAt(of, "target", "type") == "Utilization" && isRequestAutoscaled(vertical.Object, textAt(of, "container"), textAt(of, "name")) {
					return textAt(of, "name")
				}
			}
		}
		return ""
	}
	rival := func(among []Object) int {
		return slices.IndexFunc(among, func(other Object) bool { return both(other) != "" })
	}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"spec"}, isExclusive: true, id: fmt.Sprintf("requests of %s %s to themselves", o.GetKind(), o.GetName()),
		isMet: func(among []Object) bool { return rival(among) < 0 },
		missingMessage: func(among []Object) string {
			other, ref := among[rival(among)], valueIn(o.Object, "spec", "targetRef")
			if ref == nil {
				ref = valueIn(o.Object, "spec", "scaleTargetRef")
			}
			return fmt.Sprintf("two autoscalers of %s scale it by %s (the other one is %s %s) and counteract each other; measure AverageValue, or remove %s from controlledResources",
				targetText(ref), both(other), other.GetKind(), other.GetName(), both(other))
		},
	})
}

// targetText is the kind and name of an autoscaler's target.
func targetText(ref any) string {
	of, _ := ref.(map[string]any)
	return textAt(of, "kind") + " " + textAt(of, "name")
}

// isRequestAutoscaled reports whether a VerticalPodAutoscaler sets the request of a container;
// empty means any. If policies name containers, it assumes that they cover all.
func isRequestAutoscaled(object map[string]any, container, resource string) bool {
	if textAt(object, "spec", "updatePolicy", "updateMode") == "Off" {
		return false
	}
	policies := mapsIn(valueIn(object, "spec", "resourcePolicy", "containerPolicies"))
	sets := func(policy map[string]any) bool {
		controlled, limited := policy["controlledResources"].([]any)
		return textAt(policy, "mode") != "Off" && (!limited || slices.Contains(controlled, any(resource)))
	}
	all, other := container != "" || len(policies) == 0, false
	for _, policy := range policies {
		switch name := textAt(policy, "containerName"); {
		case name == container && container != "":
			return sets(policy)
		case name == allContainers:
			all = sets(policy)
		case container == "":
			other = other || sets(policy)
		}
	}
	return all || other
}

// requireOnlyAutoscaler requires that an autoscaler is the only one of its kind for its target: two
// would counteract each other.
func (w *referenceWalk) requireOnlyAutoscaler(o Object, field string) {
	target := func(o Object) string { return targetText(valueIn(o.Object, "spec", field)) }
	rivals := func(among []Object) []Object {
		return slices.DeleteFunc(slices.Clone(among), func(other Object) bool {
			return other.GetKind() != o.GetKind() || other.GetName() == o.GetName() || !isSameNamespace(other.GetNamespace(), w.namespace) || target(other) != target(o)
		})
	}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"spec", field, "name"}, isExclusive: true, id: fmt.Sprintf("%s %s alone for %s", o.GetKind(), o.GetName(), target(o)),
		isMet: func(among []Object) bool { return len(rivals(among)) == 0 },
		missingMessage: func(among []Object) string {
			return fmt.Sprintf("%s %s also scales %s, and both counteract each other: remove one of them", o.GetKind(), rivals(among)[0].GetName(), target(o))
		},
	})
}
