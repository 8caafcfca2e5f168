// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/commands/status"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// neverReadyPatch keeps the pods of all Deployments of a component in ImagePullBackOff.
const neverReadyPatch = `
patches:
- target: {kind: Deployment}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: any}
    spec: {template: {metadata: {annotations: {local.pergola.dev/never-ready: "true"}}}}
`

// conditionLog records the states of a condition of the Garden.
type conditionLog struct {
	mu     sync.Mutex
	states []string
}

func (s *testStage) recordCondition(ctx context.Context, condition string) *conditionLog {
	r := &conditionLog{}
	gardens := s.resource(runtimeCluster, "operator.gardener.cloud/v1alpha1", "gardens", "")
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			garden, err := gardens.Get(ctx, "local", getOptions)
			if err != nil {
				continue
			}
			list, _ := fieldAt(garden, "status", "conditions").([]any)
			for _, c := range list {
				if m := c.(map[string]any); m["type"] == condition {
					r.add(m["status"].(string))
				}
			}
		}
	}()
	return r
}

func (r *conditionLog) add(state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) == 0 || r.states[len(r.states)-1] != state {
		r.states = append(r.states, state)
	}
}

func (r *conditionLog) statesSoFar() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.states)
}

// testNeverReady: dependents of the Deployment do not start, all others do. The condition turns
// False after its threshold, every report has the pod's reason, and after the repair the next run
// completes.
func testNeverReady(t *testing.T, s *testStage) {
	undo := s.addFileWithUndo("components/garden/etcd-druid/kustomization.yaml", neverReadyPatch)
	s.delete(s.resource(runtimeCluster, "apps/v1", "deployments", "garden"), "etcd-druid")
	s.delete(s.resource(runtimeCluster, "apps/v1", "deployments", "garden"), "vpa-updater")
	s.delete(s.resource(seedCluster, "apps/v1", "deployments", "shoot--local--local"), "kube-scheduler")
	eventually(t, "the pods to be gone", func() bool {
		pods, err := s.resource(runtimeCluster, "v1", "pods", "garden").List(context.Background(), listOptions)
		return err == nil && !slices.ContainsFunc(pods.Items, func(p object) bool { return strings.HasPrefix(p.GetName(), "etcd-druid-") })
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	states := s.recordCondition(ctx, "RuntimeComponentsHealthy")
	eventually(t, "the first state", func() bool { return len(states.statesSoFar()) > 0 })

	problems, report, c := s.applyExpectingError(withStepTimeout(max(10*time.Second, 4*s.machineSpeed.noChangeTime)))
	cancel()
	requireProblem(t, problems, "garden local", "etcd-druid", "cluster runtime", "Deployment garden/etcd-druid", "ImagePullBackOff")
	assert.Len(t, problems, 1, "one cause, one problem")
	assert.Equal(t, []string{"True", "Progressing", "False"}, states.statesSoFar())

	garden := report.Owners[slices.IndexFunc(report.Owners, func(r *owner.Report) bool { return r.Owner == "garden local" })]
	state := map[string]flow.State{}
	for _, n := range garden.Nodes {
		state[n.ID] = n.State
	}
	assert.Equal(t, flow.Failed, state["etcd-druid"])
	for _, blocked := range []string{"etcd-main", "etcd-events", "kube-apiserver", "kube-controller-manager", "init-virtual", "garden-api"} {
		assert.Equal(t, flow.Blocked, state[blocked], blocked)
	}
	for _, done := range []string{"vpa", "istio-system", "virtual-garden-istio", "garden-system"} {
		assert.Equal(t, flow.RolledOut, state[done], done)
	}
	assert.Contains(t, c.writtenObjects(), "created Deployment garden/vpa-updater", "the rest of the runtime cluster is done")
	assert.Contains(t, c.writtenObjects(), "created Deployment shoot--local--local/kube-scheduler", "the virtual garden serves: seed and shoot are done")

	shown := c.Status(testContext(t), landscape.StatusOptions{})
	assert.False(t, shown.Ready)
	var tree bytes.Buffer
	status.Print(&tree, shown, false)
	assert.Contains(t, tree.String(), "ImagePullBackOff")
	assert.Contains(t, tree.String(), "Seed local on local: Ready")
	s.requireNeverReadyReported()
	c.Close()
	printed := s.cli("status", s.dir)
	assert.Equal(t, 1, printed.run(t))
	assert.Contains(t, printed.stdout.String(), "ImagePullBackOff")

	// The program reports the same, and stops in time.
	started := time.Now()
	given := s.cli("apply", s.dir, "--timeout", max(8*time.Second, 4*s.machineSpeed.noChangeTime).String())
	assert.Equal(t, 1, given.run(t))
	assert.Less(t, time.Since(started), waitTimeout)
	for _, text := range []string{"ImagePullBackOff", "cluster runtime: Deployment garden/etcd-druid", "--timeout", "apply again", "Not started, garden local: "} {
		assert.Contains(t, given.stderr.String(), text)
	}

	undo()
	report, _ = s.mustApply()
	for _, o := range report.Owners {
		for _, c := range o.Conditions {
			assert.Equal(t, "True", string(c.Status), "%s %s", o.Owner, c.Type)
		}
	}
	require.NotEmpty(t, report.Owners)
}

// requireNeverReadyReported checks that a live status has the reason at once, for bundle and
// condition.
func (s *testStage) requireNeverReadyReported() {
	s.Helper()
	live := s.newConverger().Status(testContext(s.T), landscape.StatusOptions{Live: true, Components: true})
	for _, b := range live.Owners[0].Bundles {
		if isWaiting(b) {
			continue
		}
		if b.Bundle != "etcd-druid" {
			assert.Equal(s, owner.StateHealthy, b.State, "%s: %s", b.Bundle, b.Message)
			continue
		}
		assert.Equal(s, owner.StateUnhealthy, b.State)
		assert.Contains(s, b.Message, "ImagePullBackOff")
	}
	for _, c := range live.Owners[0].Conditions {
		if c.Type == "RuntimeComponentsHealthy" {
			assert.Equal(s, "False", string(c.Status))
			assert.Contains(s, c.Message, "ImagePullBackOff")
		}
	}
	assert.True(s, live.Owners[1].Ready, "the seed is")
}
