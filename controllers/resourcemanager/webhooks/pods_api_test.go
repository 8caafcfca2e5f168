// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const gardenerNamespace = "{labels: {gardener.cloud/role: extension}}"

// tokenOf returns the lifetime of the token that we mounted into a pod; 0 without one.
func tokenOf(pod *corev1.Pod) int64 {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == tokenVolume {
			return *volume.Projected.Sources[0].ServiceAccountToken.ExpirationSeconds
		}
	}
	return 0
}

func testPodsGetTheirToken(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, gardenerNamespace)
	// Pods may follow their ServiceAccount at once, before the cache of the webhook has it.
	s.create("{apiVersion: v1, kind: ServiceAccount, metadata: {name: closed}, automountServiceAccountToken: false}")
	pod := s.pod("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: closed, initContainers: [{name: i, image: i}], containers: [{name: a, image: a}, {name: b, image: b}]}}")
	require.Equal(t, int64(43200), tokenOf(pod))
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		require.Len(t, container.VolumeMounts, 1, container.Name)
		assert.Equal(t, corev1.VolumeMount{Name: "kube-api-access-gardener", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}, container.VolumeMounts[0])
	}
	pod = s.pod("{apiVersion: v1, kind: Pod, metadata: {name: annotated, annotations: {projected-token-mount.resources.gardener.cloud/expiration-seconds: '900', projected-token-mount.resources.gardener.cloud/file-mode: '0600'}}, spec: {serviceAccountName: closed, containers: [{name: a, image: a}]}}")
	assert.Equal(t, int64(900), tokenOf(pod))
	assert.Equal(t, int32(0o600), *pod.Spec.Volumes[0].Projected.DefaultMode)

	s.create("{apiVersion: v1, kind: ServiceAccount, metadata: {name: open}}")
	s.create("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}, automountServiceAccountToken: false}")
	for name, text := range map[string]string{
		"none":    "{metadata: {name: none}, spec: {containers: [{name: a, image: a}]}}",
		"default": "{metadata: {name: default}, spec: {serviceAccountName: default, containers: [{name: a, image: a}]}}",
		"open":    "{metadata: {name: open}, spec: {serviceAccountName: open, containers: [{name: a, image: a}]}}",
		"without": "{metadata: {name: without}, spec: {automountServiceAccountToken: false, serviceAccountName: closed, containers: [{name: a, image: a}]}}",
		"skipped": "{metadata: {name: skipped, labels: {projected-token-mount.resources.gardener.cloud/skip: ''}}, spec: {serviceAccountName: closed, containers: [{name: a, image: a}]}}",
		"itself":  "{metadata: {name: itself, labels: {app: gardener-resource-manager}}, spec: {serviceAccountName: closed, containers: [{name: a, image: a}]}}",
		"mirror":  "{metadata: {name: mirror, labels: {static-pod: 'true'}}, spec: {serviceAccountName: closed, containers: [{name: a, image: a}]}}",
	} {
		assert.Zero(t, tokenOf(s.pod("{apiVersion: v1, kind: Pod, "+text[1:])), name)
	}
	_, err := s.tryCreate("{apiVersion: v1, kind: Pod, metadata: {generateName: lost-}, spec: {serviceAccountName: missing, containers: [{name: a, image: a}]}}")
	assert.ErrorContains(t, err, "Pod "+s.ns+"/lost-")
	assert.ErrorContains(t, err, "ServiceAccount "+s.ns+"/missing does not exist")
	_, err = s.tryCreate("{apiVersion: v1, kind: Pod, metadata: {name: wrong, annotations: {projected-token-mount.resources.gardener.cloud/expiration-seconds: 1h}}, spec: {serviceAccountName: closed, containers: [{name: a, image: a}]}}")
	assert.ErrorContains(t, err, `is "1h": want a whole number of seconds`)

	// Only Gardener's namespaces are selected.
	other := newTestNamespace(t, w, "{labels: {a: b}}")
	other.create("{apiVersion: v1, kind: ServiceAccount, metadata: {name: closed}, automountServiceAccountToken: false}")
	assert.Zero(t, tokenOf(other.pod("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: closed, containers: [{name: a, image: a}]}}")))
}

