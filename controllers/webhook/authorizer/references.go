package authorizer

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Namespaces of referenced objects.
const (
	inOwn     = "own"    // the namespace of the referring object
	inGarden  = "garden" // namespace garden
	asWritten = "?"      // the field's namespace; without one, the object's own
)

// reference is a field that refers to another object: by its name, or by a structure with name and
// optional kind, apiVersion and namespace.
type reference struct {
	path      string
	to        kind // if the field has no kind
	namespace string
}

// referredKinds are the kinds that a structure may name.
var referredKinds = map[schema.GroupKind]kind{
	{Kind: "Secret"}:    kindSecret,
	{Kind: "ConfigMap"}: kindConfigMap,
	{Group: "core.gardener.cloud", Kind: "InternalSecret"}:         kindInternalSecret,
	{Group: "security.gardener.cloud", Kind: "WorkloadIdentity"}:   kindWorkloadIdentity,
	{Group: "core.gardener.cloud", Kind: "CloudProfile"}:           kindCloudProfile,
	{Group: "core.gardener.cloud", Kind: "NamespacedCloudProfile"}: kindNamespacedCloudProfile,
}

// targets returns the objects to which the references of an object lead.
func targets(object map[string]any, namespace string, refs []reference) []node {
	var out []node
	for _, r := range refs {
		each(object, strings.Split(r.path, "."), func(value any) {
			n := node{kind: r.to, namespace: namespace}
			switch v := value.(type) {
			case string:
				n.name = v
			case map[string]any:
				n.name = text(v, "name")
				if of := text(v, "kind"); of != "" {
					group := schema.FromAPIVersionAndKind(text(v, "apiVersion"), of)
					if group.Group == "" && r.to.clusterScoped() {
						// references to cloud profiles have no group
						group.Group = gardencorev1beta1.SchemeGroupVersion.Group
					}
					n.kind = referredKinds[group.GroupKind()]
				}
				if at := text(v, "namespace"); at != "" && r.namespace == asWritten {
					n.namespace = at
				}
			}
			switch {
			case n.kind.clusterScoped():
				n.namespace = ""
			case r.namespace == inGarden:
				n.namespace = gardencorev1beta1.GardenNamespace
			}
			if n.name != "" && n.kind != kindNone {
				out = append(out, n)
			}
		})
	}
	return out
}

// each visits the values at a path, in which NAME[] means all items of a list.
func each(value any, path []string, visit func(any)) {
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
		each(fields[name], path[1:], visit)
		return
	}
	items, _ := fields[name].([]any)
	for _, item := range items {
		each(item, path[1:], visit)
	}
}

func text(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}
