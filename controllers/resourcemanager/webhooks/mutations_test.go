// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// read parses YAML strictly.
func read[T any](t *testing.T, text string) *T {
	t.Helper()
	value := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), value), text)
	return value
}

// assertEqualJSON compares two values as JSON.
func assertEqualJSON[T any](t *testing.T, want string, got *T) {
	t.Helper()
	assert.Equal(t, asJSON(t, read[T](t, want)), asJSON(t, got))
}

// podChange is a function that changes pods.
type podChange = func(context.Context, *admissionv1.AdmissionRequest, *corev1.Pod) error

func TestPodMutations(t *testing.T) {
	host := KubernetesServiceHost{Enabled: true, Host: "api.example.com"}
	for name, c := range map[string]struct {
		change   podChange
		pod, got string
	}{
		"no scheduler": {PodSchedulerName{SchedulerName: "bin-packing"}.mutate, "{}", "{spec: {schedulerName: bin-packing}}"},
		"the default scheduler": {PodSchedulerName{SchedulerName: "bin-packing"}.mutate,
			"{spec: {schedulerName: default-scheduler}}", "{spec: {schedulerName: bin-packing}}"},
		"another scheduler": {PodSchedulerName{SchedulerName: "bin-packing"}.mutate, "{spec: {schedulerName: own}}", "{spec: {schedulerName: own}}"},

		"no seccomp profile": {defaultSeccompProfile, "{}", "{spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}"},
		"a security context": {defaultSeccompProfile, "{spec: {securityContext: {runAsUser: 1}}}",
			"{spec: {securityContext: {runAsUser: 1, seccompProfile: {type: RuntimeDefault}}}}"},
		"a profile without type": {defaultSeccompProfile, "{spec: {securityContext: {seccompProfile: {type: ''}}}}",
			"{spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}"},
		"a profile": {defaultSeccompProfile, "{spec: {securityContext: {seccompProfile: {type: Unconfined}}}}",
			"{spec: {securityContext: {seccompProfile: {type: Unconfined}}}}"},
		"a pod for Windows": {defaultSeccompProfile, "{spec: {os: {name: windows}}}", "{spec: {os: {name: windows}}}"},
		"a pod for Linux": {defaultSeccompProfile, "{spec: {os: {name: linux}}}",
			"{spec: {os: {name: linux}, securityContext: {seccompProfile: {type: RuntimeDefault}}}}"},

		"containers without host": {host.mutate,
			"{spec: {initContainers: [{name: i}], containers: [{name: a, env: [{name: A, value: b}]}, {name: b}]}}", `
spec:
  initContainers: [{name: i, env: [{name: KUBERNETES_SERVICE_HOST, value: api.example.com}]}]
  containers:
  - {name: a, env: [{name: A, value: b}, {name: KUBERNETES_SERVICE_HOST, value: api.example.com}]}
  - {name: b, env: [{name: KUBERNETES_SERVICE_HOST, value: api.example.com}]}`},
		"a container with its own host": {host.mutate, "{spec: {containers: [{name: a, env: [{name: KUBERNETES_SERVICE_HOST, value: own}]}]}}",
			"{spec: {containers: [{name: a, env: [{name: KUBERNETES_SERVICE_HOST, value: own}]}]}}"},

		"no Deployment's pod": {spreadRevisions, "{spec: {topologySpreadConstraints: [{topologyKey: a}]}}", "{spec: {topologySpreadConstraints: [{topologyKey: a}]}}"},
		"no constraints":      {spreadRevisions, "{metadata: {labels: {pod-template-hash: h}}}", "{metadata: {labels: {pod-template-hash: h}}}"},
		"constraints": {spreadRevisions, `
metadata: {labels: {pod-template-hash: h}}
spec:
  topologySpreadConstraints:
  - {topologyKey: none}
  - {topologyKey: labels, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash, other]}
  - {topologyKey: own, labelSelector: {matchLabels: {pod-template-hash: own}}}
  - {topologyKey: in, labelSelector: {matchExpressions: [{key: pod-template-hash, operator: In, values: [own]}]}}
  - {topologyKey: exists, labelSelector: {matchExpressions: [{key: pod-template-hash, operator: Exists}]}}`, `
metadata: {labels: {pod-template-hash: h}}
spec:
  topologySpreadConstraints:
  - {topologyKey: none, labelSelector: {matchLabels: {pod-template-hash: h}}}
  - {topologyKey: labels, labelSelector: {matchLabels: {app: a, pod-template-hash: h}}, matchLabelKeys: [other]}
  - {topologyKey: own, labelSelector: {matchLabels: {pod-template-hash: own}}}
  - {topologyKey: in, labelSelector: {matchExpressions: [{key: pod-template-hash, operator: In, values: [own]}]}}
  - {topologyKey: exists, labelSelector: {matchLabels: {pod-template-hash: h}, matchExpressions: [{key: pod-template-hash, operator: Exists}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := read[corev1.Pod](t, c.pod)
			for range 2 { // the second change must be empty
				require.NoError(t, c.change(t.Context(), &admissionv1.AdmissionRequest{}, pod))
				assertEqualJSON(t, c.got, pod)
			}
		})
	}
}

func TestMountToken(t *testing.T) {
	pod := read[corev1.Pod](t, "{spec: {initContainers: [{name: i}], containers: [{name: a, volumeMounts: [{name: own, mountPath: /own}]}], volumes: [{name: own}]}}")
	require.True(t, isTokenMountNeeded(pod))
	require.NoError(t, mountToken(pod, 43200))
	assertEqualJSON(t, `
spec:
  initContainers: [{name: i, volumeMounts: [{name: kube-api-access-gardener, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]}]
  containers:
  - name: a
    volumeMounts:
    - {name: own, mountPath: /own}
    - {name: kube-api-access-gardener, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  volumes:
  - name: own
  - name: kube-api-access-gardener
    projected:
      defaultMode: 420
      sources:
      - serviceAccountToken: {path: token, expirationSeconds: 43200}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}`, pod)
	assert.False(t, isTokenMountNeeded(pod), "it has one now")
	assert.False(t, isTokenMountNeeded(read[corev1.Pod](t, "{spec: {volumes: [{name: kube-api-access-x1}]}}")))
	assert.False(t, isTokenMountNeeded(read[corev1.Pod](t, "{spec: {automountServiceAccountToken: false}}")))
	assert.True(t, isTokenMountNeeded(read[corev1.Pod](t, "{spec: {automountServiceAccountToken: true}}")))
}

func TestMountTokenAsAnnotated(t *testing.T) {
	const seconds, mode = ProjectedTokenExpirationSeconds, ProjectedTokenFileMode
	for name, c := range map[string]struct {
		annotations map[string]string
		seconds     int64
		mode        int32
		err         string
	}{
		"seconds":         {map[string]string{seconds: "3600"}, 3600, 0o644, ""},
		"the least":       {map[string]string{seconds: "600"}, 600, 0o644, ""},
		"too few":         {map[string]string{seconds: "599"}, 0, 0, "expiration-seconds is \"599\": want a whole number of seconds from 600 (10 minutes) to 4294967296"},
		"no number":       {map[string]string{seconds: "1h"}, 0, 0, "expiration-seconds is \"1h\""},
		"too many":        {map[string]string{seconds: "4294967297"}, 0, 0, "expiration-seconds is \"4294967297\""},
		"decimal mode":    {map[string]string{mode: "416"}, 43200, 0o640, ""},
		"octal mode":      {map[string]string{mode: "0600"}, 43200, 0o600, ""},
		"no access":       {map[string]string{mode: "0"}, 43200, 0, ""},
		"too large":       {map[string]string{mode: "600"}, 0, 0, "file-mode is \"600\": want the mode of files"},
		"negative":        {map[string]string{mode: "-1"}, 0, 0, "file-mode is \"-1\""},
		"not octal":       {map[string]string{mode: "0888"}, 0, 0, "file-mode is \"0888\""},
		"no mode":         {map[string]string{mode: "rw"}, 0, 0, "file-mode is \"rw\""},
		"an empty number": {map[string]string{seconds: ""}, 0, 0, "expiration-seconds is \"\""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
			err := mountToken(pod, 43200)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				assert.Empty(t, pod.Spec.Volumes)
				return
			}
			require.NoError(t, err)
			projected := pod.Spec.Volumes[0].Projected
			assert.Equal(t, c.mode, *projected.DefaultMode)
			assert.Equal(t, c.seconds, *projected.Sources[0].ServiceAccountToken.ExpirationSeconds)
		})
	}
}

func TestPlaceSystemComponents(t *testing.T) {
	settings := read[SystemComponentsConfig](t, `
enabled: true
podNodeSelector: {worker.gardener.cloud/system-components: "true", both: settings}
podTolerations: [{key: CriticalAddonsOnly, operator: Exists}, {key: seconds, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]`)
	nodes := read[corev1.NodeList](t, `
items:
- spec:
    taints:
    - {key: z, value: v, effect: NoSchedule}
    - {key: node.kubernetes.io/not-ready, effect: NoExecute}
    - {key: ToBeDeletedByClusterAutoscaler, value: "1", effect: NoSchedule}
- spec: {taints: [{key: a, effect: NoExecute}, {key: z, value: v, effect: NoSchedule}]}`)
	const got = `
spec:
  nodeSelector: {own: x, both: settings, worker.gardener.cloud/system-components: "true"}
  tolerations:
  - {key: own, operator: Exists}
  - {key: seconds, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
  - {key: CriticalAddonsOnly, operator: Exists}
  - {key: a, operator: Exists, effect: NoExecute}
  - {key: z, operator: Equal, value: v, effect: NoSchedule}`
	pod := read[corev1.Pod](t, `
spec:
  nodeSelector: {own: x, both: own}
  tolerations: [{key: own, operator: Exists}, {key: seconds, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]`)
	settings.applyTo(pod, nodes.Items)
	assertEqualJSON(t, got, pod)
	nodes.Items[0], nodes.Items[1] = nodes.Items[1], nodes.Items[0]
	settings.applyTo(pod, nodes.Items)
	assertEqualJSON(t, got, pod)
	assert.Equal(t, "seconds", settings.PodTolerations[1].Key, "the settings stay as they are")

	plain := &corev1.Pod{}
	SystemComponentsConfig{}.applyTo(plain, nil)
	assert.Equal(t, &corev1.Pod{}, plain)
}

func TestIsDaemon(t *testing.T) {
	pod := func(kind, version string, controller *bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Controller: controller}}}}
	}
	assert.True(t, isDaemonSetPod(pod("DaemonSet", "apps/v1", ptr.To(true))))
	assert.False(t, isDaemonSetPod(pod("DaemonSet", "apps/v1", nil)))
	assert.False(t, isDaemonSetPod(pod("DaemonSet", "own.io/v1", ptr.To(true))))
	assert.False(t, isDaemonSetPod(pod("ReplicaSet", "apps/v1", ptr.To(true))))
	assert.False(t, isDaemonSetPod(&corev1.Pod{}))
}

func TestAddHostAliases(t *testing.T) {
	pod := read[corev1.Pod](t, "{spec: {hostAliases: [{ip: 1.2.3.4}], volumes: [{name: a}, {name: b, projected: {sources: [{secret: {name: generic-token-kubeconfig-1a2b}}]}}]}}")
	assert.True(t, hasTokenKubeconfig(pod))
	addHostAliases(pod, []string{"api.a", "api.b"}, "istio-ingress", []string{"10.0.0.1", "", "None", "3fff::2"})
	assert.Equal(t, map[string]string{"networking.resources.gardener.cloud/to-istio-ingress-istio-ingressgateway-internal-tcp-9443": "allowed"}, pod.Labels)
	assert.Equal(t, []corev1.HostAlias{{IP: "1.2.3.4"}, {IP: "10.0.0.1", Hostnames: []string{"api.a", "api.b"}}, {IP: "3fff::2", Hostnames: []string{"api.a", "api.b"}}}, pod.Spec.HostAliases)
	// 57 characters, and five of the SHA-256 digest of the name (as of sha256sum).
	assert.Equal(t, "networking.resources.gardener.cloud/to-istio-ingress--zone-eu-west-1a-istio-ingressgateway-in-ba6b3",
		networkPolicyLabel("istio-ingress--zone-eu-west-1a-istio-ingressgateway-internal", 9443))
	assert.Len(t, networkPolicyLabel("istio-ingress--zone-eu-west-1a-istio-ingressgateway-internal", 9443), len("networking.resources.gardener.cloud/")+63)

	assert.True(t, hasTokenKubeconfig(read[corev1.Pod](t, "{spec: {volumes: [{name: b, secret: {secretName: generic-token-kubeconfig}}]}}")))
	assert.False(t, hasTokenKubeconfig(read[corev1.Pod](t, "{spec: {volumes: [{name: b, secret: {secretName: own}}, {name: c, projected: {sources: [{secret: {name: own}}, {configMap: {name: generic-token-kubeconfig}}]}}]}}")))
}

func TestHintEndpoints(t *testing.T) {
	slice := read[discoveryv1.EndpointSlice](t, "{addressType: IPv4, endpoints: [{addresses: [1.1.1.1], zone: a}, {addresses: [1.1.1.2]}, {addresses: [1.1.1.3], zone: '', hints: {forZones: [{name: own}]}}, {addresses: [1.1.1.4], zone: b, hints: {forZones: [{name: own}]}}]}")
	require.NoError(t, hintEndpoints(t.Context(), nil, slice))
	assertEqualJSON(t, "{addressType: IPv4, endpoints: [{addresses: [1.1.1.1], zone: a, hints: {forZones: [{name: a}]}}, {addresses: [1.1.1.2]}, {addresses: [1.1.1.3], zone: '', hints: {forZones: [{name: own}]}}, {addresses: [1.1.1.4], zone: b, hints: {forZones: [{name: b}]}}]}", slice)
}

// TestUpdateInPlace checks that the patch keeps unknown fields of VerticalPodAutoscalers.
func TestUpdateInPlace(t *testing.T) {
	mutated := []any{map[string]any{"op": "add", "path": "/metadata/labels", "value": map[string]any{VPAInPlaceUpdatesMutated: "true"}}}
	for name, c := range map[string]struct {
		spec  string
		patch []any
	}{
		"no policy": {`{"targetRef":{}}`, append(mutated, map[string]any{"op": "add", "path": "/spec/updatePolicy", "value": map[string]any{"updateMode": "InPlaceOrRecreate"}})},
		"no mode":   {`{"updatePolicy":{"minReplicas":2}}`, append(mutated, map[string]any{"op": "add", "path": "/spec/updatePolicy/updateMode", "value": "InPlaceOrRecreate"})},
		"auto":      {`{"updatePolicy":{"updateMode":"Auto"}}`, append(mutated, map[string]any{"op": "replace", "path": "/spec/updatePolicy/updateMode", "value": "InPlaceOrRecreate"})},
		"recreate":  {`{"updatePolicy":{"updateMode":"Recreate"}}`, append(mutated, map[string]any{"op": "replace", "path": "/spec/updatePolicy/updateMode", "value": "InPlaceOrRecreate"})},
		"off":       {`{"updatePolicy":{"updateMode":"Off"}}`, nil},
		"initial":   {`{"updatePolicy":{"updateMode":"Initial"}}`, nil},
		"in place":  {`{"updatePolicy":{"updateMode":"InPlaceOrRecreate"}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			request := &admissionv1.AdmissionRequest{Kind: verticalPodAutoscalerKind, Operation: admissionv1.Update}
			request.Object.Raw = []byte(`{"metadata":{"name":"a"},"spec":` + c.spec + `,"status":{"own":1}}`)
			response, err := newMutating(verticalPodAutoscalerKind, setInPlaceUpdates)(t.Context(), request)
			require.NoError(t, err)
			assert.True(t, response.Allowed)
			raw, err := json.Marshal(response.Patches)
			require.NoError(t, err)
			var patch []any
			require.NoError(t, json.Unmarshal(raw, &patch))
			assert.ElementsMatch(t, c.patch, patch)
		})
	}
}

func TestInvalidSettings(t *testing.T) {
	require.NoError(t, Webhooks{}.Validate())
	require.NoError(t, allWebhooks().Validate())
	wrong := read[Webhooks](t, `
projectedTokenMount: {enabled: true, expirationSeconds: 60}
kubernetesServiceHost: {enabled: true}
highAvailabilityConfig: {enabled: true, defaultNotReadyTolerationSeconds: -1}
systemComponentsConfig:
  enabled: true
  podTolerations: [{operator: Exists}, {operator: Equal}, {key: a, operator: Exists, value: b}, {key: a, operator: Never}, {key: a, effect: Never}, {key: a, effect: NoSchedule, tolerationSeconds: 1}]`)
	err := wrong.Validate()
	for _, message := range []string{
		"webhooks.projectedTokenMount.expirationSeconds: 60: want 600", "webhooks.kubernetesServiceHost.host: missing",
		"webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds: -1", "podTolerations[1]: without a key", "podTolerations[2]: operator Exists",
		`podTolerations[3]: operator "Never"`, `podTolerations[4]: effect "Never"`, "podTolerations[5]: tolerationSeconds",
	} {
		assert.ErrorContains(t, err, message)
	}
	assert.NotContains(t, err.Error(), "podTolerations[0]")
	_, err = New(t.Context(), Options{Webhooks: *wrong})
	assert.ErrorContains(t, err, "webhooks.kubernetesServiceHost.host")
	_, err = New(t.Context(), Options{Webhooks: Webhooks{ProjectedTokenMount: ProjectedTokenMount{Enabled: true}}})
	assert.ErrorContains(t, err, "need a reader of the target cluster")
	_, err = New(t.Context(), Options{Webhooks: Webhooks{CRDDeletionProtection: Switch{Enabled: true}}})
	assert.ErrorContains(t, err, "needs a reader of the source cluster")
	completed := Webhooks{}.withDefaults()
	assert.Equal(t, "default-scheduler", completed.PodSchedulerName.SchedulerName)
	assert.Equal(t, int64(43200), *completed.ProjectedTokenMount.ExpirationSeconds)
}
