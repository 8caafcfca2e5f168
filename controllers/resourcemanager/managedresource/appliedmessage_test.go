// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"testing"

	"github.com/stretchr/testify/assert"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// TestAppliedMessage: fields that differ from their declaration are named but need no more work;
// terminating objects do.
func TestAppliedMessage(t *testing.T) {
	pod := apply.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "p"}
	for name, c := range map[string]struct {
		objects []apply.ObjectResult
		want    string
		done    bool
	}{
		"all":     {[]apply.ObjectResult{{Ref: pod, Action: apply.Created}}, messageApplied, true},
		"kept":    {[]apply.ObjectResult{{Ref: pod, ImmutableFields: []string{"spec.a", "spec.b"}}}, messageApplied + messageImmutable + "Pod n/p (spec.a, spec.b).", true},
		"dropped": {[]apply.ObjectResult{{Ref: pod, Action: apply.Unchanged, Dropped: []string{"spec.a"}}}, messageApplied + messageDropped + "Pod n/p (spec.a).", true},
		"both":    {[]apply.ObjectResult{{Ref: pod, ImmutableFields: []string{"spec.a"}, Dropped: []string{"spec.b"}}}, messageApplied + messageImmutable + "Pod n/p (spec.a)." + messageDropped + "Pod n/p (spec.b).", true},
		"leaving": {[]apply.ObjectResult{{Ref: pod, Action: apply.Deleting, Message: "waits"}}, messageApplied + " Remaining: Pod n/p: waits", false},
	} {
		t.Run(name, func(t *testing.T) {
			result := &apply.Result{Objects: c.objects}
			assert.Equal(t, c.want, appliedMessage(result))
			assert.Equal(t, c.done, appliedReason(result) != resourcesv1alpha1.ConditionDeletionPending)
		})
	}
}
