package stages

// CRDName is the name of the CRD of Stages.
const CRDName = "stages.kwok.x-k8s.io"

// CRD returns the CustomResourceDefinition that serves Stages. kwok converts and checks them itself, so
// the schema says no more than that they are objects.
func CRD() map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": CRDName},
		"spec": map[string]any{
			"group": "kwok.x-k8s.io",
			"scope": "Cluster",
			"names": map[string]any{"kind": "Stage", "listKind": "StageList", "plural": "stages", "singular": "stage"},
			"versions": []any{map[string]any{
				"name": "v1alpha1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}
}
