// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// isHibernated reports whether a Shoot is declared as hibernated, and so has no nodes. With a
// schedule it returns false: the Shoot may be awake when the change is applied.
func isHibernated(shoot *unstructured.Unstructured) bool {
	if shoot == nil || shoot.GetKind() != "Shoot" {
		return false
	}
	return nestedValue(shoot.Object, "spec", "hibernation", "enabled") == true && len(objectsAt(shoot, "spec", "hibernation", "schedules")) == 0
}

// controlPlane identifies the cluster and namespace of a Shoot's control plane.
type controlPlane struct{ cluster, namespace string }

// hibernatedControlPlanes returns the control planes of Shoots that are hibernated before or after,
// by their Cluster objects.
func hibernatedControlPlanes(renderings ...[]ClusterBundle) map[controlPlane]bool {
	out := map[controlPlane]bool{}
	for _, p := range slices.Concat(renderings...) {
		for _, o := range p.Bundle.Objects {
			if o.GetKind() != "Cluster" || !strings.HasSuffix(o.GroupVersionKind().Group, "gardener.cloud") {
				continue
			}
			if shoot, ok := nestedValue(o.Object, "spec", "shoot").(map[string]any); ok && isHibernated(&unstructured.Unstructured{Object: shoot}) {
				out[controlPlane{p.Cluster, o.GetName()}] = true
			}
		}
	}
	return out
}

// dropHibernatedEffects removes effects that a hibernated control plane cannot have. It has no
// nodes, and no pods to restart if no replicas are declared before and after.
func dropHibernatedEffects(i *change.Item, asleep map[controlPlane]bool, old, new *unstructured.Unstructured) {
	if !asleep[controlPlane{i.Cluster, i.Object.Namespace}] {
		return
	}
	for _, c := range i.Pools {
		i.Consequences = slices.DeleteFunc(i.Consequences, func(what string) bool { return what == poolText(c) })
	}
	i.Pools = nil
	if isNumber(replicasOf(old), 0) && isNumber(replicasOf(new), 0) && i.Action != change.Recreate {
		i.Consequences = slices.DeleteFunc(i.Consequences, func(what string) bool { return podEffectOf(what) != "" })
	}
}

func replicasOf(o *unstructured.Unstructured) any {
	return nestedValue(contentOf(o), "spec", "replicas")
}
