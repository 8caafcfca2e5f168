// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindPhases is the order of installation by kind name: upstream's order (resource-manager sorts as
// Helm does, pkg/resourcemanager/controller/managedresource), cut into phases. The objects of a
// phase do not need each other and are applied concurrently. CustomResourceDefinitions come first,
// because later phases wait for them. Unlisted kinds come last; deletion goes backwards.
var kindPhases = [][]string{
	{"PriorityClass", "Namespace", "CustomResourceDefinition"},
	{"NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget", "ServiceAccount"},
	{"Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim", "ClusterRole", "Role"},
	{"ClusterRoleBinding", "RoleBinding", "Service"},
	{"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
		"StatefulSet", "Job", "CronJob", "IngressClass", "Ingress"},
	{"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
}

// isNativeGroup reports whether kindPhases means the kinds of a group: a Service of Knative is not
// the core Service.
func isNativeGroup(group string) bool {
	return group == "" || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// phaseAndRank returns the position of a kind: its phase and its rank over all kinds.
func phaseAndRank(gk schema.GroupKind) (phase, rank int) {
	for p, kinds := range kindPhases {
		if i := slices.Index(kinds, gk.Kind); i >= 0 && isNativeGroup(gk.Group) {
			return p, rank + i
		}
		rank += len(kinds)
	}
	return len(kindPhases), rank
}

// compareRefs orders by installation order, then kind, API version, namespace and name.
func compareRefs(a, b Ref) int {
	_, ra := phaseAndRank(a.GroupKind())
	_, rb := phaseAndRank(b.GroupKind())
	return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// splitIntoPhases splits items into the phases of their kinds, in order, without empty phases.
func splitIntoPhases[T any](items []T, ref func(T) Ref) [][]T {
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b T) int { return compareRefs(ref(a), ref(b)) })
	var out [][]T
	last := -1
	for _, item := range sorted {
		phase, _ := phaseAndRank(ref(item).GroupKind())
		if phase != last {
			out, last = append(out, nil), phase
		}
		out[len(out)-1] = append(out[len(out)-1], item)
	}
	return out
}
