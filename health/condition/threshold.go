// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/pergola-dev/pergola/api/core/v1beta1"
)

// failedStatus returns the status of a condition after a failed check (pkg/api/core/v1beta1/helper:
// FailedCondition):
//
//   - True turns Progressing if its type has a threshold, else False.
//   - Progressing stays while the last operation succeeded within the threshold, or the transition
//     to Progressing is within it; then it turns False.
//   - False turns Progressing again only with a threshold, and if an operation succeeded within it
//     or the reason is another one.
//   - Unknown turns False.
//
// The package documentation explains which times count.
func (b *Builder) failedStatus(old Condition, last *v1beta1.LastOperation, reason string) v1beta1.ConditionStatus {
	threshold, ok := b.thresholds[old.Type]
	if !ok {
		return v1beta1.ConditionFalse
	}
	now := b.clock.Now()
	recent := last != nil && last.State == v1beta1.LastOperationStateSucceeded && now.Sub(last.LastUpdateTime.Time).Abs() <= threshold

	progressing := false
	switch old.Status {
	case v1beta1.ConditionTrue:
		progressing = true
	case v1beta1.ConditionProgressing:
		progressing = recent || now.Sub(old.LastTransitionTime.Time) <= threshold
	case v1beta1.ConditionFalse:
		if reason == "" {
			reason = ReasonUnspecified
		}
		old.Reason = reasonOrUnspecified(old.Reason)
		progressing = recent || reason != old.Reason
	}
	if progressing {
		return v1beta1.ConditionProgressing
	}
	return v1beta1.ConditionFalse
}

func reasonOrUnspecified(reason string) string {
	if reason == "" {
		return ReasonUnspecified
	}
	return reason
}

// PardonFailures turns False into Progressing where a failure is expected. Failures are expected
// before the first operation, during an unfinished creation or deletion, and while an operation
// runs without an error. The times stay (pkg/gardenlet/controller/shoot/care: PardonConditions).
func (b *Builder) PardonFailures(list []Condition, last *v1beta1.LastOperation, errors []v1beta1.LastError) []Condition {
	if !isFailureExpected(last, errors) {
		return list
	}
	out := make([]Condition, len(list))
	for i, c := range list {
		if c.Status == v1beta1.ConditionFalse {
			c = b.Update(c, v1beta1.ConditionProgressing, c.Reason, c.Message, c.Codes...)
		}
		out[i] = c
	}
	return out
}

func isFailureExpected(last *v1beta1.LastOperation, errors []v1beta1.LastError) bool {
	if last == nil {
		return true
	}
	unfinished := last.State != v1beta1.LastOperationStateSucceeded
	switch last.Type {
	case v1beta1.LastOperationTypeCreate, v1beta1.LastOperationTypeDelete:
		if unfinished {
			return true
		}
	}
	return last.State == v1beta1.LastOperationStateProcessing && len(errors) == 0
}
