// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFailureTolerance: members and API servers are in three zones. When a member dies, the others
// continue, and it rejoins the same cluster.
func TestFailureTolerance(t *testing.T) {
	p := connectShoot(t, shootHighlyAvailable)
	zones := p.zonesByNode(t)
	for part, selector := range map[string]string{"kube-apiserver": apiServerPods, "etcd-main": "app=etcd-statefulset,role=main", "etcd-events": "app=etcd-statefulset,role=events"} {
		var in []string
		for _, pod := range p.pods(t, selector) {
			in = append(in, zones[pod.Spec.NodeName])
		}
		assert.ElementsMatch(t, []string{"0", "1", "2"}, in, part)
	}

	main := p.etcd(t, "main")
	before := main.members()
	require.Len(t, before, 3)
	for _, role := range []string{"main", "events"} {
		members := p.etcd(t, role).members()
		for i := range 3 {
			assert.Contains(t, members, fmt.Sprintf("etcd-%s-%d", role, i))
		}
	}

	const victim = "etcd-main-2"
	restarts := p.containerStatus(t, victim).RestartCount
	kill := func() {
		// Only this control plane has a third member.
		_, err := env.RunLocal("run", "--", "/bin/sh", "-c", `
for p in /proc/[0-9]*; do
  if grep -q -z -x -e '--config-file=/var/etcd/config/`+victim+`.yaml' $p/cmdline 2> /dev/null; then kill -9 ${p#/proc/} && killed=yes; fi
done
[ "$killed" = yes ]`)
		require.NoError(t, err)
	}
	// The first restart is immediate, the second one delayed for long enough to check.
	kill()
	pollUntil(t, func(context.Context) error {
		if c := p.containerStatus(t, victim); c.RestartCount == restarts || c.State.Running == nil {
			return fmt.Errorf("%s is not started again: %v", victim, c)
		}
		return nil
	})
	kill()
	pollUntil(t, func(context.Context) error {
		if c := p.containerStatus(t, victim); c.State.Running != nil {
			return fmt.Errorf("%s runs: %v", victim, c)
		}
		return nil
	})
	namespace := p.ensureNamespace(t, "available")
	for range 5 {
		_, err := p.apiClient.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}, metav1.CreateOptions{})
		require.NoError(t, err, "two members are enough")
	}
	require.Nil(t, p.containerStatus(t, victim).State.Running, "it was away all the time")
	pollUntil(t, func(ctx context.Context) error {
		pod, err := p.hostClient.CoreV1().Pods(p.namespace).Get(ctx, victim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%s is not ready: %v", victim, pod.Status.ContainerStatuses)
	})
	assert.Equal(t, before, main.members(), "it is the same member")
}

// zonesByNode returns the zones of nodes.
func (p *controlPlaneClient) zonesByNode(t *testing.T) map[string]string {
	t.Helper()
	nodes, err := p.hostClient.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	zones := map[string]string{}
	for _, node := range nodes.Items {
		zones[node.Name] = node.Labels[corev1.LabelTopologyZone]
	}
	return zones
}

// containerStatus returns the status of a pod's only container.
func (p *controlPlaneClient) containerStatus(t *testing.T, pod string) corev1.ContainerStatus {
	t.Helper()
	found, err := p.hostClient.CoreV1().Pods(p.namespace).Get(t.Context(), pod, metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, found.Status.ContainerStatuses, 1)
	return found.Status.ContainerStatuses[0]
}

// members returns the cluster's member ids by name. None is a learner.
func (e etcdClient) members() map[string]string {
	e.t.Helper()
	var found struct {
		Members []struct {
			ID, Name  string
			IsLearner bool
		} `json:"members"`
	}
	require.NoError(e.t, e.post("/v3/cluster/member/list", map[string]any{}, &found))
	out := map[string]string{}
	for _, m := range found.Members {
		assert.False(e.t, m.IsLearner, m.Name)
		out[m.Name] = m.ID
	}
	return out
}
