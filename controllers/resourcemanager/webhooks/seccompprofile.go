package webhooks

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// defaultSeccompProfile gives a pod the profile of the container runtime, unless it names one for
// all its containers. Pods for Windows have none: Kubernetes refuses them with one.
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
