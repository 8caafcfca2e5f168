// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/health/condition"
)

func TestAllTrue(t *testing.T) {
	list := func(statuses ...v1beta1.ConditionStatus) (out []condition.Condition) {
		for _, s := range statuses {
			out = append(out, condition.Condition{Status: s})
		}
		return out
	}
	assert.True(t, condition.AreAllTrue(nil))
	assert.True(t, condition.AreAllTrue(list(v1beta1.ConditionTrue, v1beta1.ConditionTrue)))
	for _, other := range []v1beta1.ConditionStatus{v1beta1.ConditionFalse, v1beta1.ConditionProgressing, v1beta1.ConditionUnknown, ""} {
		assert.False(t, condition.AreAllTrue(list(v1beta1.ConditionTrue, other)), other)
	}
}
