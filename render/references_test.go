// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const hashedMark = `annotations: "render.pergola.dev/hashed-name": "true"`

// TestHashedNamesMatchUpstream compares with upstream's names for the same content.
func TestHashedNamesMatchUpstream(t *testing.T) {
	tests := map[string]struct {
		kind, data, want string
	}{
		"kube-scheduler-config": {"ConfigMap", `data: "config.yaml": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection:\n  kubeconfig: /var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig\nleaderElection:\n  leaderElect: true"`,
			"kube-scheduler-config-805aeb6f"},
		"kube-apiserver-admission-kubeconfigs": {"Secret", "data: {}", "kube-apiserver-admission-kubeconfigs-e3b0c442"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			res, err := renderSmall(t, map[string]string{"garden/app/component.cue": component("cue: [{apiVersion: \"v1\", kind: \""+test.kind+"\", metadata: {name: \""+name+"\", namespace: \"garden\", "+hashedMark+"}, "+test.data+"}]", "")})
			require.NoError(t, err)
			o := objectOf(t, res.Bundles, test.kind, test.want)
			assert.Equal(t, true, o.Object["immutable"])
			assert.Equal(t, map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"}, o.GetLabels())
			assert.Empty(t, o.GetAnnotations(), "the mark is taken off")
		})
	}
}

func TestDataHash(t *testing.T) {
	hash := func(content map[string]any) string {
		h, err := dataHash(&unstructured.Unstructured{Object: content})
		require.NoError(t, err)
		return h
	}
	plain := hash(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": "x", "b": "y"}})
	assert.Equal(t, plain, hash(map[string]any{"kind": "Secret", "data": map[string]any{"a": "eA==", "b": "eQ=="}}), "the content counts, not its encoding")
	assert.Equal(t, plain, hash(map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "x"}, "binaryData": map[string]any{"b": "eQ=="}}))
	assert.NotEqual(t, plain, hash(map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "x", "b": "z"}}))
	for _, broken := range []map[string]any{
		{"kind": "Secret", "data": map[string]any{"a": "%"}},
		{"kind": "ConfigMap", "data": map[string]any{"a": int64(1)}},
	} {
		_, err := dataHash(&unstructured.Unstructured{Object: broken})
		assert.ErrorContains(t, err, "data[a] is n")
	}
}

// TestHashedNamesAreFollowed: a workload in another bundle of the component gets the new name,
// wherever a pod may name a ConfigMap or Secret. Objects of the same name in another namespace are
// unaffected.
func TestHashedNamesAreFollowed(t *testing.T) {
	res, err := renderSmall(t, map[string]string{"garden/app/component.cue": `package component

component: bundles: {
	config: {cluster: "runtime", direct: true, source: cue: [
		{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "c", namespace: "garden", ` + hashedMark + `}, data: a: "1"},
		{apiVersion: "v1", kind: "Secret", metadata: {name: "s", namespace: "garden", ` + hashedMark + `}, stringData: a: "1"},
	]}
	work: {cluster: "runtime", direct: true, source: cue: [
		for kind, ns in {Deployment: "garden", CronJob: "garden", StatefulSet: "other"} {
			"kind": kind
			metadata: {name: "w", namespace: ns, annotations: "render.pergola.dev/reference-annotations": "true"}
			if kind == "CronJob" {
				apiVersion: "batch/v1"
				spec: {schedule: "0 0 * * *", jobTemplate: spec: template: _pod & {spec: restartPolicy: "Never"}}
			}
			if kind != "CronJob" {
				apiVersion: "apps/v1"
				spec: {selector: matchLabels: a: "b", template: _pod & {metadata: labels: a: "b"}}
			}
		},
	]}
}
_pod: spec: {
	imagePullSecrets: [{name: "s"}]
	initContainers: [{name: "i", image: "i", envFrom: [{configMapRef: name: "c"}, {secretRef: name: "s"}]}]
	containers: [{name: "m", image: "i", env: [
		{name: "A", valueFrom: configMapKeyRef: {name: "c", key: "a"}},
		{name: "B", valueFrom: secretKeyRef: {name: "s", key: "a"}},
		{name: "C", value: "c"},
	]}]
	volumes: [
		{name: "c", configMap: name: "c"},
		{name: "s", secret: secretName: "s"},
		{name: "p", projected: sources: [{configMap: name: "c"}, {secret: name: "s"}, {secret: name: "elsewhere"}, {serviceAccountToken: path: "t"}]},
		{name: "e", emptyDir: {}},
	]
}
`})
	require.NoError(t, err)
	const configMap, secret = "c-e0bc614e", "s-e0bc614e"
	objectOf(t, res.Bundles, "ConfigMap", configMap)
	objectOf(t, res.Bundles, "Secret", secret)

	for _, kind := range []string{"Deployment", "CronJob", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			o := objectOf(t, res.Bundles, kind, "w")
			want := map[string]bool{"ConfigMap/" + configMap: true, "Secret/" + secret: true, "Secret/elsewhere": true}
			if kind == "StatefulSet" {
				want = map[string]bool{"ConfigMap/c": true, "Secret/s": true, "Secret/elsewhere": true}
			}
			got, count := map[string]bool{}, 0
			eachReference(o.Unstructured, func(kind, name string) string {
				got[kind+"/"+name] = true
				count++
				return name
			})
			assert.Equal(t, want, got)
			assert.Equal(t, 10, count)

			annotations := map[string]string{}
			for reference := range want {
				kind, name, _ := splitReference(reference)
				key, value := ReferenceAnnotation(kind, name)
				annotations[key] = value
			}
			assert.Equal(t, annotations, o.GetAnnotations())
			template := podTemplates(o.Unstructured)[0]
			inPods, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations")
			assert.Equal(t, annotations, inPods, "a new name rolls the pods")
		})
	}
}

