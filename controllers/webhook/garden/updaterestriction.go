// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Users with permission besides gardenlets.
const (
	// garbageCollector deletes dependents of deleted objects.
	garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"
	// upstreamOperator is the account with which gardener-operator labels re-encrypted objects.
	upstreamOperator = "system:serviceaccount:kube-system:gardener-internal"
)

// updateRestriction protects objects that gardenlets publish from other users (label
// gardener.cloud/update-restriction). Updates without changes are allowed: they make an API server
// re-encrypt an object.
func (w *webhooks) updateRestriction(_ context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	who := requesterOf(request)
	switch {
	case who.Gardenlet:
		return allowed()
	case request.UserInfo.Username == garbageCollector && request.Operation == admissionv1.Delete:
		return allowed()
	case request.UserInfo.Username == upstreamOperator && request.Operation == admissionv1.Update:
		return allowed()
	case request.Operation == admissionv1.Update:
		object, old, err := decodeObjects[unstructured.Unstructured](request)
		if err != nil {
			return nil, err
		}
		if isSameContent(object, old) {
			return allowed()
		}
	}
	return forbidden("%s %s/%s is published by a gardenlet, and only gardenlets may %s it", request.Kind.Kind, request.Namespace, request.Name, operationVerbs[request.Operation])
}

var operationVerbs = map[admissionv1.Operation]string{admissionv1.Create: "make", admissionv1.Update: "change", admissionv1.Delete: "delete"}

// isSameContent compares objects without the fields that an API server sets at each write.
func isSameContent(a, b *unstructured.Unstructured) bool {
	bare := func(o *unstructured.Unstructured) map[string]any {
		o = o.DeepCopy()
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		return o.Object
	}
	return equality.Semantic.DeepEqual(bare(a), bare(b))
}
