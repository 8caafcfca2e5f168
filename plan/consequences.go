package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// immutable lists fields the API server refuses to change, by kind
// (kubernetes: pkg/apis/*/validation).
var immutable = map[string][]string{
	"Deployment":            {"spec.selector"},
	"DaemonSet":             {"spec.selector"},
	"ReplicaSet":            {"spec.selector"},
	"StatefulSet":           {"spec.selector", "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"},
	"Job":                   {"spec.selector", "spec.template", "spec.completionMode"},
	"PriorityClass":         {"value", "preemptionPolicy"},
	"StorageClass":          {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
	"RoleBinding":           {"roleRef"},
	"ClusterRoleBinding":    {"roleRef"},
	"Service":               {"spec.clusterIP"},
	"PersistentVolumeClaim": {"spec.storageClassName", "spec.accessModes", "spec.volumeName"},
	"IngressClass":          {"spec.controller"},
	"Secret":                {"type"},
}

// neverRecreated are kinds whose deletion loses what they stand for.
var neverRecreated = map[string]bool{
	"PersistentVolumeClaim": true, "PersistentVolume": true, "Namespace": true,
	"CustomResourceDefinition": true, "Etcd": true,
}

const annotationRecreate = "resources.gardener.cloud/delete-on-invalid-update"

// changeOrRecreate predicts whether the API server would refuse the change.
func changeOrRecreate(old *unstructured.Unstructured, fields []Field) (Action, string) {
	kind := old.GetKind()
	frozen, _, _ := unstructured.NestedBool(old.Object, "immutable")
	for _, f := range fields {
		hit := ""
		for _, p := range immutable[kind] {
			if f.Path == p || strings.HasPrefix(f.Path, p+".") || strings.HasPrefix(f.Path, p+"[") {
				hit = p
			}
		}
		if frozen && (kind == "ConfigMap" || kind == "Secret") {
			for _, p := range []string{"data", "binaryData", "stringData", "immutable"} {
				if f.Path == p || strings.HasPrefix(f.Path, p+".") || strings.HasPrefix(f.Path, p+"[") {
					hit = p
				}
			}
		}
		if hit == "" {
			continue
		}
		if hashSuffix.MatchString(old.GetName()) && frozen {
			return Change, "its name is a hash of its content: the old one stays until nothing refers to it"
		}
		if frozen || old.GetAnnotations()[annotationRecreate] == "true" && !neverRecreated[kind] {
			return Recreate, hit + " cannot be changed"
		}
		return Fail, fmt.Sprintf("%s cannot be changed and the object may not be recreated: the API server will refuse it (annotation %s=true allows it)", hit, annotationRecreate)
	}
	return Change, ""
}

// consequences says what a change does beyond the object.
func consequences(item Item, old, new *unstructured.Unstructured) []string {
	var out []string
	kind := item.Object.Kind
	switch item.Action {
	case Delete:
		switch kind {
		case "Namespace":
			out = append(out, "deletes everything in the namespace")
		case "CustomResourceDefinition":
			out = append(out, "deletes every object of the kind")
		case "PersistentVolumeClaim", "PersistentVolume", "Etcd":
			out = append(out, "loses stored data")
		case "Service":
			if old != nil && nested(old, "spec", "type") == "LoadBalancer" {
				out = append(out, "gives the load balancer address back")
			}
		}
	case Recreate:
		out = append(out, "is deleted and created again")
	case Change:
		out = append(out, rollout(kind, item.Fields, new)...)
	}
	return out
}

func rollout(kind string, fields []Field, new *unstructured.Unstructured) []string {
	var out []string
	for _, f := range fields {
		switch kind {
		case "Deployment", "StatefulSet", "DaemonSet":
			if strings.HasPrefix(f.Path, "spec.template") {
				return append(out, "rolls its pods")
			}
		case "Etcd":
			if strings.HasPrefix(f.Path, "spec.etcd") || strings.HasPrefix(f.Path, "spec.backup") || strings.HasPrefix(f.Path, "spec.replicas") {
				return append(out, "may roll the etcd members")
			}
		case "Worker":
			if strings.HasPrefix(f.Path, "spec.pools") && (strings.Contains(f.Path, "machineType") || strings.Contains(f.Path, "machineImage") || strings.Contains(f.Path, "kubernetesVersion") || strings.Contains(f.Path, "volume")) {
				return append(out, "rolls the machines of the pool")
			}
		case "Service":
			if f.Path == "spec.type" {
				return append(out, fmt.Sprintf("changes how it is reached: %v", f.New))
			}
		}
	}
	return out
}

func nested(o *unstructured.Unstructured, fields ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}
