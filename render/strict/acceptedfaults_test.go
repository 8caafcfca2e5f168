// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func TestContainers(t *testing.T) {
	for name, tt := range map[string]struct{ container, want string }{
		"images":             {"{name: c, image: 'registry.example.org:5000/a/b:v1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}", ""},
		"a bare name":        {"{name: c, image: a}", ""},
		"a space in the tag": {"{name: c, image: 'a:v 1'}", `spec.template.spec.containers[0].image: "a:v 1" is not an image`},
		"upper case":         {"{name: c, image: registry.example.org/App}", `image: "registry.example.org/App" is not an image`},
		"no digest":          {"{name: c, image: 'a@sha256:abc'}", `image: "a@sha256:abc" is not an image`},
		"a URL":              {"{name: c, image: 'https://registry.example.org/a'}", "is not an image"},
		"flags":              {"{name: c, image: i, args: [--kube-api-qps=1, --kube-api-burst=2, --listen-ipv4=a, --listen-ipv6=b, --kube-api-qps=3]}", ""},
		"a flag misspelt":    {"{name: c, image: i, args: [--recommendation-margin=1, --recomendation-margin=2]}", `spec.template.spec.containers[0].args[1]: --recomendation-margin differs by one letter from --recommendation-margin, which the container also has`},
		"port of a probe":    {"{name: c, image: i, ports: [{name: metrics, containerPort: 1}], livenessProbe: {httpGet: {port: metrics}}, readinessProbe: {tcpSocket: {port: 1}}}", ""},
		"no such port":       {"{name: c, image: i, ports: [{name: metrics, containerPort: 1}], livenessProbe: {httpGet: {port: metric}}}", `spec.template.spec.containers[0].livenessProbe.httpGet.port: the container has no port named "metric"; did you mean "metrics"?`},
		"no port at all":     {"{name: c, image: i, startupProbe: {tcpSocket: {port: web}}}", `startupProbe.tcpSocket.port: the container has no port named "web"`},
		"port of a hook":     {"{name: c, image: i, ports: [{name: a, containerPort: 1}, {name: b, containerPort: 2}], lifecycle: {preStop: {httpGet: {port: web}}}}", `lifecycle.preStop.httpGet.port: the container has no port named "web"; it has a, b`},
	} {
		t.Run(name, func(t *testing.T) {
			object := deploymentWith(tt.container)
			got := checkText(t, kubernetesKind(t, object), object, 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}

func TestExpressions(t *testing.T) {
	const kindOfRules = "PrometheusRule"
	kind := openKind("monitoring.coreos.com", "v1", kindOfRules)
	for name, tt := range map[string]struct{ rule, want string }{
		"alert":           {"{alert: A, expr: up == 0}", ""},
		"recording":       {"{record: a:b, expr: 'sum(rate(a[5m])) by (b)'}", ""},
		"number":          {"{record: a:b, expr: 1}", ""},
		"template":        {"{alert: A, expr: up == 0, annotations: {summary: '{{ $labels.job }} {{ humanize $value }} {{ with query \"up\" }}{{ . | first | value }}{{ end }}'}}", ""},
		"open template":   {"{alert: A, expr: up == 0, annotations: {summary: '{{ $labels.job } down'}}", "spec.groups[0].rules[0].annotations[summary]: is not a Prometheus template, so Prometheus rejects all rules of the file: "},
		"no such value":   {"{alert: A, expr: up == 0, labels: {a: '{{ $label.job }}'}}", "undefined variable"},
		"bracket":         {"{alert: A, expr: 'sum(rate(a[5m])'}", "spec.groups[0].rules[0].expr: is not a Prometheus expression: "},
		"no function":     {"{alert: A, expr: summ(a)}", "unknown function"},
		"duration":        {"{alert: A, expr: 'rate(a[5 minutes])'}", "rules[0].expr: is not a Prometheus expression"},
		"nothing":         {"{alert: A, expr: ''}", "rules[0].expr: is not a Prometheus expression"},
		"both":            {"{alert: A, record: a, expr: up}", "spec.groups[0].rules[0]: must have one of alert and record"},
		"neither of them": {"{expr: up}", "must have one of alert and record"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, kind, "{apiVersion: monitoring.coreos.com/v1, kind: "+kindOfRules+", metadata: {name: a, namespace: b}, spec: {groups: [{name: a, rules: ["+tt.rule+"]}]}}", 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}

func TestPodSecurity(t *testing.T) {
	for level, want := range map[string]string{
		"privileged": "", "baseline": "", "restricted": "",
		"priviledged": `metadata.labels[pod-security.kubernetes.io/enforce]: "priviledged" is not a pod security level; the levels are privileged, baseline, restricted; did you mean "privileged"?`,
		"Baseline":    `did you mean "baseline"?`,
		"none":        `"none" is not a pod security level`,
	} {
		t.Run(level, func(t *testing.T) {
			object := "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {pod-security.kubernetes.io/enforce: " + level + "}}}"
			got := checkText(t, kubernetesKind(t, object), object, 36)
			if want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, want)
		})
	}
}

// openKind is a kind whose definition accepts anything.
func openKind(group, version, kind string) *Kind {
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
		}}},
	}}
	return DefinedKinds(crd)[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}]
}

