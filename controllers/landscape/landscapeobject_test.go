// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

const commit = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"

func landscapeObject(change ...func(*landscapev1alpha1.Landscape)) *landscapev1alpha1.Landscape {
	l := &landscapev1alpha1.Landscape{}
	l.Namespace, l.Name = "garden", "local"
	l.Status.LastAppliedRevision = "main@sha1:" + commit
	withReady(gardencorev1beta1.ConditionTrue, "Applied", "it is applied")(l)
	for _, c := range change {
		c(l)
	}
	return l
}

func withReady(status gardencorev1beta1.ConditionStatus, reason, message string) func(*landscapev1alpha1.Landscape) {
	return func(l *landscapev1alpha1.Landscape) {
		at := metav1.NewTime(noon)
		l.Status.Conditions = []gardencorev1beta1.Condition{{
			Type: landscapev1alpha1.LandscapeReady, Status: status, Reason: reason, Message: message, LastTransitionTime: at, LastUpdateTime: at,
		}}
	}
}

func withSuspension(s *landscapev1alpha1.Suspension) func(*landscapev1alpha1.Landscape) {
	return func(l *landscapev1alpha1.Landscape) { l.Spec.Suspend, l.Spec.Suspension = true, s }
}

func withPin(l *landscapev1alpha1.Landscape) {
	l.Spec.Pin = &landscapev1alpha1.Pin{Revision: commit, By: "bob", Reason: "the new image\ncrashes"}
}

func withFailedSync(l *landscapev1alpha1.Landscape) {
	end := metav1.NewTime(noon.Add(-5 * time.Minute))
	l.Status.History = []landscapev1alpha1.SyncRecord{{Revision: "main@sha1:" + strings.Repeat("f", 40), Result: landscapev1alpha1.SyncFailed, EndTime: &end, Message: "no quota"}}
}

func withTrueCondition(kind gardencorev1beta1.ConditionType, message string) func(*landscapev1alpha1.Landscape) {
	return func(l *landscapev1alpha1.Landscape) {
		l.Status.Conditions = append(l.Status.Conditions, gardencorev1beta1.Condition{Type: kind, Status: gardencorev1beta1.ConditionTrue, Message: message})
	}
}

func withHeldCount(n int) func(*landscapev1alpha1.Landscape) {
	return func(l *landscapev1alpha1.Landscape) {
		l.Status.Held = slices.Repeat([]landscapev1alpha1.HeldDeletion{{Approval: "id"}}, n)
	}
}

