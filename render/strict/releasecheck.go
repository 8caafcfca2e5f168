// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// introducedType and removedType have the lifecycle methods of types in k8s.io/api.
type (
	introducedType interface {
		APILifecycleIntroduced() (major, minor int)
	}
	removedType interface {
		APILifecycleRemoved() (major, minor int)
	}
)

// checkRelease finds parts that a release does not have: the kind, which may be too new or removed,
// or fields. It skips the status.
func (k *Kind) checkRelease(object map[string]any, minor int) []structure.Finding {
	version := func(of int) string { return fmt.Sprintf("Kubernetes 1.%d", of) }
	typed := reflect.New(k.goType).Interface()
	since := kubernetesTable().since[nameOf(k.goType)+"\t"]
	if i, ok := typed.(introducedType); ok {
		if _, first := i.APILifecycleIntroduced(); first > since {
			since = first
		}
	}
	if minor < since {
		return []structure.Finding{{Path: fieldpath.Path{"apiVersion"}, Type: "NotSupported",
			Message: fmt.Sprintf("%s of %s needs %s, but the cluster has %s", k.GVK.Kind, k.GVK.GroupVersion(), version(since), version(minor))}}
	}
	if r, ok := typed.(removedType); ok {
		if _, last := r.APILifecycleRemoved(); last > 0 && last <= minor {
			return []structure.Finding{{Path: fieldpath.Path{"apiVersion"}, Type: "NotSupported",
				Message: fmt.Sprintf("%s of %s was removed in %s, and the cluster has %s: use a newer API version", k.GVK.Kind, k.GVK.GroupVersion(), version(last), version(minor))}}
		}
	}
	var out []structure.Finding
	var walk func(path fieldpath.Path, n *structure.Node, value any)
	walk = func(path fieldpath.Path, n *structure.Node, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, child := range v {
				if inner := n.Properties[name]; inner != nil {
					if n.FieldsSince[name] > minor {
						out = append(out, structure.Finding{Path: slices.Clone(append(path, name)), Type: "NotSupported",
							Message: fmt.Sprintf("the field %q needs %s, but the cluster has %s: remove it", name, version(n.FieldsSince[name]), version(minor))})
						continue
					}
					walk(append(path, name), inner, child)
				} else if n.Additional != nil {
					walk(append(path, fieldpath.Key(name)), n.Additional, child)
				}
			}
		case []any:
			if n.Items == nil {
				return
			}
			for i, item := range v {
				walk(append(path, i), n.Items, item)
			}
		}
	}
	for name, child := range object {
		if inner := k.Root.Properties[name]; inner != nil && name != "status" {
			walk(fieldpath.Path{name}, inner, child)
		}
	}
	return out
}