// TestReferencesOfAKind: a workload may request the references to only one kind.
func TestReferencesOfAKind(t *testing.T) {
	res, err := renderSmall(t, map[string]string{"garden/app/component.cue": `package component

import "strings"

component: bundles: work: {cluster: "runtime", direct: true, source: cue: [
	for value in ["true", "ConfigMap", "Secret", "false"] {
		apiVersion: "apps/v1"
		kind:       "Deployment"
		metadata: {name: strings.ToLower(value), namespace: "garden", annotations: "render.pergola.dev/reference-annotations": value}
		spec: {selector: matchLabels: a: "b", template: metadata: labels: a: "b"}
		spec: template: spec: containers: [{name: "m", image: "i"}]
		spec: template: spec: volumes: [{name: "c", configMap: name: "c"}, {name: "s", secret: secretName: "s"}]
	},
]}
`})
	require.NoError(t, err)
	for value, kinds := range map[string][]string{"true": {"ConfigMap", "Secret"}, "ConfigMap": {"ConfigMap"}, "Secret": {"Secret"}, "false": nil} {
		want := map[string]string{}
		for _, kind := range kinds {
			key, name := ReferenceAnnotation(kind, map[string]string{"ConfigMap": "c", "Secret": "s"}[kind])
			want[key] = name
		}
		o := objectOf(t, res.Bundles, "Deployment", strings.ToLower(value))
		inPods, _, _ := unstructured.NestedStringMap(podTemplates(o.Unstructured)[0], "metadata", "annotations")
		if kinds == nil {
			want = nil
		}
		assert.Equal(t, want, o.GetAnnotations(), value)
		assert.Equal(t, want, inPods, value)
	}
}

func splitReference(reference string) (kind, name string, ok bool) {
	for i := range reference {
		if reference[i] == '/' {
			return reference[:i], reference[i+1:], true
		}
	}
	return reference, "", false
}

// TestHashedNamesAreFollowedIntoPrometheus: the spec of a Prometheus has the volumes of its pods.
func TestHashedNamesAreFollowedIntoPrometheus(t *testing.T) {
	res, err := renderSmall(t, map[string]string{"garden/app/component.cue": component(`cue: [
		{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "c", namespace: "garden", `+hashedMark+`}, data: a: "x"},
		{apiVersion: "monitoring.coreos.com/v1", kind: "Prometheus", metadata: {name: "p", namespace: "garden", annotations: "render.pergola.dev/reference-annotations": "true"}, spec: volumes: [{name: "c", configMap: name: "c"}]},
		{apiVersion: "monitoring.coreos.com/v1", kind: "Probe", metadata: {name: "other", namespace: "garden"}, spec: volumes: [{name: "c", configMap: name: "c"}]},
	]`, "")})
	require.NoError(t, err)
	used := func(kind, name string) any {
		volumes, _, _ := unstructured.NestedSlice(objectOf(t, res.Bundles, kind, name).Object, "spec", "volumes")
		return volumes[0].(map[string]any)["configMap"].(map[string]any)["name"]
	}
	hashed := used("Prometheus", "p").(string)
	assert.Regexp(t, "^c-[0-9a-f]{8}$", hashed)
	objectOf(t, res.Bundles, "ConfigMap", hashed)
	key, value := ReferenceAnnotation("ConfigMap", hashed)
	assert.Equal(t, map[string]string{key: value}, objectOf(t, res.Bundles, "Prometheus", "p").GetAnnotations())
	assert.Equal(t, "c", used("Probe", "other"), "other kinds have fields of other meaning")
}

// TestReferenceAnnotationMatchesUpstream compares with upstream's keys.
func TestReferenceAnnotationMatchesUpstream(t *testing.T) {
	for _, test := range [][3]string{
		{"ConfigMap", "kube-scheduler-config-805aeb6f", "reference.resources.gardener.cloud/configmap-b1943279"},
		{"Secret", "shoot-access-kube-scheduler", "reference.resources.gardener.cloud/secret-0730f50c"},
		{"Secret", "generic-token-kubeconfig-20af822d", "reference.resources.gardener.cloud/secret-2bf787e0"},
	} {
		key, value := ReferenceAnnotation(test[0], test[1])
		assert.Equal(t, test[2], key)
		assert.Equal(t, test[1], value)
	}
}

func TestOnlyConfigMapsAndSecretsGetHashedNames(t *testing.T) {
	_, err := renderSmall(t, map[string]string{"garden/app/component.cue": component("cue: [{apiVersion: \"v1\", kind: \"Service\", metadata: {name: \"a\", "+hashedMark+"}}]", "")})
	require.ErrorContains(t, err, "Service a at components/garden/app/component.cue:4: only ConfigMaps and Secrets get a hashed name")
}
