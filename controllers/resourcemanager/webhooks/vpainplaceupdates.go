package webhooks

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Update modes of VerticalPodAutoscalers.
const (
	updateModeAuto              = "Auto"
	updateModeRecreate          = "Recreate"
	updateModeInPlaceOrRecreate = "InPlaceOrRecreate"
)

// podAutoscaler is the part of a VerticalPodAutoscaler that is looked at. Nothing above an optional
// field is left out when it is empty: a patch would replace it as a whole.
type podAutoscaler struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		UpdatePolicy *struct {
			UpdateMode *string `json:"updateMode,omitempty"`
		} `json:"updatePolicy,omitempty"`
	} `json:"spec"`
}

// updateInPlace has pods resized where they are, where they would be replaced otherwise.
func updateInPlace(_ context.Context, _ *admissionv1.AdmissionRequest, vpa *podAutoscaler) error {
	mode := updateModeAuto
	if p := vpa.Spec.UpdatePolicy; p != nil && p.UpdateMode != nil {
		mode = *p.UpdateMode
	}
	if mode != updateModeAuto && mode != updateModeRecreate {
		return nil
	}
	if vpa.Spec.UpdatePolicy == nil {
		vpa.Spec.UpdatePolicy = &struct {
			UpdateMode *string `json:"updateMode,omitempty"`
		}{}
	}
	mode = updateModeInPlaceOrRecreate
	vpa.Spec.UpdatePolicy.UpdateMode = &mode
	metav1.SetMetaDataLabel(&vpa.ObjectMeta, VPAInPlaceUpdatesMutated, "true")
	return nil
}