func testPodsAreCompleted(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, gardenerNamespace)
	pod := s.pod("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}, {name: b, image: b, env: [{name: KUBERNETES_SERVICE_HOST, value: own}]}]}}")
	assert.Equal(t, "bin-packing-scheduler", pod.Spec.SchedulerName)
	require.NotNil(t, pod.Spec.SecurityContext.SeccompProfile)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type)
	assert.Equal(t, []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "api.example.com"}}, pod.Spec.Containers[0].Env)
	assert.Equal(t, "own", pod.Spec.Containers[1].Env[0].Value)
	assert.Empty(t, pod.Spec.NodeSelector, "no namespace of system components")

	pod = s.pod(`{apiVersion: v1, kind: Pod, metadata: {name: own, labels: {seccompprofile.resources.gardener.cloud/skip: "", apiserver-proxy.networking.gardener.cloud/inject: disable}}, spec: {schedulerName: own, containers: [{name: a, image: a}]}}`)
	assert.Equal(t, "own", pod.Spec.SchedulerName)
	assert.Nil(t, pod.Spec.SecurityContext.SeccompProfile)
	assert.Empty(t, pod.Spec.Containers[0].Env)

	// Kubernetes refuses pods for Windows that have a seccomp profile.
	s.pod("{apiVersion: v1, kind: Pod, metadata: {name: windows}, spec: {os: {name: windows}, containers: [{name: a, image: a}]}}")

	pod = s.pod("{apiVersion: v1, kind: Pod, metadata: {name: revision, labels: {app: a, pod-template-hash: h1}}, spec: {containers: [{name: a, image: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash]}]}}")
	assert.Equal(t, map[string]string{"app": "a", "pod-template-hash": "h1"}, pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels)
}

func testSystemComponentsArePlaced(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {gardener.cloud/role: extension, system-components-config.resources.gardener.cloud/consider: 'true'}}")
	node := parseObject("{apiVersion: v1, kind: Node, metadata: {labels: {system-components: 'true'}}, spec: {taints: [{key: pool, value: system, effect: NoSchedule}, {key: node.kubernetes.io/unreachable, effect: NoSchedule}]}}")
	node.SetName(s.ns)
	require.NoError(t, w.api.Create(s.ctx, node))
	other := parseObject("{apiVersion: v1, kind: Node, spec: {taints: [{key: other, effect: NoSchedule}]}}")
	other.SetName(s.ns + "-other")
	require.NoError(t, w.api.Create(s.ctx, other))
	t.Cleanup(func() {
		require.NoError(t, w.api.Delete(s.ctx, node))
		require.NoError(t, w.api.Delete(s.ctx, other))
	})
	pod := parseObject("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}]}}")
	pod.SetNamespace(s.ns)
	s.eventually("the node is known", func() bool {
		placed := pod.DeepCopy()
		require.NoError(t, w.api.Create(s.ctx, placed, client.DryRunAll))
		got := convertObject[corev1.Pod](t, placed)
		if !slices.Contains(got.Spec.Tolerations, corev1.Toleration{Key: "pool", Operator: corev1.TolerationOpEqual, Value: "system", Effect: corev1.TaintEffectNoSchedule}) {
			return false
		}
		assert.Equal(t, "true", got.Spec.NodeSelector["system-components"])
		assert.False(t, slices.ContainsFunc(got.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == "other" || t.Key == "node.kubernetes.io/unreachable" && t.Effect == corev1.TaintEffectNoSchedule
		}), "taints of other nodes, or that come and go")
		return true
	})
	daemon := s.pod("{apiVersion: v1, kind: Pod, metadata: {name: daemon, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]}, spec: {containers: [{name: a, image: a}]}}")
	assert.Empty(t, daemon.Spec.NodeSelector)
	skipped := s.pod("{apiVersion: v1, kind: Pod, metadata: {name: skipped, labels: {system-components-config.resources.gardener.cloud/skip: ''}}, spec: {containers: [{name: a, image: a}]}}")
	assert.Empty(t, skipped.Spec.NodeSelector)
}

