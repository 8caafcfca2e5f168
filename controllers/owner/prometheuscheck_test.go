// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/controllers/prometheus"
	"github.com/pergola-dev/pergola/render"
)

// fakePrometheuses imitates the servers of a namespace: each reports the text set for its pod, or
// is healthy.
type fakePrometheuses struct {
	server      *httptest.Server
	mu          sync.Mutex
	answers     map[string]string
	queriedPods map[string]bool
}

const (
	answerAllUp      = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"healthcheck:up"},"value":[1,"1"]}]}}`
	answerTargetDown = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"healthcheck:up","job":"etcd","task":"target:down"},"value":[1,"0"]}]}}`
	answerNoSeries   = `{"status":"success","data":{"resultType":"vector","result":[]}}`
)

func newFakePrometheuses(t *testing.T) *fakePrometheuses {
	t.Helper()
	p := &fakePrometheuses{answers: map[string]string{}, queriedPods: map[string]bool{}}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod := strings.Split(r.URL.Path, "/")[1]
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queriedPods[pod] = true
		if says, has := p.answers[pod]; has {
			fmt.Fprint(w, says)
			return
		}
		fmt.Fprint(w, answerAllUp)
	}))
	t.Cleanup(p.server.Close)
	return p
}

func (p *fakePrometheuses) accessFunc(doubtful bool) func(*rest.Config) prometheus.ServerAccess {
	return func(*rest.Config) prometheus.ServerAccess {
		return prometheus.ServerAccess{MayBeBlocked: doubtful, NewClient: func(_, pod string) (api.Client, error) {
			return api.NewClient(api.Config{Address: p.server.URL + "/" + pod})
		}}
	}
}

func (p *fakePrometheuses) setAnswer(pod, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = map[string]string{}
	if pod != "" {
		p.answers[pod] = what
	}
}

// TestPrometheusesAreChecked checks that PrometheusHealthChecks covers each server of each
// Prometheus of the garden, including foreign ones, and that the condition recovers.
func TestPrometheusesAreChecked(t *testing.T) {
	s := newGarden(t)
	s.installKind("monitoring.coreos.com/v1", "Prometheus", "prometheuses")
	o := s.run.owner
	o.Local.ResetMapping()
	instance := func(name, by string, replicas int) string {
		return fmt.Sprintf(`{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: %s, namespace: NS, labels: {health-check-by: %s}}, spec: {replicas: %d}}`, name, by, replicas)
	}
	object := s.object(instance("garden", "gardener-operator", 2))
	b := s.bundle(false, object)
	b.Cluster, b.Condition = render.ClusterRuntime, conditionObservabilityHealthy
	s.mustApply(b)
	s.setStatus(object, `status: {replicas: 2, updatedReplicas: 2, availableReplicas: 2, conditions: [
		{type: Available, status: "True", observedGeneration: 1}, {type: Reconciled, status: "True", observedGeneration: 1}]}`)
	o.state.bundles = []render.Bundle{b}
	all := newFakePrometheuses(t)
	well := map[string]string{conditionObservabilityHealthy: "True ObservabilityComponentsRunning"}

	s.waitForConditions(well)
	assert.Empty(t, all.queriedPods, "nobody is asked without the gate")
	s.run.reconciler.ConditionSettings.PrometheusAccess = all.accessFunc(false)
	mapping, err := o.Local.Mapping(s.ctx, kindPrometheus)
	require.NoError(t, err)
	others := s.api.Resource(mapping.Resource).Namespace(s.ns)
	for name, by := range map[string]string{"aaa-by-hand": "gardener-operator", "seed": "gardenlet"} {
		_, err := others.Create(s.ctx, s.object(instance(name, by, 1)), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	s.waitForConditions(well)
	s.eventually("that of somebody else is asked, too", func() bool {
		s.careConditions()
		all.mu.Lock()
		defer all.mu.Unlock()
		return all.queriedPods["prometheus-aaa-by-hand-0"]
	})
	assert.Equal(t, map[string]bool{"prometheus-aaa-by-hand-0": true, "prometheus-garden-0": true, "prometheus-garden-1": true}, all.queriedPods)

	for name, c := range map[string]struct{ pod, says, reason, message string }{
		"the second server": {"prometheus-garden-1", answerTargetDown, "PrometheusHealthCheckDown",
			`cluster local: Pod NS/prometheus-garden-1: PrometheusHealthCheckDown: its health checks fail, query it for "healthcheck" to see which: healthcheck:up{job="etcd", task="target:down"} => 0`},
		"that of somebody else": {"prometheus-aaa-by-hand-0", answerTargetDown, "PrometheusHealthCheckDown", "Pod NS/prometheus-aaa-by-hand-0"},
		"without rules":         {"prometheus-garden-0", answerNoSeries, "PrometheusHealthCheckError", "Pod NS/prometheus-garden-0: PrometheusHealthCheckError: its health checks cannot be read: it has no series healthcheck:up"},
		"no Prometheus at all":  {"prometheus-garden-0", "Not yet", "PrometheusHealthCheckError", "Pod NS/prometheus-garden-0"},
	} {
		t.Run(name, func(t *testing.T) {
			all.setAnswer(c.pod, c.says)
			s.waitForConditions(map[string]string{conditionObservabilityHealthy: "False " + c.reason})
			conditions, err := s.run.reconciler.care(s.ctx, o)
			require.NoError(t, err)
			assert.Contains(t, conditions[len(conditions)-1].Message, strings.ReplaceAll(c.message, "NS", s.ns))
			all.setAnswer("", "")
			s.waitForConditions(well)
		})
	}

	t.Run("what is wrong with the objects comes first", func(t *testing.T) {
		all.setAnswer("prometheus-garden-0", answerTargetDown)
		s.setStatus(object, `status: {replicas: 2, availableReplicas: 0, conditions: [{type: Available, status: "False", observedGeneration: 1, message: no pod}]}`)
		s.waitForConditions(map[string]string{conditionObservabilityHealthy: "False PrometheusUnhealthy"})
	})
}

// TestUnreachablePrometheusesAreIgnored checks that unreachable servers do not count from outside
// the cluster.
func TestUnreachablePrometheusesAreIgnored(t *testing.T) {
	all := newFakePrometheuses(t)
	reach := all.accessFunc(true)(nil)
	all.setAnswer("prometheus-garden-0", answerTargetDown)
	v := checkPrometheusPod(t.Context(), reach, "garden", "prometheus-garden-0")
	require.NotNil(t, v)
	assert.Equal(t, reasonPrometheusDown, v.Reason)
	all.setAnswer("prometheus-garden-0", answerNoSeries)
	assert.Nil(t, checkPrometheusPod(t.Context(), reach, "garden", "prometheus-garden-0"))
	all.server.Close()
	assert.Nil(t, checkPrometheusPod(t.Context(), reach, "garden", "prometheus-garden-0"))
	assert.NotNil(t, checkPrometheusPod(t.Context(), all.accessFunc(false)(nil), "garden", "prometheus-garden-0"), "in the cluster it has to answer")
	none := prometheus.ServerAccess{NewClient: func(string, string) (api.Client, error) { return nil, errors.New("no way") }}
	v = checkPrometheusPod(context.Background(), none, "garden", "p")
	require.NotNil(t, v)
	assert.Equal(t, reasonPrometheusError, v.Reason)
}
