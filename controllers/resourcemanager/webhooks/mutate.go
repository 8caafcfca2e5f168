// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var (
	podKind                   = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	endpointSliceKind         = metav1.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}
	verticalPodAutoscalerKind = metav1.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}
)

// newMutating turns a function that changes objects of a kind into a webhook.
func newMutating[T any](kind metav1.GroupVersionKind, change func(context.Context, *admissionv1.AdmissionRequest, *T) error) webhookFunc {
	return func(ctx context.Context, request *admissionv1.AdmissionRequest) (ctrladmission.Response, error) {
		if request.Kind != kind {
			return ctrladmission.Response{}, denyKind(request, kind.Kind)
		}
		return patchObject(request, func(object *T) error { return change(ctx, request, object) })
	}
}

// denyKind is the denial of a request about another kind.
func denyKind(request *admissionv1.AdmissionRequest, kinds string) error {
	return denyBadRequest("this webhook is for objects of kind %s, but the request is about %s of %s/%s; fix the webhook configuration",
		kinds, request.Kind.Kind, request.Kind.Group, request.Kind.Version)
}

// patchObject applies a function to the object of a request and returns its patch. The patch
// contains only changes of the function: unknown fields of the Go type stay, and its empty fields
// are not added.
func patchObject[T any](request *admissionv1.AdmissionRequest, change func(*T) error) (ctrladmission.Response, error) {
	if request.SubResource != "" || (request.Operation != admissionv1.Create && request.Operation != admissionv1.Update) {
		return ctrladmission.Allowed(""), nil
	}
	object := new(T)
	if len(request.Object.Raw) == 0 {
		return ctrladmission.Response{}, denyBadRequest("the request has no object")
	}
	if err := utiljson.Unmarshal(request.Object.Raw, object); err != nil {
		return ctrladmission.Response{}, denyBadRequest("the object of the request cannot be read as %s: %v", request.Kind.Kind, err)
	}
	before, err := json.Marshal(object)
	if err != nil {
		return ctrladmission.Response{}, fmt.Errorf("writing the object: %w", err)
	}
	if err := change(object); err != nil {
		return ctrladmission.Response{}, err
	}
	after, err := json.Marshal(object)
	if err != nil {
		return ctrladmission.Response{}, fmt.Errorf("writing the changed object: %w", err)
	}
	response := ctrladmission.PatchResponseFromRaw(before, after)
	if !response.Allowed {
		return ctrladmission.Response{}, fmt.Errorf("creating a patch: %s", response.Result.Message)
	}
	return response, nil
}

// describeObject names the object of a request in messages.
func describeObject(request *admissionv1.AdmissionRequest, metadata *metav1.ObjectMeta) string {
	name := request.Name
	if name == "" {
		name = metadata.Name
	}
	if name == "" {
		name = metadata.GenerateName + "…"
	}
	return fmt.Sprintf("%s %s/%s", request.Kind.Kind, request.Namespace, name)
}
