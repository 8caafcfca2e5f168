// SPDX-License-Identifier: Apache-2.0

package structure

import (
	corev1 "k8s.io/api/core/v1"
)

// CoreKinds returns the core kinds that a landscape may declare: Namespace, Secret and ConfigMap.
// They have no definition file; rules check key names and sizes.
func CoreKinds() Kinds {
	kinds := Kinds{}
	add := func(name, description string, namespaced bool, fields map[string]*Node) {
		gvk := corev1.SchemeGroupVersion.WithKind(name)
		root := &Node{Type: "object", Description: description, Properties: fields}
		completeRoot(root, gvk, namespaced)
		kinds[gvk] = &Kind{GVK: gvk, Namespaced: namespaced, Root: root}
	}
	add("Namespace", "Namespace holds objects of namespaced kinds.", false, map[string]*Node{
		"spec": {Type: "object", Description: "The namespace as declared.", Properties: map[string]*Node{
			"finalizers": {Type: "array", Items: &Node{Type: "string"}, Description: "Names that keep the namespace after its deletion."},
		}},
		"status": {Type: "object", AllowsUnknownFields: true, Description: "Set by the server."},
	})
	immutable := func() *Node {
		return &Node{Type: "boolean", Description: "Whether the data can never be changed again."}
	}
	add("Secret", "Secret holds values that only few may read.", true, map[string]*Node{
		"data":       valuesNode("Values, in base64.", formatByte, true),
		"stringData": valuesNode("Values as plain text; they take precedence over data.", "", true),
		"immutable":  immutable(),
		"type":       {Type: "string", Description: "The purpose of the values. Default: Opaque."},
	})
	add("ConfigMap", "ConfigMap holds values that everyone in the namespace may read.", true, map[string]*Node{
		"data":       valuesNode("Values as text.", "", false),
		"binaryData": valuesNode("Values, in base64.", formatByte, false),
		"immutable":  immutable(),
	})
	return kinds
}

func valuesNode(description, format string, sensitive bool) *Node {
	return &Node{
		Type: "object", Description: description, Sensitive: sensitive,
		Additional: &Node{Type: "string", Format: format, Sensitive: sensitive},
	}
}
