// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
)

// defaulter knows the kinds with defaults in Go. The API server applies the defaults of definitions
// itself.
type defaulter struct {
	scheme *runtime.Scheme
	kinds  map[schema.GroupVersionKind]bool
}

func newDefaulter() (*defaulter, error) {
	d := &defaulter{scheme: runtime.NewScheme(), kinds: map[schema.GroupVersionKind]bool{}}
	for _, add := range []func(*runtime.Scheme) error{
		gardencorev1beta1.AddToScheme, operatorv1alpha1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
	} {
		if err := add(d.scheme); err != nil {
			return nil, fmt.Errorf("registering the API types: %w", err)
		}
	}
	registerDefaults(d, operatorv1alpha1.SetDefaults_Garden)
	registerDefaults(d, gardencorev1beta1.SetDefaults_CloudProfile)
	registerDefaults(d, gardencorev1beta1.SetDefaults_ControllerRegistration)
	registerDefaults(d, gardencorev1beta1.SetDefaults_NamespacedCloudProfile)
	registerDefaults(d, gardencorev1beta1.SetDefaults_Project)
	registerDefaults(d, gardencorev1beta1.SetDefaults_SecretBinding)
	registerDefaults(d, gardencorev1beta1.SetDefaults_Seed)
	registerDefaults(d, gardencorev1beta1.SetDefaults_Shoot)
	registerDefaults(d, securityv1alpha1.SetDefaults_CredentialsBinding)
	registerDefaults(d, seedmanagementv1alpha1.SetDefaults_Gardenlet)
	registerDefaults(d, seedmanagementv1alpha1.SetDefaults_ManagedSeed)
	registerDefaults(d, seedmanagementv1alpha1.SetDefaults_ManagedSeedSet)
	return d, nil
}

// registerDefaults registers the defaults of one type.
func registerDefaults[T any](d *defaulter, set func(*T)) {
	d.scheme.AddTypeDefaultingFunc(any(new(T)).(runtime.Object), func(object any) { set(object.(*T)) })
	gvks, _, err := d.scheme.ObjectKinds(any(new(T)).(runtime.Object))
	if err == nil {
		for _, gvk := range gvks {
			d.kinds[gvk] = true
		}
	}
}

// defaultOperations returns the fields that defaults add to an object. It is empty for kinds
// without defaults, deleted objects, and malformed ones, which validation reports.
func (d *defaulter) defaultOperations(object *unstructured.Unstructured) ([]patchOperation, error) {
	gvk := object.GroupVersionKind()
	if !d.kinds[gvk] || object.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	typed, err := d.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("creating a %s: %w", gvk.Kind, err)
	}
	data, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	if json.Unmarshal(data, typed) != nil {
		return nil, nil
	}
	before, err := fieldsOfObject(typed)
	if err != nil {
		return nil, err
	}
	d.scheme.Default(typed)
	after, err := fieldsOfObject(typed)
	if err != nil {
		return nil, err
	}
	return additionsTo(object.Object, before, after), nil
}

// withDefaults returns the object with its defaults; the object itself if it cannot be read.
func (d *defaulter) withDefaults(object *unstructured.Unstructured) *unstructured.Unstructured {
	ops, err := d.defaultOperations(object)
	if err != nil || len(ops) == 0 {
		return object
	}
	result := object.DeepCopy()
	for _, op := range ops {
		op.applyTo(result.Object)
	}
	return result
}

func fieldsOfObject(object runtime.Object) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing the object: %w", err)
	}
	result := &unstructured.Unstructured{}
	if err := result.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	return result.Object, nil
}

// respondToDefaulting answers with a patch of the mutations, which depend on other objects, and
// then the defaults.
func (h *Handler) respondToDefaulting(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.SubResource != "" || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
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
	if object == nil {
		return nil, badRequest("the request has no object")
	}
	around, err := h.readRelatedObjects(ctx, object, false)
	if err != nil {
		return nil, err
	}
	class, _, _ := unstructured.NestedString(object.Object, "spec", "exposureClassName")
	if around != nil && old == nil && class != "" {
		// Later, the fields of an exposure class cannot be distinguished from the author's.
		conflicts := slices.DeleteFunc(h.crossCheck(around, object, nil), func(v schemas.Violation) bool { return v.Rule != ruleExposureClassScheduling })
		if schemas.HasErrors(conflicts) {
			return responseFor(request, conflicts), nil
		}
	}
	result, err := h.completeObject(around, object, old)
	if err != nil {
		return nil, err
	}
	ops := patchBetween(object.Object, result.Object)
	if len(ops) == 0 {
		return allowed(), nil
	}
	response := allowed()
	if response.Patch, err = json.Marshal(ops); err != nil {
		return nil, fmt.Errorf("writing the defaults: %w", err)
	}
	patchType := admissionv1.PatchTypeJSONPatch
	response.PatchType = &patchType
	return response, nil
}
