// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestDeletedLandscape: a deleted Landscape leaves its objects, and is no longer synced.
func TestDeletedLandscape(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("gone")
	w.startOperator()
	w.createLandscape("gone", r)
	w.awaitReady("gone", "True Applied")
	require.NoError(t, w.client.Delete(context.Background(), w.getLandscape("gone")))
	assert.Equal(t, "1", w.configMapValue("a"))
	// A recreated one starts from the beginning.
	w.createLandscape("gone", r)
	w.awaitReady("gone", "True Applied")
}

// TestRecreatedLandscape: a Landscape that is recreated between two steps is another one.
func TestRecreatedLandscape(t *testing.T) {
	now := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "one", UID: "1"}}
	real := clock.RealClock{}
	s := &landscapeReconciler{operator: &runningOperator{role: &Role{Clock: real, Log: slog.New(slog.DiscardHandler)}, cacheReader: singleLandscapeReader{now}}, key: receiver.Key{Namespace: "garden", Name: "one"}, status: &statusWriter{clock: real, holdsLease: alwaysTrue}}
	s.object = now.DeepCopy()
	now.UID = "2"
	_, gone := s.reconcileOnce()
	assert.True(t, gone)
}

// TestStatusOfRecreatedLandscape: the status of a Landscape is not written to a recreated one.
func TestStatusOfRecreatedLandscape(t *testing.T) {
	w := newTestEnv(t)
	object := func() *landscapev1alpha1.Landscape {
		l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "another"}}
		w.create(l)
		return l
	}
	first := object()
	writer := w.newStatusWriter(alwaysTrue)
	writer.setObject(first)
	writer.desired.LastAttemptedRevision = "main@sha1:1"
	writer.writeIfChanged(context.Background())
	assert.Equal(t, "main@sha1:1", w.getLandscape("another").Status.LastAttemptedRevision)

	require.NoError(t, w.client.Delete(context.Background(), first))
	object()
	writer.desired.LastAttemptedRevision = "main@sha1:2"
	writer.progressWrittenAt = time.Time{}
	writer.writeIfChanged(context.Background())
	assert.Empty(t, w.getLandscape("another").Status.LastAttemptedRevision)
	assert.Empty(t, w.log.String())
}

func alwaysTrue() bool { return true }

func (w *testEnv) newStatusWriter(sure func() bool) *statusWriter {
	return &statusWriter{client: w.client, apiReader: w.client, holdsLease: sure, clock: clock.RealClock{}, log: slog.New(slog.NewTextHandler(w.log, nil))}
}

// TestStatusOfSuccessorIsNotOverwritten: an operator that was paused does not overwrite its
// successor's status. Neither does an operator that is not sure of its lease. Changes of the spec
// do not matter.
func TestStatusOfSuccessorIsNotOverwritten(t *testing.T) {
	w := newTestEnv(t)
	l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "one"}}
	w.create(l)
	sure := true
	writes := func(s *statusWriter, revision string) (overtaken bool) {
		s.desired.LastAttemptedRevision = revision
		return s.writeIfChanged(context.Background())
	}
	first, next := w.newStatusWriter(func() bool { return sure }), w.newStatusWriter(alwaysTrue)
	first.setObject(l)
	require.False(t, writes(first, "main@sha1:1"))
	for i := range 3 {
		w.changeLandscape("one", func(l *landscapev1alpha1.Landscape) {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, "somebody", fmt.Sprint(i))
		})
		require.False(t, writes(first, fmt.Sprintf("main@sha1:1%d", i)), "an annotation is no status")
	}
	sure = false
	require.False(t, writes(first, "main@sha1:unsure"))
	assert.Equal(t, "main@sha1:12", w.getLandscape("one").Status.LastAttemptedRevision)
	sure = true

	next.setObject(w.getLandscape("one"))
	require.False(t, writes(next, "main@sha1:2"))
	require.True(t, writes(first, "main@sha1:3"))
	assert.Equal(t, "main@sha1:2", w.getLandscape("one").Status.LastAttemptedRevision)
	require.False(t, writes(next, "main@sha1:4"))
	assert.Equal(t, "main@sha1:4", w.getLandscape("one").Status.LastAttemptedRevision)
	assert.Empty(t, w.log.String())
}

// TestEditedStatusDoesNotStopSync: a status that a person edits does not end the syncs.
func TestEditedStatusDoesNotStopSync(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("hand")
	w.startOperator()
	w.createLandscape("hand", r)
	w.awaitReady("hand", "True Applied")
	l := w.getLandscape("hand")
	before := l.DeepCopy()
	l.Status.LastAppliedRevision = "main@sha1:nonsense"
	require.NoError(t, w.client.Status().Patch(context.Background(), l, client.MergeFrom(before)))
	next := r.commit("next", map[string]string{"a.yaml": r.configMap("a", "2")})
	w.awaitLandscape("hand", func(l *landscapev1alpha1.Landscape) bool {
		return l.Status.LastAppliedRevision == "main@sha1:"+next && strings.HasPrefix(readyText(l), "True Applied")
	})
	assert.Equal(t, "2", w.configMapValue("a"))
}

// singleLandscapeReader reads one Landscape.
type singleLandscapeReader struct{ l *landscapev1alpha1.Landscape }

func (o singleLandscapeReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.l.DeepCopyInto(into.(*landscapev1alpha1.Landscape))
	return nil
}

func (o singleLandscapeReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}
