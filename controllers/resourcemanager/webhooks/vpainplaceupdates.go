// SPDX-License-Identifier: Apache-2.0

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

// podAutoscaler is the relevant part of a VerticalPodAutoscaler. Empty parents of optional fields
// stay in its JSON: a patch would otherwise replace the whole parent.
type podAutoscaler struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		UpdatePolicy *struct {
			UpdateMode *string `json:"updateMode,omitempty"`
		} `json:"updatePolicy,omitempty"`
	} `json:"spec"`
}

// setInPlaceUpdates resizes pods in place instead of replacing them.
func setInPlaceUpdates(_ context.Context, _ *admissionv1.AdmissionRequest, vpa *podAutoscaler) error {
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
