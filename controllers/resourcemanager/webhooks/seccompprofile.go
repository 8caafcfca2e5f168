// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// defaultSeccompProfile sets the profile of the container runtime, unless the pod sets one for all
// containers. Kubernetes rejects pods for Windows with a profile.
func defaultSeccompProfile(_ context.Context, _ *admissionv1.AdmissionRequest, pod *corev1.Pod) error {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		return nil
	}
	if s := pod.Spec.SecurityContext; s != nil && s.SeccompProfile != nil && s.SeccompProfile.Type != "" {
		return nil
	}
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	pod.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	return nil
}
