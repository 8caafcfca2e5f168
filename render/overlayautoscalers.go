package render

import (
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// allContainers is the name in a policy of a VerticalPodAutoscaler that stands for all containers without a policy of their own.
const allContainers = "*"

// policies want the containers that the policies of a VerticalPodAutoscaler are for, where its target is an object with pods that is rendered.
func (w *referenceWalk) policies(object map[string]any) {
	kind, name := textAt(object, "spec", "targetRef", "kind"), textAt(object, "spec", "targetRef", "name")
	if !slices.Contains([]string{"DaemonSet", "Deployment", "StatefulSet"}, kind) {
		return
	}
	containers := func(among []Object) (all []string) {
		for _, o := range withName(among, kind, name, w.namespace) {
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
			path: path.Append(i).Append("containerName"), wanted: fmt.Sprintf("container %s of %s %s", container, kind, name),
			met: func(among []Object) bool {
				all := containers(among)
				return len(all) == 0 || slices.Contains(all, container)
			},
			missing: func(among []Object) string {
				return fmt.Sprintf("%s %q has no container %q%s", kind, name, container, instead(container, containers(among), "it has "))
			},
		})
	}
}
