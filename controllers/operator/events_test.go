// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
)

// eventTexts returns the texts of a Landscape's events with a reason.
func (w *testEnv) eventTexts(landscape, reason string) []string {
	w.Helper()
	events := &eventsv1.EventList{}
	require.NoError(w, w.client.List(context.Background(), events, client.InNamespace(w.namespace)))
	var out []string
	for _, e := range events.Items {
		if e.Regarding.Name == landscape && e.Reason == reason {
			out = append(out, e.Note)
		}
	}
	return out
}

// historyRecords returns the history records of a commit.
func historyRecords(l *landscapev1alpha1.Landscape, commit string) []landscapev1alpha1.SyncRecord {
	var out []landscapev1alpha1.SyncRecord
	for _, r := range l.Status.History {
		if commitOf(r.Revision) == commit {
			out = append(out, r)
		}
	}
	return out
}

// TestInvalidRevisionsAreRecordedOnce: each has an event with its own text, and one record in the
// history, however often it is read.
func TestInvalidRevisionsAreRecordedOnce(t *testing.T) {
	w := newTestEnv(t)
	stop := w.startOperator()
	s := w.newServedRepository("invalid")
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL))
	w.awaitApplied(s, "", "1")
	first := s.push("broken", map[string]string{"b.yaml": "kind: [\n"})
	w.awaitReady(s.name, "False Invalid: revision main@sha1:"+first)
	second := s.push("broken in another way", map[string]string{"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: x}\n"})
	l := w.awaitReady(s.name, "False Invalid: revision main@sha1:"+second)
	assert.Len(t, historyRecords(l, first), 1)
	assert.Len(t, historyRecords(l, second), 1)
	w.eventually("both are told", func() bool { return len(w.eventTexts(s.name, "Invalid")) == 2 })
	notes := w.eventTexts(s.name, "Invalid")
	assert.NotEqual(t, notes[0], notes[1])

	// A person requests a sync, then the operator restarts, and the object changes.
	requested := func() {
		t.Helper()
		w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) {
			setAnnotation(l, landscapev1alpha1.AnnotationSyncRequested, w.Name()+l.ResourceVersion)
		})
		l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
			return l.Status.LastHandledSyncRequest == l.Annotations[landscapev1alpha1.AnnotationSyncRequested] && hasStalled(l)
		})
		assert.Len(t, historyRecords(l, second), 1, "%+v", l.Status.History)
	}
	requested()
	w.restartOperator(&stop)
	requested()
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.ForceConflicts = true })
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return l.Status.ObservedGeneration == l.Generation && hasStalled(l)
	})
	assert.Len(t, historyRecords(l, second), 1, "%+v", l.Status.History)
	assert.Len(t, historyRecords(l, first), 1)
	require.Never(t, func() bool { return len(historyRecords(w.getLandscape(s.name), second)) != 1 }, 2*testInterval, testInterval/2)
	w.awaitApplied(s, s.push("mended", map[string]string{"b.yaml": ""}), "1")
}

func hasStalled(l *landscapev1alpha1.Landscape) bool {
	return condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled) != nil
}