// testSystemNamespaces checks that a target has webhooks only for Gardener's objects in system
// namespaces.
func testSystemNamespaces(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {a: b}}")
	system := &testNamespace{s.testServer, "kube-system"}
	removed := func(name string) string {
		t.Cleanup(func() {
			require.NoError(t, w.api.Delete(s.ctx, convertObject[corev1.Pod](t, parseObject("{apiVersion: v1, kind: Pod, metadata: {namespace: kube-system, name: "+name+"}}")), client.GracePeriodSeconds(0)))
		})
		return name
	}
	ours := system.pod("{apiVersion: v1, kind: Pod, metadata: {name: " + removed(s.ns) + ", labels: {resources.gardener.cloud/managed-by: gardener}}, spec: {containers: [{name: a, image: a}]}}")
	assert.Equal(t, "true", ours.Spec.NodeSelector["system-components"])
	theirs := system.pod("{apiVersion: v1, kind: Pod, metadata: {name: " + removed(s.ns+"-theirs") + "}, spec: {containers: [{name: a, image: a}]}}")
	assert.Empty(t, theirs.Spec.NodeSelector)
	assert.NotNil(t, theirs.Spec.SecurityContext.SeccompProfile)
	user := s.pod("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}]}}")
	assert.Nil(t, user.Spec.SecurityContext.SeccompProfile)
	assert.Equal(t, "bin-packing-scheduler", user.Spec.SchedulerName, "in all namespaces")
}

func testLoadIsBalanced(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {gardener.cloud/role: shoot}}")
	gateway := newTestNamespace(t, w, "{labels: {a: b}}")
	const plain = "spec: {containers: [{name: a, image: a}], volumes: [{name: k, secret: {secretName: generic-token-kubeconfig-1}}]}}"
	pod := s.pod("{apiVersion: v1, kind: Pod, metadata: {name: before}, " + plain)
	assert.Empty(t, pod.Spec.HostAliases, "the API server is reached directly")

	s.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-internal-load-balancing}, data: {hosts: 'api.a.example.com,api.b.example.com', istio-namespace: " + gateway.ns + "}}")
	probe := parseObject("{apiVersion: v1, kind: Pod, metadata: {name: probe}, " + plain)
	probe.SetNamespace(s.ns)
	s.eventually("the ConfigMap is known, and nobody lets the pod go the wrong way", func() bool {
		err := w.api.Create(s.ctx, probe.DeepCopy(), client.DryRunAll)
		return err != nil && assert.Contains(t, err.Error(), "reading Service "+gateway.ns+"/istio-ingressgateway-internal")
	})
	service := gateway.create("{apiVersion: v1, kind: Service, metadata: {name: istio-ingressgateway-internal}, spec: {ports: [{port: 443}]}}")
	pod = s.pod("{apiVersion: v1, kind: Pod, metadata: {name: after}, " + plain)
	assert.Equal(t, []corev1.HostAlias{{IP: convertObject[corev1.Service](t, service).Spec.ClusterIP, Hostnames: []string{"api.a.example.com", "api.b.example.com"}}}, pod.Spec.HostAliases)
	assert.Equal(t, "allowed", pod.Labels["networking.resources.gardener.cloud/to-"+gateway.ns+"-istio-ingressgateway-internal-tcp-9443"])
	pod = s.pod("{apiVersion: v1, kind: Pod, metadata: {name: other}, spec: {containers: [{name: a, image: a}]}}")
	assert.Empty(t, pod.Spec.HostAliases)
}

func testOtherKindsAreCompleted(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, gardenerNamespace)
	slice := s.create("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, labels: {endpoint-slice-hints.resources.gardener.cloud/consider: 'true'}}, addressType: IPv4, endpoints: [{addresses: [1.1.1.1], zone: z}]}")
	endpoints := slice.Object["endpoints"].([]any)
	assert.Equal(t, map[string]any{"forZones": []any{map[string]any{"name": "z"}}}, endpoints[0].(map[string]any)["hints"])

	vpa := s.create("{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: a, labels: {own: x}}, spec: {targetRef: {kind: A}, updatePolicy: {updateMode: Recreate, minReplicas: 2}}}")
	assert.Equal(t, map[string]any{"targetRef": map[string]any{"kind": "A"}, "updatePolicy": map[string]any{"updateMode": "InPlaceOrRecreate", "minReplicas": int64(2)}}, vpa.Object["spec"])
	assert.Equal(t, map[string]string{"own": "x", "vpa-in-place-updates.resources.gardener.cloud/mutated": "true"}, vpa.GetLabels())
	vpa = s.create("{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: skipped, labels: {vpa-in-place-updates.resources.gardener.cloud/skip: ''}}, spec: {updatePolicy: {updateMode: Recreate}}}")
	assert.Equal(t, map[string]any{"updateMode": "Recreate"}, vpa.Object["spec"].(map[string]any)["updatePolicy"])
	_, err := s.tryCreate("{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: a}, spec: {}}")
	assert.True(t, apierrors.IsAlreadyExists(err))
}
