// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// mutate sets the scheduler of a pod that has none or the default one.
func (s PodSchedulerName) mutate(_ context.Context, _ *admissionv1.AdmissionRequest, pod *corev1.Pod) error {
	if pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
		pod.Spec.SchedulerName = s.SchedulerName
	}
	return nil
}
