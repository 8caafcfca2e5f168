// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestFollowReportsApplyingPhase: a revision that is being applied is not reported as queued.
func TestFollowReportsApplyingPhase(t *testing.T) {
	for message, test := range map[string]struct{ reason, want string }{
		"applying main@sha1:abc":        {reasonApplying, receiver.PhaseApplying},
		"reading abc":                   {reasonReconciling, receiver.PhaseQueued},
		"main@sha1:abc is applied next": {reasonReconciling, receiver.PhaseQueued},
	} {
		l := &landscapev1alpha1.Landscape{}
		l.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "now"}
		l.Status.LastHandledSyncRequest = "now"
		l.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeReconciling, Status: gardencorev1beta1.ConditionTrue, Reason: test.reason,
			Message: message, LastTransitionTime: metav1.NewTime(noon)},
			{Type: landscapev1alpha1.LandscapeReady, Status: gardencorev1beta1.ConditionUnknown, Reason: reasonPending, Message: message}}
		follower := &objectFollower{syncRequest: "now"}
		lines := follower.pollObject(l, nil, noon)
		require.Len(t, lines, 1)
		assert.Equal(t, test.want, lines[0].Phase, message)
		assert.Equal(t, message, lines[0].Message)
		assert.False(t, lines[0].Done)
		for range 2 {
			assert.Empty(t, follower.pollObject(l, nil, noon), "%s is no end", message)
		}
	}
}
