// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
)

// prefixProvider is the prefix of labels with the providers of credentials (upstream:
// LabelShootProviderPrefix).
const prefixProvider = "provider.shoot.gardener.cloud/"

// providerLabels sets the labels of credentials to the providers of the bindings that refer to
// them.
func (w *webhooks) providerLabels(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.Operation == admissionv1.Delete || request.SubResource != "" {
		return allowed()
	}
	object, err := decodeObject[unstructured.Unstructured](request.Object.Raw)
	if err != nil || object == nil {
		return allowedUnlessError(err)
	}
	types, err := w.providersOf(ctx, request)
	if err != nil || len(types) == 0 {
		return allowedUnlessError(err)
	}
	labels := map[string]string{}
	for key, value := range object.GetLabels() {
		if !strings.HasPrefix(key, prefixProvider) {
			labels[key] = value
		}
	}
	for _, t := range types {
		labels[prefixProvider+t] = "true"
	}
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if maps.Equal(labels, object.GetLabels()) {
		return response, nil
	}
	// An "add" replaces an existing value (RFC 6902).
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/metadata/labels", "value": labels}})
	if err != nil {
		return nil, fmt.Errorf("writing the patch: %w", err)
	}
	response.Patch, response.PatchType = patch, ptr.To(admissionv1.PatchTypeJSONPatch)
	return response, nil
}

func allowedUnlessError(err error) (*admissionv1.AdmissionResponse, error) {
	if err != nil {
		return nil, err
	}
	return allowed()
}

// providersOf returns the provider types of the bindings that refer to credentials.
func (w *webhooks) providersOf(ctx context.Context, request *admissionv1.AdmissionRequest) ([]string, error) {
	var out []string
	isThis := func(ref map[string]any, field string) bool {
		name, _, _ := unstructured.NestedString(ref, field, "name")
		namespace, _, _ := unstructured.NestedString(ref, field, "namespace")
		return name == request.Name && namespace == request.Namespace
	}
	provider := func(o *unstructured.Unstructured) {
		types, _, _ := unstructured.NestedString(o.Object, "provider", "type")
		for t := range strings.SplitSeq(types, ",") { // a SecretBinding may have several
			if t = strings.TrimSpace(t); t != "" {
				out = append(out, t)
			}
		}
	}
	if request.Kind.Kind == "Secret" {
		all, _, err := w.Garden.Objects(ctx, gardencorev1beta1.SchemeGroupVersion.WithKind("SecretBinding"), false)
		if err != nil {
			return nil, fmt.Errorf("reading SecretBindings: %w", err)
		}
		for _, binding := range all {
			if isThis(binding.Object, "secretRef") {
				provider(binding)
			}
		}
	}
	all, _, err := w.Garden.Objects(ctx, securityv1alpha1.SchemeGroupVersion.WithKind("CredentialsBinding"), false)
	if err != nil {
		return nil, fmt.Errorf("reading CredentialsBindings: %w", err)
	}
	for _, binding := range all {
		if kind, _, _ := unstructured.NestedString(binding.Object, "credentialsRef", "kind"); kind == request.Kind.Kind && isThis(binding.Object, "credentialsRef") {
			provider(binding)
		}
	}
	return out, nil
}
