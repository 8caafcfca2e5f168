// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/health/condition"
)

func TestTimesMoveOnlyOnChange(t *testing.T) {
	codes := []v1beta1.ErrorCode{v1beta1.ErrorInfraQuotaExceeded, v1beta1.ErrorConfigurationProblem}
	reversed := []v1beta1.ErrorCode{v1beta1.ErrorConfigurationProblem, v1beta1.ErrorInfraQuotaExceeded, v1beta1.ErrorInfraQuotaExceeded}
	for name, c := range map[string]struct {
		status             v1beta1.ConditionStatus
		reason, message    string
		codes              []v1beta1.ErrorCode
		transition, update bool
	}{
		"same content":         {v1beta1.ConditionFalse, "R", "m", codes, false, false},
		"codes in other order": {v1beta1.ConditionFalse, "R", "m", reversed, false, false},
		"other message":        {v1beta1.ConditionFalse, "R", "n", codes, false, true},
		"other reason":         {v1beta1.ConditionFalse, "S", "m", codes, false, true},
		"other codes":          {v1beta1.ConditionFalse, "R", "m", nil, false, true},
		"other status":         {v1beta1.ConditionTrue, "R", "m", codes, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(testStart)
			b := condition.New(clk, nil)
			old := b.Update(b.Initial(kind), v1beta1.ConditionFalse, "R", "m", codes...)
			clk.Step(time.Minute)
			got := b.Update(old, c.status, c.reason, c.message, c.codes...)
			assert.Equal(t, c.transition, !got.LastTransitionTime.Equal(&old.LastTransitionTime), "lastTransitionTime")
			assert.Equal(t, c.update, !got.LastUpdateTime.Equal(&old.LastUpdateTime), "lastUpdateTime")
		})
	}
}

func TestEmptyReasonAndMessageAreFilled(t *testing.T) {
	b := condition.New(clocktesting.NewFakeClock(testStart), nil)
	got := b.OK(b.Initial(kind), "", "")
	assert.Equal(t, condition.ReasonUnspecified, got.Reason)
	assert.NotEmpty(t, got.Message)
}

func TestMergeKeepsOtherConditions(t *testing.T) {
	b := condition.New(clocktesting.NewFakeClock(testStart), nil)
	foreign := condition.Condition{Type: "Foreign", Status: "Maybe", Reason: "X"}
	list := b.Init([]condition.Condition{foreign}, kind, "Foreign")
	assert.Len(t, list, 2)
	assert.Equal(t, foreign, list[0], "an existing condition is not touched")
	assert.Equal(t, v1beta1.ConditionUnknown, list[1].Status)

	merged := condition.Merge(list, b.OK(list[1], "Good", "good"), b.Initial("New"))
	assert.Equal(t, []v1beta1.ConditionType{"Foreign", kind, "New"}, []v1beta1.ConditionType{merged[0].Type, merged[1].Type, merged[2].Type})
	assert.Equal(t, v1beta1.ConditionTrue, merged[1].Status)
	assert.Equal(t, v1beta1.ConditionUnknown, list[1].Status, "the input stays")

	assert.Len(t, condition.Remove(merged, "New", "Gone"), 2)
	assert.Nil(t, condition.Get(merged, "Gone"))
	assert.False(t, condition.Equal(list, merged))
	assert.True(t, condition.Equal(merged, condition.Merge(merged)))
	assert.True(t, condition.Equal(nil, []condition.Condition{}))
}

func TestCodes(t *testing.T) {
	for text, want := range map[string][]v1beta1.ErrorCode{
		"VPCLimitExceeded: too many":                            {v1beta1.ErrorInfraQuotaExceeded},
		"RequestLimitExceeded: slow down":                       nil,
		"RequestLimitExceeded and VpcLimitExceeded":             {v1beta1.ErrorInfraQuotaExceeded},
		"pods \"x\" is forbidden: exceeded quota: q":            {v1beta1.ErrorInfraQuotaExceeded},
		"node has KubeletHasDiskPressure":                       {v1beta1.ErrorConfigurationProblem},
		`error during apply of object "v1/X": is invalid: spec`: {v1beta1.ErrorConfigurationProblem},
		"connection refused":                                    nil,
	} {
		assert.Equal(t, want, condition.Codes(text), text)
	}
	assert.True(t, condition.IsRetryable(nil))
	assert.True(t, condition.IsRetryable([]v1beta1.ErrorCode{v1beta1.ErrorInfraResourcesDepleted}))
	assert.False(t, condition.IsRetryable([]v1beta1.ErrorCode{v1beta1.ErrorInfraResourcesDepleted, v1beta1.ErrorInfraQuotaExceeded}))
}
