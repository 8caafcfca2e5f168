// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the structural schema of one version of a kind.
type Kind struct {
	GVK        schema.GroupVersionKind
	Namespaced bool
	Root       *Node
}

// IsAggregated reports whether upstream serves the kind from gardener-apiserver instead of a CRD.
func (k *Kind) IsAggregated() bool {
	group, _, _ := strings.Cut(k.GVK.Group, ".")
	return slices.Contains([]string{"core", "operations", "security", "seedmanagement"}, group)
}

// extensionsGroup shares kind names with other groups: BackupBucket, BackupEntry, Bastion and
// Extension.
const extensionsGroup = "extensions.gardener.cloud"

// RulesName returns the name of a kind in rules, with the prefix "extensions." for the group of
// extensions. All versions of a kind have the same rules.
func RulesName(gvk schema.GroupVersionKind) string {
	if gvk.Group == extensionsGroup {
		return "extensions." + gvk.Kind
	}
	return gvk.Kind
}

// CUEDefinition returns the kind's name in the CUE base, unique among all kinds and versions.
func (k *Kind) CUEDefinition() string {
	switch {
	case k.GVK.Group == extensionsGroup:
		return "Extensions" + k.GVK.Kind
	case k.GVK.Group != "" && k.GVK.Version == "v1":
		return k.GVK.Kind + "V1"
	}
	return k.GVK.Kind
}

// Kinds are the known kinds by group, version and kind.
type Kinds map[schema.GroupVersionKind]*Kind

// KindsFromCRDs reads all versions of the definitions. It takes formats that CRDs lack (durations)
// from the Go types of the scheme, which may be nil.
func KindsFromCRDs(crds []*apiextensionsv1.CustomResourceDefinition, scheme *runtime.Scheme) (Kinds, error) {
	kinds := make(Kinds, len(crds))
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
				return nil, fmt.Errorf("the definition of %s has no schema", gvk)
			}
			root, err := nodeFromProps(version.Schema.OpenAPIV3Schema, gvk.Kind, rejectUnknown)
			if err != nil {
				return nil, fmt.Errorf("reading the schema of %s: %w", gvk, err)
			}
			namespaced := crd.Spec.Scope == apiextensionsv1.NamespaceScoped
			completeRoot(root, gvk, namespaced)
			if scheme != nil && scheme.Recognizes(gvk) {
				if err := addGoFormats(root, gvk, scheme); err != nil {
					return nil, err
				}
			}
			kind := &Kind{GVK: gvk, Namespaced: namespaced, Root: root}
			if kind.IsAggregated() {
				root.allowFractions()
			}
			kinds[gvk] = kind
		}
	}
	return kinds, nil
}

// MetadataOnlyKind returns a schema that only knows the metadata. The name is optional.
func MetadataOnlyKind(gvk schema.GroupVersionKind) *Kind {
	metadata := metadataNode(true)
	metadata.Required = nil
	metadata.Properties["name"].MinLength = nil
	root := &Node{Type: "object", AllowsUnknownFields: true, Properties: map[string]*Node{"metadata": metadata}}
	return &Kind{GVK: gvk, Root: root}
}

// completeRoot adds type and metadata, which definitions leave to the API server.
func completeRoot(root *Node, gvk schema.GroupVersionKind, namespaced bool) {
	if root.Properties == nil {
		root.Properties = map[string]*Node{}
	}
	root.Properties["apiVersion"] = &Node{Type: "string", Enum: []string{gvk.GroupVersion().String()}, Description: "Group and version of the API."}
	root.Properties["kind"] = &Node{Type: "string", Enum: []string{gvk.Kind}, Description: "Kind of the object."}
	root.Properties["metadata"] = metadataNode(namespaced)
	required := []string{"apiVersion", "kind", "metadata"}
	for _, name := range root.Required {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			required = append(required, name)
		}
	}
	// A spec with required fields is required itself, as its Go type is not a pointer.
	if spec := root.Properties["spec"]; spec != nil && len(spec.Required) > 0 && !slices.Contains(required, "spec") {
		required = append(required, "spec")
	}
	root.Required = required
	switch gvk.Kind {
	case "Secret", "InternalSecret":
		root.HidesUnknownNames = true
		for _, name := range []string{"immutable", "type"} {
			root.Properties[name].markSensitive()
		}
	case "Landscape", "Gardenlet":
		// A Landscape needs no namespace in a file, as it is the folder. A Gardenlet has only one
		// possible namespace.
		root.Properties["metadata"].Required = []string{"name"}
	}
}

func metadataNode(namespaced bool) *Node {
	text := func(description string) *Node { return &Node{Type: "string", Description: description} }
	one, longest := int64(1), int64(253)
	required := func(description string) *Node {
		return &Node{Type: "string", MinLength: &one, MaxLength: &longest, Description: description}
	}
	textMap := func(description string) *Node {
		return &Node{Type: "object", Additional: text(""), Description: description}
	}
	n := &Node{
		Type: "object", Description: "Name, labels and annotations of the object.",
		Required: []string{"name"},
		Properties: map[string]*Node{
			"name":            required("Name of the object."),
			"generateName":    text("Prefix of a name that the server completes."),
			"labels":          textMap("Labels to select the object by."),
			"annotations":     textMap("Annotations for people and tools."),
			"finalizers":      {Type: "array", ListType: "set", Items: text(""), Description: "Names that keep a deleted object until they are removed."},
			"ownerReferences": {Type: "array", ListType: "map", ListKeys: []string{"uid"}, Items: ownerNode(), Description: "Objects that own this one."},
			"uid":             text("Set by the server."), "resourceVersion": text("Set by the server."), "selfLink": text("No longer set."),
			"generation":                 {Type: "integer", Description: "Set by the server."},
			"creationTimestamp":          {Type: "string", Format: formatDateTime, Nullable: true, Description: "Set by the server."},
			"deletionTimestamp":          {Type: "string", Format: formatDateTime, Nullable: true, Description: "Set by the server."},
			"deletionGracePeriodSeconds": {Type: "integer", Description: "Set by the server."},
			"managedFields":              {Type: "array", Items: &Node{Type: "object", AllowsUnknownFields: true}, Description: "Set by the server."},
		},
	}
	if namespaced {
		n.Properties["namespace"] = required("Namespace of the object.")
		n.Required = []string{"name", "namespace"}
	}
	return n
}

func ownerNode() *Node {
	one := int64(1)
	text := func(description string) *Node {
		return &Node{Type: "string", MinLength: &one, Description: description}
	}
	return &Node{
		Type: "object", Required: []string{"apiVersion", "kind", "name", "uid"},
		Properties: map[string]*Node{
			"apiVersion": text("Group and version of the owner."), "kind": text("Kind of the owner."),
			"name": text("Name of the owner."), "uid": text("UID of the owner."),
			"controller":         {Type: "boolean", Description: "Whether the owner is the controller of the object."},
			"blockOwnerDeletion": {Type: "boolean", Description: "Whether the owner stays until this object no longer exists."},
		},
	}
}
