// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/render"
)

// listRecorder records the list requests, by verb and path.
type listRecorder struct {
	mu    sync.Mutex
	lists []string
}

func (a *listRecorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		query := r.URL.Query()
		collection := strings.HasSuffix(r.URL.Path, "s") && strings.Contains(r.URL.Path, "/namespaces/")
		if r.Method == http.MethodGet && collection && query.Get("watch") == "" {
			a.mu.Lock()
			a.lists = append(a.lists, r.URL.Path)
			a.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

func (a *listRecorder) takeLists() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.lists
	a.lists = nil
	return out
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestIdleCareListsNothing checks that health checks of an unchanged Garden list nothing: neither
// foreign ManagedResources nor pods of recent Deployments. They only read the API server's health
// and the Garden, and still notice changes.
func TestIdleCareListsNothing(t *testing.T) {
	s := newGarden(t)
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(now)
	requests := &listRecorder{}
	config := rest.CopyConfig(server.config)
	config.Wrap(requests.wrap)
	local, err := conventions.NewCluster("local", config, apply.ClusterOptions{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(local.Close)
	o := s.run.owner
	o.Local, o.ObjectCluster = local, local
	s.run.reconciler.Clock = clock

	deployment := s.object(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: NS}, spec: {replicas: 1, selector: {matchLabels: {app: d}},
		template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: i}]}}}}`)
	b := s.bundle(true, deployment)
	b.Cluster, b.Condition = render.ClusterRuntime, conditionRuntimeHealthy
	s.mustApply(b)
	o.state.bundles = []render.Bundle{b}
	s.setStatus(deployment, `status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [
		{type: Available, status: "True", lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"},
		{type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`)
	well := map[string]string{conditionRuntimeHealthy: "True RuntimeComponentsRunning"}
	s.waitForConditions(well)
	s.careConditions()
	require.NotEmpty(t, requests.takeLists(), "what is read first is listed")

	for range 10 { // five minutes
		clock.Step(30 * time.Second)
		assert.Equal(t, well, s.careConditions())
	}
	assert.Empty(t, requests.takeLists())

	pod, err := s.resource("pods", s.ns).Create(s.ctx, s.object(`{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: NS, labels: {app: d}}, spec: {containers: [{name: c, image: i}]}}`), metav1.CreateOptions{})
	require.NoError(t, err)
	s.setStatus(pod, `status: {phase: Running, containerStatuses: [{name: c, image: i, imageID: i, ready: true, restartCount: 7, state: {running: {startedAt: "2026-01-01T00:06:00Z"}},
		lastState: {terminated: {exitCode: 1, startedAt: "2026-01-01T00:05:00Z", finishedAt: "2026-01-01T00:05:50Z"}}}]}`)
	s.waitForConditions(map[string]string{conditionRuntimeHealthy: "False CrashLoopBackOff"})
	assert.NotContains(t, requests.takeLists(), "/apis/resources.gardener.cloud/v1alpha1/namespaces/garden/managedresources")
}
