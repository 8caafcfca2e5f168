package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// immutable lists fields the API server refuses to change, by kind (kubernetes: pkg/apis/*/validation).
var immutable = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}: {"spec.selector"},
	{Group: "apps", Kind: "DaemonSet"}:  {"spec.selector"},
	{Group: "apps", Kind: "ReplicaSet"}: {"spec.selector"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec.selector", "spec.serviceName", "spec.podManagementPolicy",
		"spec.volumeClaimTemplates"},
	{Group: "batch", Kind: "Job"}:                                     {"spec.selector", "spec.template", "spec.completionMode"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               {"value", "preemptionPolicy"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                   {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:         {"roleRef"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  {"roleRef"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                {"spec.controller"},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                      {"handler"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {"spec.group", "spec.scope"},
	{Kind: "Service"}:               {"spec.clusterIP"},
	{Kind: "PersistentVolumeClaim"}: {"spec.storageClassName", "spec.accessModes", "spec.volumeName", "spec.volumeMode", "spec.selector"},
	{Kind: "Secret"}:                {"type"},
}

// content is what a ConfigMap or Secret with immutable: true may not change.
var content = []string{"data", "binaryData", "stringData", "immutable"}

// neverRecreated are kinds whose deletion loses what they stand for.
var neverRecreated = []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "Etcd"}

const annotationRecreate = "resources.gardener.cloud/delete-on-invalid-update"

// changeOrRecreate predicts what the engine does: an update that the API server would refuse is a recreation
// where the object allows it, and fails otherwise.
func changeOrRecreate(old, new *unstructured.Unstructured, fields []Field) (Action, string) {
	frozen, _, _ := unstructured.NestedBool(old.Object, "immutable")
	frozen = frozen && slices.Contains([]string{"ConfigMap", "Secret"}, old.GetKind())
	hit := ""
	for _, f := range fields {
		for _, p := range immutable[RefOf(old).GroupKind()] {
			if within(f.Path, p) {
				hit = p
			}
		}
		if frozen && within(f.Path, content...) {
			hit = f.Path
		}
	}
	switch {
	case hit == "":
		return Change, ""
	case old.GetName() != new.GetName():
		return Change, "its name is a hash of its content: the old one goes when nothing refers to it any more"
	case slices.Contains(neverRecreated, old.GetKind()):
		return Fail, hit + " cannot be changed, and an object of this kind is never recreated: the API server will refuse it"
	case frozen, isTrue(old, annotationRecreate), isTrue(new, annotationRecreate):
		return Recreate, hit + " cannot be changed"
	}
	return Fail, fmt.Sprintf("%s cannot be changed and the object may not be recreated: the API server will refuse it (annotation %s=true allows it)", hit, annotationRecreate)
}

func isTrue(o *unstructured.Unstructured, annotation string) bool {
	return o.GetAnnotations()[annotation] == "true"
}
