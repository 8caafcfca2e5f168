// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	typeServer     = "high-availability-config.resources.gardener.cloud/type: server"
	typeController = "high-availability-config.resources.gardener.cloud/type: controller"
	// podsSpec is the rest of a Deployment or StatefulSet.
	podsSpec = "selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}"
)

func testWorkloadIsSpread(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {gardener.cloud/role: shoot, high-availability-config.resources.gardener.cloud/consider: 'true'}, annotations: {high-availability-config.resources.gardener.cloud/failure-tolerance-type: zone, high-availability-config.resources.gardener.cloud/zones: 'b,a'}}")
	for _, name := range []string{s.ns + "-1", s.ns + "-2"} {
		node := parseObject("{apiVersion: v1, kind: Node, metadata: {name: " + name + "}}")
		require.NoError(t, w.api.Create(s.ctx, node))
		t.Cleanup(func() { require.NoError(t, w.api.Delete(w.ctx, node)) })
	}
	s.eventually("the nodes are known", func() bool {
		probe := parseObject("{apiVersion: apps/v1, kind: Deployment, metadata: {name: probe, labels: {" + typeServer + "}}, spec: {replicas: 1, " + podsSpec + "}}")
		probe.SetNamespace(s.ns)
		require.NoError(t, w.api.Create(s.ctx, probe, client.DryRunAll))
		return convertObject[appsv1.Deployment](t, probe).Spec.Template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable == corev1.DoNotSchedule
	})
	live := s.create("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {" + typeServer + "}}, spec: {replicas: 1, " + podsSpec + "}}")
	d := convertObject[appsv1.Deployment](t, live)
	assert.Equal(t, int32(2), *d.Spec.Replicas)
	assertEqualJSON(t, `
- {maxSkew: 1, minDomains: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash]}
- {maxSkew: 1, minDomains: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash]}`, &d.Spec.Template.Spec.TopologySpreadConstraints)
	assertEqualJSON(t, "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a, b]}]}]}}}", d.Spec.Template.Spec.Affinity)
	assertEqualJSON(t, "[{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]", &d.Spec.Template.Spec.Tolerations)

	// Webhooks must not repeat a change: that would replace the pods.
	require.NoError(t, s.patch(live, "{metadata: {labels: {a: b}}}"))
	assert.Equal(t, int64(1), live.GetGeneration())
	// The webhook handles updates, too, and ignores hibernation.
	require.NoError(t, s.patch(live, "{spec: {replicas: 5}}"))
	assert.Equal(t, int32(2), *convertObject[appsv1.Deployment](t, live).Spec.Replicas)
	require.NoError(t, s.patch(live, "{spec: {replicas: 0}}"))
	assert.Equal(t, int32(0), *convertObject[appsv1.Deployment](t, live).Spec.Replicas)

	set := convertObject[appsv1.StatefulSet](t, s.create("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, labels: {"+typeController+"}}, spec: {replicas: 1, serviceName: a, "+podsSpec+"}}"))
	assert.Equal(t, int32(2), *set.Spec.Replicas)
	assert.Empty(t, set.Spec.Template.Spec.TopologySpreadConstraints[0].MatchLabelKeys)

	// Kubernetes rejects matchLabelKeys without a selector, so that such a constraint stays as it
	// is.
	d = convertObject[appsv1.Deployment](t, s.create("{apiVersion: apps/v1, kind: Deployment, metadata: {name: own}, spec: {replicas: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: own, whenUnsatisfiable: ScheduleAnyway}]}}}}"))
	assertEqualJSON(t, "[{maxSkew: 1, topologyKey: own, whenUnsatisfiable: ScheduleAnyway}]", &d.Spec.Template.Spec.TopologySpreadConstraints)
	refused := parseObject("{apiVersion: apps/v1, kind: Deployment, metadata: {name: refused, namespace: default}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: own, whenUnsatisfiable: ScheduleAnyway, matchLabelKeys: [pod-template-hash]}]}}}}")
	assert.ErrorContains(t, w.api.Create(s.ctx, refused), "matchLabelKeys")

	d = convertObject[appsv1.Deployment](t, s.create("{apiVersion: apps/v1, kind: Deployment, metadata: {name: skipped, labels: {high-availability-config.resources.gardener.cloud/skip: '', "+typeServer+"}}, spec: {replicas: 1, "+podsSpec+"}}"))
	assert.Equal(t, int32(1), *d.Spec.Replicas)
	_, err := s.tryCreate("{apiVersion: apps/v1, kind: Deployment, metadata: {name: wrong, labels: {" + typeServer + "}, annotations: {high-availability-config.resources.gardener.cloud/replicas: many}}, spec: {replicas: 1, " + podsSpec + "}}")
	assert.ErrorContains(t, err, `Deployment `+s.ns+`/wrong: annotation high-availability-config.resources.gardener.cloud/replicas is "many"`)
}

func testWorkloadIsScaled(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {gardener.cloud/role: garden, high-availability-config.resources.gardener.cloud/consider: 'true'}}")
	d := convertObject[appsv1.Deployment](t, s.create("{apiVersion: apps/v1, kind: Deployment, metadata: {name: controller, labels: {"+typeController+"}}, spec: {replicas: 1, "+podsSpec+"}}"))
	assert.Equal(t, int32(2), *d.Spec.Replicas, "namespace garden does not say what it tolerates")
	d = convertObject[appsv1.Deployment](t, s.create("{apiVersion: apps/v1, kind: Deployment, metadata: {name: own, labels: {"+typeController+"}, annotations: {high-availability-config.resources.gardener.cloud/replicas: '3'}}, spec: {replicas: 1, "+podsSpec+"}}"))
	assert.Equal(t, int32(3), *d.Spec.Replicas)
	d = convertObject[appsv1.Deployment](t, s.create("{apiVersion: apps/v1, kind: Deployment, metadata: {name: none}, spec: {replicas: 1, "+podsSpec+"}}"))
	assert.Equal(t, int32(1), *d.Spec.Replicas)

	autoscaler := convertObject[autoscalingv2.HorizontalPodAutoscaler](t, s.create("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: scaled, labels: {"+typeServer+"}}, spec: {minReplicas: 1, maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}}"))
	assert.Equal(t, int32(2), *autoscaler.Spec.MinReplicas)
	assert.Equal(t, int32(2), autoscaler.Spec.MaxReplicas)
	// The API server converts the older version for the webhook.
	old := s.create("{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: old, labels: {" + typeServer + "}}, spec: {minReplicas: 1, maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}}}")
	assert.Equal(t, int64(2), old.Object["spec"].(map[string]any)["minReplicas"])

	probe := parseObject("{apiVersion: apps/v1, kind: Deployment, metadata: {name: scaled, labels: {" + typeServer + "}}, spec: {replicas: 4, " + podsSpec + "}}")
	probe.SetNamespace(s.ns)
	s.eventually("the autoscaler is known, and keeps its number", func() bool {
		scaled := probe.DeepCopy()
		require.NoError(t, w.api.Create(s.ctx, scaled, client.DryRunAll))
		return *convertObject[appsv1.Deployment](t, scaled).Spec.Replicas == 4
	})

	// This namespace has not enabled it.
	other := newTestNamespace(t, w, gardenerNamespace)
	d = convertObject[appsv1.Deployment](t, other.create("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {"+typeServer+"}}, spec: {replicas: 1, "+podsSpec+"}}"))
	assert.Equal(t, int32(1), *d.Spec.Replicas)
}