func TestObjectStatus(t *testing.T) {
	later, sooner := metav1.NewTime(noon.Add(2*time.Hour)), metav1.NewTime(noon.Add(-time.Second))
	type changes []func(*landscapev1alpha1.Landscape)
	unsaid := map[string]string{" ": ""}
	base := ObjectStatus{Namespace: "garden", Name: "local", Ready: true, Reason: "Applied", Message: "it is applied", Revision: "main@sha1:" + commit}
	for name, test := range map[string]struct {
		changes changes
		want    func(*ObjectStatus)
	}{
		"all is well": {nil, func(*ObjectStatus) {}},
		"suspended for a time": {changes{withSuspension(&landscapev1alpha1.Suspension{Reason: "x", Until: &later})}, func(o *ObjectStatus) {
			o.Ready, o.Suspension = false, &landscapev1alpha1.Suspension{Reason: "x", Until: &later}
		}},
		"suspended, by whom?": {changes{withSuspension(nil), withReady("Unknown", "Suspended", "suspended")}, func(o *ObjectStatus) {
			o.Ready, o.Reason, o.Message, o.Suspension = false, "Suspended", "suspended", &landscapev1alpha1.Suspension{}
		}},
		"not any more": {changes{withSuspension(&landscapev1alpha1.Suspension{Reason: "x", Until: &sooner})}, func(*ObjectStatus) {}},
		"not any more, and nobody has seen it": {
			changes{withSuspension(&landscapev1alpha1.Suspension{Reason: "x", Until: &sooner}), withReady("Unknown", "Suspended", "suspended")},
			func(o *ObjectStatus) { o.Ready, o.Reason, o.Message = false, "Suspended", "suspended" },
		},
		"pinned": {changes{withPin}, func(o *ObjectStatus) {
			o.Pin = &landscapev1alpha1.Pin{Revision: commit, By: "bob", Reason: "the new image\ncrashes"}
		}},
		"failed": {changes{withFailedSync, withReady("False", "ApplyFailed", "no quota: ask for more")}, func(o *ObjectStatus) {
			end := metav1.NewTime(noon.Add(-5 * time.Minute))
			o.Ready, o.Reason, o.Message = false, "ApplyFailed", "no quota: ask for more"
			o.FailedSync = &landscapev1alpha1.SyncRecord{Revision: "main@sha1:" + strings.Repeat("f", 40), Result: landscapev1alpha1.SyncFailed, EndTime: &end, Message: "no quota"}
		}},
		"another reason": {changes{withReady("False", "SourceNotReady", "no\nsuch branch")}, func(o *ObjectStatus) { o.Ready, o.Reason, o.Message = false, "SourceNotReady", "no\nsuch branch" }},
		"never looked at": {changes{func(l *landscapev1alpha1.Landscape) { l.Status = landscapev1alpha1.LandscapeStatus{} }}, func(o *ObjectStatus) {
			*o = ObjectStatus{Namespace: "garden", Name: "local"}
		}},
		"operations wait": {changes{withTrueCondition(landscapev1alpha1.LandscapeOperationsWaiting, "operation a: nobody\ndoes it")}, func(o *ObjectStatus) {
			o.PendingCauses.Operations = "operation a: nobody\ndoes it"
		}},
		"a window is closed": {changes{withReady("True", "Waiting", "waiting for the next window")}, func(o *ObjectStatus) { o.Reason, o.Message = "Waiting", "waiting for the next window" }},
		"the first one waits": {changes{withReady("Unknown", "Waiting", "waiting for Landscape base")}, func(o *ObjectStatus) {
			o.Ready, o.Reason, o.Message = false, "Waiting", "waiting for Landscape base"
		}},
		"one is held": {changes{withHeldCount(1)}, func(o *ObjectStatus) {
			o.Held = HeldCounts{Count: 1, ByCluster: map[string]int{"": 1}, reasons: unsaid}
		}},
		"some are held": {changes{withHeldCount(3)}, func(o *ObjectStatus) {
			o.Held = HeldCounts{Count: 3, ByCluster: map[string]int{"": 3}, reasons: unsaid}
		}},
		"many are held": {changes{withHeldCount(50)}, func(o *ObjectStatus) {
			o.Held = HeldCounts{Count: 50, IsMinimum: true, ByCluster: map[string]int{"": 50}, reasons: unsaid}
		}},
		"as many as are said": {changes{withHeldCount(50), func(l *landscapev1alpha1.Landscape) { l.Status.HeldCount = 214 }}, func(o *ObjectStatus) {
			o.Held = HeldCounts{Count: 214, ByCluster: map[string]int{"": 50}, reasons: unsaid}
		}},
		"by cluster": {changes{func(l *landscapev1alpha1.Landscape) {
			l.Status.Held = []landscapev1alpha1.HeldDeletion{{Cluster: "virtual", Approval: "a"}, {Cluster: "eu-1", Approval: "b"},
				{Cluster: "eu-2", Approval: "b"}, {Cluster: "eu-2", Approval: "c"}, {Cluster: "eu-2", Object: "stuck", Reason: "finalizers"}}
		}}, func(o *ObjectStatus) {
			o.Held = HeldCounts{Count: 4, ByCluster: map[string]int{"virtual": 1, "eu-1": 1, "eu-2": 2}, reasons: map[string]string{"virtual ": "", "eu-1 ": "", "eu-2 ": "", "eu-2 stuck": "finalizers"}}
		}},
		"gardenlets are at work": {changes{withTrueCondition(landscapev1alpha1.LandscapeGardenletsWorking, "waiting for the gardenlets: Seed a")}, func(o *ObjectStatus) {
			o.PendingCauses.Gardenlets = "waiting for the gardenlets: Seed a"
		}},
		"another one is missing": {changes{withTrueCondition(landscapev1alpha1.LandscapeDependenciesMissing, "Landscape base does not exist")}, func(o *ObjectStatus) {
			o.PendingCauses.Dependencies = "Landscape base does not exist"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := base
			test.want(&want)
			got := objectStatus(landscapeObject(test.changes...), noon)
			assert.Equal(t, &want, got)
		})
	}
}
