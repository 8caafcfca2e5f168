// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// serviceHostVariable tells clients in a pod the host of the API server.
const serviceHostVariable = "KUBERNETES_SERVICE_HOST"

// mutate sets the host of the API server for all containers without one.
func (h KubernetesServiceHost) mutate(_ context.Context, _ *admissionv1.AdmissionRequest, pod *corev1.Pod) error {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if !slices.ContainsFunc(containers[i].Env, func(v corev1.EnvVar) bool { return v.Name == serviceHostVariable }) {
				containers[i].Env = append(containers[i].Env, corev1.EnvVar{Name: serviceHostVariable, Value: h.Host})
			}
		}
	}
	return nil
}
