// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Condition is the API's condition.
type Condition = v1beta1.Condition

// Thresholds are how long a failing check of a condition type may last before the condition turns
// False. Types without a threshold turn False at once.
type Thresholds map[v1beta1.ConditionType]time.Duration

const (
	// ReasonInitialized is the reason of a condition that was never checked.
	ReasonInitialized = "ConditionInitialized"
	// ReasonCheckError is the reason of a condition whose check failed to run.
	ReasonCheckError = "ConditionCheckError"
	// ReasonUnspecified replaces a missing reason.
	ReasonUnspecified = "Unspecified"

	messageInitialized = "The condition has not been checked yet."
	messageUnspecified = "No message given."
)

// Builder makes conditions from check results.
type Builder struct {
	clock      clock.PassiveClock
	thresholds Thresholds
}

// New returns a builder; thresholds may be nil.
func New(clk clock.PassiveClock, thresholds Thresholds) *Builder {
	return &Builder{clock: clk, thresholds: thresholds}
}

// Initial returns an unchecked condition: Unknown.
func (b *Builder) Initial(kind v1beta1.ConditionType) Condition {
	now := metav1.NewTime(b.clock.Now())
	return Condition{
		Type: kind, Status: v1beta1.ConditionUnknown, LastTransitionTime: now, LastUpdateTime: now,
		Reason: ReasonInitialized, Message: messageInitialized,
	}
}

// GetOrInit returns the condition of the type, or an initial one.
func (b *Builder) GetOrInit(list []Condition, kind v1beta1.ConditionType) Condition {
	if c := Get(list, kind); c != nil {
		return *c
	}
	return b.Initial(kind)
}

// Init adds an initial condition for every missing type.
func (b *Builder) Init(list []Condition, kinds ...v1beta1.ConditionType) []Condition {
	out := slices.Clone(list)
	for _, kind := range kinds {
		if Get(out, kind) == nil {
			out = append(out, b.Initial(kind))
		}
	}
	return out
}

// OK returns the condition after a successful check: True, without codes.
func (b *Builder) OK(old Condition, reason, message string) Condition {
	return b.Update(old, v1beta1.ConditionTrue, reason, message)
}

// Progressing returns the condition while the checked object is progressing.
func (b *Builder) Progressing(old Condition, reason, message string, codes ...v1beta1.ErrorCode) Condition {
	return b.Update(old, v1beta1.ConditionProgressing, reason, message, codes...)
}

// Unknown returns the condition after a check that could not run. An empty reason means
// ConditionCheckError.
func (b *Builder) Unknown(old Condition, reason, message string, codes ...v1beta1.ErrorCode) Condition {
	if reason == "" {
		reason = ReasonCheckError
	}
	return b.Update(old, v1beta1.ConditionUnknown, reason, message, codes...)
}

// Failed returns the condition after a failed check; see failedStatus. A transition time ahead of a
// clock that was set back counts as now, because its threshold would last too long.
func (b *Builder) Failed(old Condition, last *v1beta1.LastOperation, reason, message string, codes ...v1beta1.ErrorCode) Condition {
	if now := b.clock.Now(); old.LastTransitionTime.After(now) {
		old.LastTransitionTime = metav1.NewTime(now)
	}
	return b.Update(old, b.failedStatus(old, last, reason), reason, message, codes...)
}

// Update sets the content of a condition. lastTransitionTime changes only with the status,
// lastUpdateTime with any content. Empty reasons and messages get a default, because the API
// requires both.
func (b *Builder) Update(old Condition, status v1beta1.ConditionStatus, reason, message string, codes ...v1beta1.ErrorCode) Condition {
	if reason == "" {
		reason = ReasonUnspecified
	}
	if message == "" {
		message = messageUnspecified
	}
	now := metav1.NewTime(b.clock.Now())
	out := old
	out.Status, out.Reason, out.Message, out.Codes = status, reason, message, sortedCodes(codes)
	if old.Status != status || old.LastTransitionTime.IsZero() {
		out.LastTransitionTime = now
	}
	changed := old.Status != status || old.Reason != reason || old.Message != message || !slices.Equal(old.Codes, out.Codes)
	if changed || old.LastUpdateTime.IsZero() {
		out.LastUpdateTime = now
	}
	return out
}

// sortedCodes sorts the codes, so that the order of errors is not a change.
func sortedCodes(codes []v1beta1.ErrorCode) []v1beta1.ErrorCode {
	if len(codes) == 0 {
		return nil
	}
	out := slices.Clone(codes)
	slices.Sort(out)
	return slices.Compact(out)
}
