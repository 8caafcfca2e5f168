// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

func TestSummary(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct{ applied, healthy, progressing, want string }{
		"nothing yet":    {"", "", "", "not judged yet"},
		"well":           {"True/ApplySucceeded/fine", "True/ResourcesHealthy/fine", "False/ResourcesRolledOut/fine", "2 objects are healthy"},
		"dropped":        {"True/FieldsDropped/" + messageApplied + messageDropped + "Pod x (spec.a).", "True/ResourcesHealthy/fine", "False/ResourcesRolledOut/fine", "FieldsDropped: " + messageApplied + messageDropped + "Pod x (spec.a)."},
		"dropped, ill":   {"True/FieldsDropped/" + messageApplied + messageDropped + "Pod x (spec.a).", "False/PodUnhealthy/ill", "False/ResourcesRolledOut/fine", "PodUnhealthy: ill"},
		"not applied":    {"False/ApplyFailed/a: wrong\nb: wrong\nc: wrong", "Unknown/ChecksPending/later", "Unknown/ChecksPending/later", "not applied: a: wrong (and 2 more)"},
		"long":           {"False/ApplyFailed/" + long + "\nb", "", "", "not applied: " + strings.Repeat("x", 133) + "… (and 1 more)"},
		"unhealthy":      {"True/ApplySucceeded/fine", "False/DeploymentUnhealthy/no pod", "True/DeploymentProgressing/0 of 1", "DeploymentUnhealthy: no pod"},
		"rolling":        {"True/ApplySucceeded/fine", "True/ResourcesHealthy/fine", "True/DeploymentProgressing/0 of 1", "DeploymentProgressing: 0 of 1"},
		"something left": {"Progressing/DeletionPending/All resources are applied. Remaining: x", "True/ResourcesHealthy/fine", "False/ResourcesRolledOut/fine", "being deleted: All resources are applied. Remaining: x"},
		"left, and ill":  {"Progressing/DeletionPending/All resources are applied. Remaining: x", "False/PodUnhealthy/ill", "False/ResourcesRolledOut/fine", "PodUnhealthy: ill"},
		"being deleted":  {"Progressing/DeletionPending/x waits", "False/DeletionPending/later", "True/DeletionPending/later", "being deleted: x waits"},
		"ignored":        {"True/ManagedResourceIgnored/so", "True/ManagedResourceIgnored/so", "False/ManagedResourceIgnored/so", "ignored"},
		"being applied":  {"Progressing/ApplyProgressing/now", "Unknown/ChecksPending/later", "Unknown/ChecksPending/later", "not judged yet"},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &resourcesv1alpha1.ManagedResource{Status: resourcesv1alpha1.ManagedResourceStatus{Resources: make([]resourcesv1alpha1.ObjectReference, 2)}}
			for kind, text := range map[gardencorev1beta1.ConditionType]string{resourcesv1alpha1.ResourcesApplied: c.applied, resourcesv1alpha1.ResourcesHealthy: c.healthy, resourcesv1alpha1.ResourcesProgressing: c.progressing} {
				if parts := strings.SplitN(text, "/", 3); len(parts) == 3 {
					mr.Status.Conditions = append(mr.Status.Conditions, gardencorev1beta1.Condition{Type: kind, Status: gardencorev1beta1.ConditionStatus(parts[0]), Reason: parts[1], Message: parts[2]})
				}
			}
			assert.Equal(t, c.want, Summary(mr))
		})
	}
}
