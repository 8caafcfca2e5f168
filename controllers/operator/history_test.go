// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestRepeatedSyncHasOwnRecord: a repeated sync of a commit has its own start time.
func TestRepeatedSyncHasOwnRecord(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("again")
	w.startOperator()
	w.createLandscape("again", r, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.RetryInterval = &metav1.Duration{Duration: time.Hour}
	})
	former := w.awaitReady("again", "True Applied").Status.History[0]
	taken := corev1ac.ConfigMap("a", w.namespace).WithData(map[string]string{"value": "9"})
	require.NoError(t, w.client.Apply(context.Background(), taken, client.FieldOwner("somebody"), client.ForceOwnership))
	w.awaitReady("again", "False DriftNotRepaired")
	w.eventually("the times of a status, which are whole seconds, can differ", func() bool { return time.Now().Unix() > former.StartTime.Unix() })

	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: "again"}, clock.RealClock{}, "me")
	require.NoError(t, err)
	asked := time.Now().Truncate(time.Second)
	_, err = handle.Sync(w.Context())
	require.NoError(t, err)
	l := w.awaitReady("again", "False ApplyFailed")
	record := l.Status.History[0]
	assert.Equal(t, triggerRequest, record.Trigger)
	assert.Equal(t, landscapev1alpha1.SyncFailed, record.Result)
	assert.False(t, record.StartTime.Time.Before(asked), "began %s, asked for %s, the one before began %s", record.StartTime, asked, former.StartTime)
	require.Len(t, l.Status.History, 2)
	assert.Equal(t, former, l.Status.History[1])
}
