// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/receiver"
)

// racingClient is a client with a concurrent write before its first patch.
type racingClient struct {
	client.Client
	otherWrite func()
}

func (b *racingClient) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if other := b.otherWrite; other != nil {
		b.otherWrite = nil
		other()
	}
	return b.Client.Patch(ctx, o, patch, options...)
}

// TestLandscapeClientConcurrentWrites: concurrent writes of two people, or of a person and the
// operator, all remain.
func TestLandscapeClientConcurrentWrites(t *testing.T) {
	w := newTestEnv(t)
	w.createLandscape("both", w.newRepository("both"))
	w.changeLandscape("both", func(l *landscapev1alpha1.Landscape) { l.Spec.Approved = []string{"before"} })
	of := func(by string) *LandscapeClient {
		h, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: "both"}, clock.RealClock{}, by)
		require.NoError(t, err)
		return h
	}
	ctx := t.Context()
	held := []landscapev1alpha1.HeldDeletion{{Cluster: "runtime", Object: "Namespace a", Approval: "aaa"}, {Cluster: "runtime", Object: "Namespace b", Approval: "bbb"}}
	w.writeStatus("both", func(status *landscapev1alpha1.LandscapeStatus) { status.Held = held })
	ada := of("ada")
	beside := func(other func()) {
		c, err := NewLandscapeClient(testServer.config, ada.key, clock.RealClock{}, "ada")
		require.NoError(t, err)
		ada.client = &racingClient{Client: c.client, otherWrite: other}
	}
	beside(func() { require.NoError(t, of("bob").Approve(ctx, []string{"bbb"}, false)) })
	require.NoError(t, ada.Approve(ctx, []string{"aaa"}, false))
	assert.ElementsMatch(t, []string{"before", "aaa", "bbb"}, w.getLandscape("both").Spec.Approved)

	beside(func() { require.NoError(t, of("bob").Suspend(ctx, "for a while", time.Now().Add(time.Hour))) })
	require.NoError(t, ada.Suspend(ctx, "until I say so", time.Time{}))
	assert.Equal(t, &landscapev1alpha1.Suspension{Reason: "until I say so", By: "ada"}, w.getLandscape("both").Spec.Suspension, "it does not end when the other one would")

	beside(func() { w.writeStatus("both", func(status *landscapev1alpha1.LandscapeStatus) { status.Held = nil }) })
	assert.ErrorContains(t, ada.Approve(ctx, []string{"aaa"}, false), "no held deletion has the id", "it passed a moment ago")

	var bobs *landscapev1alpha1.Landscape
	asked, err := ada.Sync(ctx)
	require.NoError(t, err)
	bobs, err = of("bob").Sync(ctx)
	require.NoError(t, err)
	f := &objectFollower{syncRequest: asked.Annotations[landscapev1alpha1.AnnotationSyncRequested]}
	assert.False(t, f.hasAcceptedRequest(w.getLandscape("both")))
	w.writeStatus("both", func(status *landscapev1alpha1.LandscapeStatus) {
		status.LastHandledSyncRequest = bobs.Annotations[landscapev1alpha1.AnnotationSyncRequested]
	})
	assert.True(t, f.hasAcceptedRequest(w.getLandscape("both")), "it was overwritten by another one, which was taken up")
}

// writeStatus changes the status of a Landscape without an operator.
func (w *testEnv) writeStatus(name string, change func(*landscapev1alpha1.LandscapeStatus)) {
	w.Helper()
	l := w.getLandscape(name)
	before := l.DeepCopy()
	change(&l.Status)
	require.NoError(w, w.client.Status().Patch(context.Background(), l, client.MergeFrom(before)))
}
