// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Namespaces of referenced objects.
const (
	referrerNamespace = "own"    // the namespace of the referring object
	gardenNamespace   = "garden" // namespace garden
	fieldNamespace    = "?"      // the field's namespace; without one, the object's own
)

// reference is a field that refers to another object: by its name, or by a structure with name and
// optional kind, apiVersion and namespace.
type reference struct {
	path      string
	to        kind // if the field has no kind
	namespace string
}

// kindsByGroupKind are the kinds that a structure may name.
var kindsByGroupKind = map[schema.GroupKind]kind{
	{Kind: "Secret"}:    kindSecret,
	{Kind: "ConfigMap"}: kindConfigMap,
	{Group: "core.gardener.cloud", Kind: "InternalSecret"}:         kindInternalSecret,
	{Group: "security.gardener.cloud", Kind: "WorkloadIdentity"}:   kindWorkloadIdentity,
	{Group: "core.gardener.cloud", Kind: "CloudProfile"}:           kindCloudProfile,
	{Group: "core.gardener.cloud", Kind: "NamespacedCloudProfile"}: kindNamespacedCloudProfile,
}

// referencedObjects returns the objects to which the references of an object lead.
func referencedObjects(object map[string]any, namespace string, refs []reference) []objectKey {
	var out []objectKey
	for _, r := range refs {
		visitPath(object, strings.Split(r.path, "."), func(value any) {
			n := objectKey{kind: r.to, namespace: namespace}
			switch v := value.(type) {
			case string:
				n.name = v
			case map[string]any:
				n.name = nestedString(v, "name")
				if of := nestedString(v, "kind"); of != "" {
					group := schema.FromAPIVersionAndKind(nestedString(v, "apiVersion"), of)
					if group.Group == "" && r.to.isClusterScoped() {
						// references to cloud profiles have no group
						group.Group = gardencorev1beta1.SchemeGroupVersion.Group
					}
					n.kind = kindsByGroupKind[group.GroupKind()]
				}
				if at := nestedString(v, "namespace"); at != "" && r.namespace == fieldNamespace {
					n.namespace = at
				}
			}
			switch {
			case n.kind.isClusterScoped():
				n.namespace = ""
			case r.namespace == gardenNamespace:
				n.namespace = gardencorev1beta1.GardenNamespace
			}
			if n.name != "" && n.kind != kindNone {
				out = append(out, n)
			}
		})
	}
	return out
}

// visitPath visits the values at a path, in which NAME[] means all items of a list.
func visitPath(value any, path []string, visit func(any)) {
	if len(path) == 0 {
		if value != nil {
			visit(value)
		}
		return
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	if !isList {
		visitPath(fields[name], path[1:], visit)
		return
	}
	items, _ := fields[name].([]any)
	for _, item := range items {
		visitPath(item, path[1:], visit)
	}
}

func nestedString(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}
