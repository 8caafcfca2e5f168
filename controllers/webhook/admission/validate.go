// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/schemas"
)

// respondToValidation answers whether a change is allowed.
func (h *Handler) respondToValidation(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.SubResource != "" || !slices.Contains([]admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}, request.Operation) {
		return allowed(), nil
	}
	if !schemas.IsKnown(kindOf(request)) {
		return nil, unknownKind(request)
	}
	object, err := decodeRequestObject(request, request.Object)
	if err != nil {
		return nil, err
	}
	old, err := decodeRequestObject(request, request.OldObject)
	if err != nil {
		return nil, err
	}
	var found []schemas.Violation
	switch request.Operation {
	case admissionv1.Create:
		if object == nil {
			return nil, badRequest("the request is a creation, but has no object")
		}
		found, err = h.checkCreate(ctx, object)
	case admissionv1.Update:
		if object == nil || old == nil {
			return nil, badRequest("the request is an update, but lacks the object or the old object")
		}
		found, err = h.checkUpdate(ctx, object, old)
	case admissionv1.Delete:
		if old == nil {
			return nil, badRequest("the request is a deletion, but has no old object")
		}
		found, err = h.checkDelete(ctx, old)
	}
	if err != nil {
		return nil, err
	}
	return responseFor(request, found), nil
}

func (h *Handler) checkCreate(ctx context.Context, object *unstructured.Unstructured) ([]schemas.Violation, error) {
	found, err := h.validateObject(ctx, object, nil)
	if err != nil {
		return nil, err
	}
	second, err := h.checkSingleGarden(ctx, object)
	return append(found, second...), err
}

// checkUpdate compares with the completed old object, as the API would show it. Otherwise defaults
// that are added to an object from before the webhook would look like changes. If the content does
// not change, the rules about other objects are skipped, because these objects may have changed.
func (h *Handler) checkUpdate(ctx context.Context, object, old *unstructured.Unstructured) ([]schemas.Violation, error) {
	around, err := h.readRelatedObjects(ctx, old, false)
	if err != nil {
		return nil, err
	}
	before, err := h.completeObject(around, old, old)
	if err != nil {
		return nil, err
	}
	// Removing finalizers must always work: no one fixes an object that is being deleted.
	if object.GetDeletionTimestamp() != nil && (isSameContent(object, old) || isSameContent(object, before)) {
		return nil, nil
	}
	if object.GetDeletionTimestamp() != nil || isSameContent(object, before) {
		return h.validate(ctx, []schemas.Input{{Object: object, Old: before}}, schemas.Options{Workers: 1})
	}
	return h.validateObject(ctx, object, before)
}

func (h *Handler) checkDelete(ctx context.Context, old *unstructured.Unstructured) ([]schemas.Violation, error) {
	around, err := h.gardensForNamespace(ctx, old)
	if err != nil {
		return nil, err
	}
	return h.validate(ctx, []schemas.Input{{Old: old}}, schemas.Options{Workers: 1, Landscape: around})
}

// isSameContent reports whether two versions of an object only differ in metadata and status.
func isSameContent(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(contentFields(a), contentFields(b))
}

func contentFields(object *unstructured.Unstructured) map[string]any {
	fields := map[string]any{}
	for name, value := range object.Object {
		if name != "metadata" && name != "status" {
			fields[name] = value
		}
	}
	return runtime.DeepCopyJSON(fields)
}
