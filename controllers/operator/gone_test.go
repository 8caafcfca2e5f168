package operator

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestGone: a Landscape that is deleted leaves what it applied, and stops being synced.
func TestGone(t *testing.T) {
	w := newWorld(t)
	r := w.repository("gone")
	w.start()
	w.landscape("gone", r)
	w.ready("gone", "True Applied")
	require.NoError(t, w.client.Delete(context.Background(), w.get("gone")))
	assert.Equal(t, "1", w.value("a"))
	// One of the same name begins anew.
	w.landscape("gone", r)
	w.ready("gone", "True Applied")
}

// TestMadeAnew: a Landscape that is deleted and made anew between two looks is another one.
func TestMadeAnew(t *testing.T) {
	now := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "one", UID: "1"}}
	real := clock.RealClock{}
	s := &syncer{hub: &hub{}, parts: &parts{metrics: newMetrics(), Role: &Role{Clock: real, Log: slog.New(slog.DiscardHandler)}, reader: only{now}}, key: receiver.Key{Namespace: "garden", Name: "one"}, status: &statusWriter{clock: real}}
	s.object = now.DeepCopy()
	for _, c := range []struct {
		uid  types.UID
		gone bool
	}{{"1", false}, {"2", true}} {
		now.UID = c.uid
		_, gone := s.step()
		assert.Equal(t, c.gone, gone, "UID %s", c.uid)
	}
}

// TestStatusOfAnother: what is known of a Landscape is not written to the next one of its name.
func TestStatusOfAnother(t *testing.T) {
	w := newWorld(t)
	object := func() *landscapev1alpha1.Landscape {
		l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "another"}}
		w.create(l)
		return l
	}
	first := object()
	writer := &statusWriter{client: w.client, clock: clock.RealClock{}, log: slog.New(slog.NewTextHandler(w.log, nil))}
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

// only reads one Landscape.
type only struct{ l *landscapev1alpha1.Landscape }

func (o only) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.l.DeepCopyInto(into.(*landscapev1alpha1.Landscape))
	return nil
}

func (o only) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
