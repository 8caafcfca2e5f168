package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Consequences say what the action of an item does beyond its object. old and new are the object before and
// after, as far as they exist and are known.
func Consequences(item Item, old, new *unstructured.Unstructured) []string {
	switch item.Action {
	case Delete:
		return deletion(item.Object.Kind, old)
	case Recreate:
		return append([]string{"is deleted and created again"}, deletion(item.Object.Kind, old)...)
	case Change, Adopt:
		return rollout(item.Object.Kind, item.Fields, new)
	}
	return nil
}

// deletions are the kinds whose deletion takes more with it than the object.
var deletions = map[string]string{
	"Namespace":                "deletes everything in the namespace",
	"CustomResourceDefinition": "deletes every object of the kind",
	"PersistentVolumeClaim":    "loses stored data",
	"PersistentVolume":         "loses stored data",
	"Etcd":                     "loses stored data",
	"BackupBucket":             "loses backups",
	"BackupEntry":              "loses backups",
	"Shoot":                    "deletes the cluster with everything in it",
	"Seed":                     "takes the seed out of the landscape",
	"Project":                  "deletes the namespace of the project with everything in it",
	"Garden":                   "deletes the virtual garden with everything in it",
	"Worker":                   "deletes the machines of the cluster",
	"Infrastructure":           "deletes the network of the cluster",
}

func deletion(kind string, old *unstructured.Unstructured) []string {
	if text := deletions[kind]; text != "" {
		return []string{text}
	}
	if kind == "Service" && nested(old, "spec", "type") == "LoadBalancer" {
		return []string{"gives the load balancer address back"}
	}
	return nil
}

func rollout(kind string, fields []Field, new *unstructured.Unstructured) []string {
	var out []string
	say := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, f := range fields {
		switch kind {
		case "Deployment", "StatefulSet", "DaemonSet":
			workload(f, new, say)
		case "Etcd":
			if within(f.Path, "spec.etcd", "spec.backup", "spec.replicas") {
				say("may roll the etcd members")
			}
		case "Worker":
			if within(f.Path, "spec.pools") && rollsMachines(f.Path) {
				say("rolls the machines of the pool")
			}
		case "Service":
			if f.Path == "spec.type" {
				say(fmt.Sprintf("changes how it is reached: %v", f.New))
			}
		case "CustomResourceDefinition":
			if strings.HasPrefix(f.Path, "spec.versions[name=") && f.New == nil && strings.HasSuffix(f.Path, "]") {
				say("an API version is no longer served")
			}
		}
	}
	return out
}

func workload(f Field, new *unstructured.Unstructured, say func(string)) {
	switch {
	case within(f.Path, "spec.template"):
		if nested(new, "spec", "updateStrategy", "type") == "OnDelete" {
			say("its pods change when they are deleted")
		} else {
			say("rolls its pods")
		}
	case f.Path == "spec.replicas":
		if n, ok := number(f.New); ok && n.Sign() == 0 {
			say("stops all its pods")
		}
	}
}

// rollsMachines follows gardener's hash of a worker pool (extensions: worker.WorkerPoolHash).
func rollsMachines(path string) bool {
	return slices.ContainsFunc([]string{"machineType", "machineImage", "kubernetesVersion", "volume", "providerConfig"},
		func(s string) bool { return strings.Contains(path, s) })
}

// within is true for one of the paths and for what is below it.
func within(path string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		rest, ok := strings.CutPrefix(path, p)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || rest[0] == ' ')
	})
}

func nested(o *unstructured.Unstructured, fields ...string) string {
	if o == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}
