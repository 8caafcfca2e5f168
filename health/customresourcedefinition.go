package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckCustomResourceDefinition fails unless the names are accepted, the API is served and the CRD
// is not terminating (pkg/utils/kubernetes/health/customresourcedefinition.go).
func CheckCustomResourceDefinition(obj *unstructured.Unstructured) error {
	return asError(checkCustomResourceDefinition(obj))
}

func checkCustomResourceDefinition(obj *unstructured.Unstructured) *Failure {
	return first(requireTrue(obj, "NamesAccepted"), requireTrue(obj, "Established"), optional(obj, "Terminating", "False"))
}
