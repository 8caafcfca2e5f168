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

// TestGone: a deleted Landscape leaves its objects, and is no longer synced.
func TestGone(t *testing.T) {
	w := newWorld(t)
	r := w.repository("gone")
	w.start()
	w.landscape("gone", r)
	w.ready("gone", "True Applied")
	require.NoError(t, w.client.Delete(context.Background(), w.get("gone")))
	assert.Equal(t, "1", w.value("a"))
	// A recreated one starts anew.
	w.landscape("gone", r)
	w.ready("gone", "True Applied")
}

// TestMadeAnew: a Landscape that is recreated between two steps is another one.
func TestMadeAnew(t *testing.T) {
	now := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "one", UID: "1"}}
	real := clock.RealClock{}
	s := &syncer{parts: &parts{role: &Role{Clock: real, Log: slog.New(slog.DiscardHandler)}, reader: only{now}}, key: receiver.Key{Namespace: "garden", Name: "one"}, status: &statusWriter{clock: real, sure: always}}
	s.object = now.DeepCopy()
	now.UID = "2"
	_, gone := s.step()
	assert.True(t, gone)
}

// TestStatusOfAnother: the status of a Landscape is not written to a recreated one.
func TestStatusOfAnother(t *testing.T) {
	w := newWorld(t)
	object := func() *landscapev1alpha1.Landscape {
		l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "another"}}
		w.create(l)
		return l
	}
	first := object()
	writer := w.writer(always)
	writer.of(first)
	writer.now.LastAttemptedRevision = "main@sha1:1"
	writer.flush(context.Background())
	assert.Equal(t, "main@sha1:1", w.get("another").Status.LastAttemptedRevision)

	require.NoError(t, w.client.Delete(context.Background(), first))
	object()
	writer.now.LastAttemptedRevision = "main@sha1:2"
	writer.progressed = time.Time{}
	writer.flush(context.Background())
	assert.Empty(t, w.get("another").Status.LastAttemptedRevision)
	assert.Empty(t, w.log.String())
}

func always() bool { return true }

func (w *world) writer(sure func() bool) *statusWriter {
	return &statusWriter{client: w.client, live: w.client, sure: sure, clock: clock.RealClock{}, log: slog.New(slog.NewTextHandler(w.log, nil))}
}

// TestStatusOfSuccessor: an operator that was paused does not overwrite its successor's status.
// Neither does an operator that is not sure of its lease. Changes of the spec do not matter.
func TestStatusOfSuccessor(t *testing.T) {
	w := newWorld(t)
	l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "one"}}
	w.create(l)
	sure := true
	writes := func(s *statusWriter, revision string) (overtaken bool) {
		s.now.LastAttemptedRevision = revision
		return s.flush(context.Background())
	}
	first, next := w.writer(func() bool { return sure }), w.writer(always)
	first.of(l)
	require.False(t, writes(first, "main@sha1:1"))
	for i := range 3 {
		w.change("one", func(l *landscapev1alpha1.Landscape) {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, "somebody", fmt.Sprint(i))
		})
		require.False(t, writes(first, fmt.Sprintf("main@sha1:1%d", i)), "an annotation is no status")
	}
	sure = false
	require.False(t, writes(first, "main@sha1:unsure"))
	assert.Equal(t, "main@sha1:12", w.get("one").Status.LastAttemptedRevision)
	sure = true

	next.of(w.get("one"))
	require.False(t, writes(next, "main@sha1:2"))
	require.True(t, writes(first, "main@sha1:3"))
	assert.Equal(t, "main@sha1:2", w.get("one").Status.LastAttemptedRevision)
	require.False(t, writes(next, "main@sha1:4"))
	assert.Equal(t, "main@sha1:4", w.get("one").Status.LastAttemptedRevision)
	assert.Empty(t, w.log.String())
}

// TestStatusByHand: a status that a person edits does not end the syncs.
func TestStatusByHand(t *testing.T) {
	w := newWorld(t)
	r := w.repository("hand")
	w.start()
	w.landscape("hand", r)
	w.ready("hand", "True Applied")
	l := w.get("hand")
	before := l.DeepCopy()
	l.Status.LastAppliedRevision = "main@sha1:nonsense"
	require.NoError(t, w.client.Status().Patch(context.Background(), l, client.MergeFrom(before)))
	next := r.commit("next", map[string]string{"a.yaml": r.configMap("a", "2")})
	w.await("hand", func(l *landscapev1alpha1.Landscape) bool {
		return l.Status.LastAppliedRevision == "main@sha1:"+next && strings.HasPrefix(readiness(l), "True Applied")
	})
	assert.Equal(t, "2", w.value("a"))
}

// only reads one Landscape.
type only struct{ l *landscapev1alpha1.Landscape }

func (o only) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.l.DeepCopyInto(into.(*landscapev1alpha1.Landscape))
	return nil
}

func (o only) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
