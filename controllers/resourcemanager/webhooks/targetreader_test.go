// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// fakeReader returns the same result for every Get, and counts the calls.
type fakeReader struct {
	client.Reader
	err   error
	count int
}

func (r *fakeReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.count++
	into.SetName(key.Name)
	return r.err
}

// TestLiveReads checks that only objects missing in the cache are read live.
func TestLiveReads(t *testing.T) {
	missing, broken := apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "a"), errors.New("broken")
	for name, c := range map[string]struct {
		cached, live error
		asked        int
		want         error
	}{
		"known":           {nil, broken, 0, nil},
		"not known yet":   {missing, nil, 1, nil},
		"not there":       {missing, missing, 1, missing},
		"cache is broken": {broken, nil, 0, broken},
	} {
		cached, live := &fakeReader{err: c.cached}, &fakeReader{err: c.live}
		account := &corev1.ServiceAccount{}
		assert.Equal(t, c.want, targetReader{cached: cached, live: live}.get(t.Context(), "ns", "a", account), name)
		assert.Equal(t, c.asked, live.count, name)
		assert.Equal(t, "a", account.Name, name)
	}
	assert.Equal(t, error(missing), targetReader{cached: &fakeReader{err: missing}}.get(t.Context(), "ns", "a", &corev1.ServiceAccount{}))
}

// TestAdd checks that the webhook server of a manager serves the same webhooks.
func TestAdd(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"}, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: webhook.NewServer(webhook.Options{})})
	require.NoError(t, err)
	require.ErrorContains(t, Add(t.Context(), mgr, Options{Webhooks: allWebhooks()}), "needs a reader of the source cluster")
	require.NoError(t, Add(t.Context(), mgr, Options{Webhooks: Webhooks{SeccompProfile: Switch{Enabled: true}}}))
	mux := mgr.GetWebhookServer().WebhookMux()
	assert.True(t, postReview(t, mux, PathSeccompProfile, "v1", podRequest("{}")).Response.Allowed)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathPodSchedulerName, strings.NewReader("{}")))
	assert.Equal(t, http.StatusNotFound, w.Code)
}