func TestAcceptedFaultsOfCustomKinds(t *testing.T) {
	for name, tt := range map[string]struct{ group, kind, object, want string }{
		"mode":                      {"example.org", "A", "metadata: {name: a, namespace: b, annotations: {resources.gardener.cloud/mode: Ignore}}", ""},
		"no mode":                   {"example.org", "A", "metadata: {name: a, namespace: b, annotations: {resources.gardener.cloud/mode: Ignor}}", `metadata.annotations[resources.gardener.cloud/mode]: "Ignor" is not a mode; the only mode is "Ignore"`},
		"neither true nor false":    {"example.org", "A", "metadata: {name: a, namespace: b, annotations: {resources.gardener.cloud/keep-object: ture}}", `"ture" is neither true nor false`},
		"another annotation":        {"example.org", "A", "metadata: {name: a, namespace: b, annotations: {resources.gardener.cloud/origin: ture}}", ""},
		"propagation":               {"example.org", "A", "metadata: {name: a, namespace: b, annotations: {resources.gardener.cloud/deletion-propagation-on-invalid-update: orphan}}", `"orphan" is none of Foreground, Background, Orphan`},
		"duration":                  {"example.org", "A", "metadata: {name: a, namespace: b, annotations: {resources.gardener.cloud/finalize-deletion-after: '5'}}", `is not a duration such as 5m`},
		"replicas":                  {"example.org", "A", "metadata: {name: a, namespace: b}, spec: {replicas: -1}", "spec.replicas: -1 is below 0"},
		"schedules":                 {"druid.gardener.cloud", "Etcd", "metadata: {name: a, namespace: b}, spec: {replicas: 1, etcd: {defragmentationSchedule: '0 1 * * *'}, backup: {fullSnapshotSchedule: '@daily'}}", ""},
		"no such hour":              {"druid.gardener.cloud", "Etcd", "metadata: {name: a, namespace: b}, spec: {backup: {fullSnapshotSchedule: '0 25 * * *'}}", `spec.backup.fullSnapshotSchedule: the schedule "0 25 * * *"`},
		"four fields":               {"druid.gardener.cloud", "Etcd", "metadata: {name: a, namespace: b}, spec: {etcd: {defragmentationSchedule: '0 1 * *'}}", "has 4 fields"},
		"bounds":                    {"autoscaling.k8s.io", "VerticalPodAutoscaler", "metadata: {name: a, namespace: b}, spec: {resourcePolicy: {containerPolicies: [{containerName: a, minAllowed: {memory: 10Mi, cpu: 1}, maxAllowed: {memory: 1Gi}}]}}", ""},
		"least above most":          {"autoscaling.k8s.io", "VerticalPodAutoscaler", "metadata: {name: a, namespace: b}, spec: {resourcePolicy: {containerPolicies: [{containerName: a, minAllowed: {memory: 10Gi}, maxAllowed: {memory: 1Gi}}]}}", "containerPolicies[0].minAllowed[memory]: 10Gi is above maxAllowed, which is 1Gi"},
		"APIService":                {"apiregistration.k8s.io", "APIService", "metadata: {name: v1.example.org, namespace: b}, spec: {group: example.org, version: v1, caBundle: YQ==}", ""},
		"another name":              {"apiregistration.k8s.io", "APIService", "metadata: {name: v1.example.com, namespace: b}, spec: {group: example.org, version: v1}", `metadata.name: must be spec.version and spec.group: "v1.example.org"`},
		"certificate for no reason": {"apiregistration.k8s.io", "APIService", "metadata: {name: v1.example.org, namespace: b}, spec: {group: example.org, version: v1, caBundle: YQ==, insecureSkipTLSVerify: true}", "cannot be set beside spec.caBundle"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, openKind(tt.group, "v1", tt.kind), "{apiVersion: "+tt.group+"/v1, kind: "+tt.kind+", "+tt.object+"}", 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}

// TestFeatureGatesOfPrograms: an unknown gate prevents the start of a Kubernetes program.
func TestFeatureGatesOfPrograms(t *testing.T) {
	for name, tt := range map[string]struct{ container, want string }{
		"known":              {"name: kube-apiserver, args: ['--feature-gates=InPlacePodVerticalScaling=true,AllAlpha=false']", ""},
		"unknown":            {"name: kube-apiserver, args: [a, '--feature-gates=NoSuchGate=true']", `spec.containers[0].args[1]: Kubernetes has no feature gate "NoSuchGate"; the program would not start`},
		"misspelt":           {"name: kube-scheduler, command: [a, '--feature-gates=InPlacePodVerticalScalling=true']", `did you mean "InPlacePodVerticalScaling"?; the program would not start`},
		"the second one":     {"name: kube-controller-manager, args: ['--feature-gates=InPlacePodVerticalScaling=true,Nope=true']", `no feature gate "Nope"`},
		"no value":           {"name: kube-proxy, args: ['--feature-gates=InPlacePodVerticalScaling']", "the feature gate InPlacePodVerticalScaling must be true or false, as in InPlacePodVerticalScaling=true"},
		"of another program": {"name: manager, args: ['--feature-gates=NoSuchGate=true']", ""},
		"none":               {"name: kube-apiserver, args: ['--feature-gates=']", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := podHead + "{containers: [{image: i, " + tt.container + "}]}}"
			got := checkText(t, kubernetesKind(t, object), object, 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}
