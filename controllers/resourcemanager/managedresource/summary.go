// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
)

// summaryLength is the maximum length in characters: a summary is a column of a table.
const summaryLength = 160

// Summary says in one line what is wrong with a ManagedResource and why, by its conditions. The
// order is: not applied, not healthy, in progress, fields that the API server drops.
func Summary(mr *resourcesv1alpha1.ManagedResource) string {
	get := func(kind gardencorev1beta1.ConditionType) gardencorev1beta1.Condition {
		if c := condition.Get(mr.Status.Conditions, kind); c != nil {
			return *c
		}
		return gardencorev1beta1.Condition{Status: gardencorev1beta1.ConditionUnknown}
	}
	applied, healthy, progressing := get(resourcesv1alpha1.ResourcesApplied), get(resourcesv1alpha1.ResourcesHealthy), get(resourcesv1alpha1.ResourcesProgressing)
	switch {
	case applied.Reason == resourcesv1alpha1.ConditionManagedResourceIgnored:
		return "ignored"
	case applied.Status == gardencorev1beta1.ConditionFalse:
		return oneLine("not applied", applied.Message)
	case healthy.Status == gardencorev1beta1.ConditionFalse && healthy.Reason != resourcesv1alpha1.ConditionDeletionPending:
		return oneLine(healthy.Reason, healthy.Message)
	case applied.Reason == resourcesv1alpha1.ConditionDeletionPending:
		return oneLine("being deleted", applied.Message)
	case progressing.Status == gardencorev1beta1.ConditionTrue:
		return oneLine(progressing.Reason, progressing.Message)
	case applied.Reason == resourcesv1alpha1.ConditionFieldsDropped:
		return oneLine(applied.Reason, applied.Message)
	case applied.Status == gardencorev1beta1.ConditionTrue && healthy.Status == gardencorev1beta1.ConditionTrue:
		if n := len(mr.Status.Resources); n != 1 {
			return fmt.Sprintf("%d objects are healthy", n)
		}
		return "1 object is healthy"
	case applied.Status == gardencorev1beta1.ConditionUnknown && applied.Message != "":
		return oneLine("not judged", applied.Message)
	}
	return "not judged yet"
}

// oneLine joins a heading, the first line of a message and the number of other lines, and truncates
// the result.
func oneLine(head, message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	text, more := head+": "+strings.TrimSpace(lines[0]), ""
	if len(lines) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(lines)-1)
	}
	if runes := []rune(text); len(runes)+len(more) > summaryLength {
		text = string(runes[:summaryLength-len(more)-1]) + "…"
	}
	return text + more
}
