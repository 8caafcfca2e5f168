// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// checkText checks an object for a minor release and returns the findings as "path: message" lines.
func checkText(t *testing.T, kind *Kind, text string, minor int) string {
	t.Helper()
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	return findingLines(kind.Check(object, minor))
}

func findingLines(found []structure.Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, f.Path.String()+": "+f.Message)
	}
	return strings.Join(out, "\n")
}

func kubernetesKind(t *testing.T, text string) *Kind {
	t.Helper()
	var object struct{ APIVersion, Kind string }
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	kind := Kubernetes(schema.FromAPIVersionAndKind(object.APIVersion, object.Kind))
	require.NotNil(t, kind)
	return kind
}

const podHead = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: "

func TestKubernetesKinds(t *testing.T) {
	for name, tt := range map[string]struct{ object, want string }{
		"right":              {podHead + "{containers: [{name: c, image: i, ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]}]}}", ""},
		"unknown field":      {podHead + "{containrs: []}}", `spec.containrs: the field "containrs" does not exist; did you mean "containers"?`},
		"at the top":         {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, datta: {}}", `datta: the field "datta" does not exist; did you mean "data"?`},
		"in the metadata":    {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, lables: {}}}", `metadata.lables: the field "lables" does not exist; did you mean "labels"?`},
		"text for a number":  {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: two}}", `spec.replicas: must be a whole number, but is the text "two"`},
		"number for text":    {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {size: 1}}", "data[size]: must be text, but is the number 1; put it in quotes"},
		"null for text":      {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {size: null}}", "data[size]: must be text, but is null"},
		"label":              {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: true}}}", "metadata.labels[a]: must be text, but is true; put it in quotes"},
		"form of a label":    {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {a: b c}}}", `metadata.labels: "b c": a valid label must be`},
		"quantity":           {podHead + "{containers: [{name: c, resources: {limits: {memory: 10 apples}}}]}}", `spec.containers[0].resources.limits[memory]: "10 apples" is not a quantity such as 500m, 2 or 10Gi`},
		"too large":          {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3000000000}}", "spec.replicas: 3e+09 is too large"},
		"list for an object": {podHead + "{securityContext: []}}", "spec.securityContext: must be an object, but is a list"},
		"object for a list":  {podHead + "{containers: {name: c}}}", "spec.containers: must be a list, but is an object"},
		"port or name":       {podHead + "{containers: [{name: c, livenessProbe: {httpGet: {port: true}}}]}}", "spec.containers[0].livenessProbe.httpGet.port: must be a whole number or text, but is true"},
		"value of a set":     {podHead + "{containers: [{name: c, imagePullPolicy: Alway}]}}", `spec.containers[0].imagePullPolicy: "Alway" is not supported; use "Always", "IfNotPresent" or "Never"; did you mean "Always"?`},
		"two of a name":      {podHead + "{containers: [{name: c, env: [{name: a}, {name: a}]}]}}", "spec.containers[0].env[1].name: is already used by spec.containers[0].env[0]"},
		"two containers":     {podHead + "{containers: [{name: c}, {name: c}]}}", "spec.containers[1].name: is already used by spec.containers[0]"},
		"two ports":          {podHead + "{containers: [{name: c, ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]}]}}", "spec.containers[0].ports[1]: is already used by spec.containers[0].ports[0]"},
		"duration":           {"{apiVersion: v1, kind: Event, metadata: {name: a}, eventTime: today}", `eventTime: "today" is not a time such as`},
		"no base64":          {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, binaryData: {a: '%'}}", "binaryData[a]: the value (not shown) is not base64"},
		"secret value":       {"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {p: 4711}}", "stringData[p]: must be text, but is a number"},
		"schema":             {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {a: {items: {tipe: x}}}}}}]}}", `spec.versions[0].schema.openAPIV3Schema.properties[a].items.tipe: the field "tipe" does not exist; did you mean "type"?`},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, kubernetesKind(t, tt.object), tt.object, 36)
			assert.NotContains(t, got, "4711")
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
			assert.NotContains(t, got, "\n", "one mistake is one finding")
		})
	}
}

func TestReleases(t *testing.T) {
	const (
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, "
		end        = "}]}}}"
	)
	for name, tt := range map[string]struct {
		object string
		minor  int
		want   string
	}{
		"not yet":              {deployment + "restartPolicyRules: []" + end + "}", 33, `spec.template.spec.containers[0].restartPolicyRules: the field "restartPolicyRules" needs Kubernetes 1.34, but the cluster has Kubernetes 1.33`},
		"now":                  {deployment + "restartPolicyRules: []" + end + "}", 34, ""},
		"after that":           {deployment + "restartPolicyRules: []" + end + "}", 37, ""},
		"deep":                 {deployment + "lifecycle: {stopSignal: SIGTERM}" + end + "}", 32, `containers[0].lifecycle.stopSignal: the field "stopSignal" needs Kubernetes 1.33`},
		"of a source":          {deployment + "env: [{name: e, valueFrom: {fileKeyRef: {key: a}}}]" + end + "}", 33, `env[0].valueFrom.fileKeyRef: the field "fileKeyRef" needs Kubernetes 1.34`},
		"newest":               {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: [{name: v, emptyDir: {mode: 7}}]}}", 36, `volumes[0].emptyDir.mode: the field "mode" needs Kubernetes 1.37`},
		"a kind not yet":       {"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a}}", 33, "apiVersion: ResourceClaim of resource.k8s.io/v1 needs Kubernetes 1.34"},
		"a kind no more":       {"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}}", 34, "apiVersion: PodDisruptionBudget of policy/v1beta1 was removed in Kubernetes 1.25"},
		"a status is ours not": {deployment + end + ", status: {terminatingReplicas: 1}}", 32, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, kubernetesKind(t, tt.object), tt.object, tt.minor)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}

// TestTableIsCurrent: the table is generated from the k8s.io/api in go.mod, and contains only its
// types and fields.
func TestTableIsCurrent(t *testing.T) {
	module, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`\n\tk8s\.io/api (\S+)`).FindStringSubmatch(string(module))
	require.NotNil(t, version)
	head, _, _ := strings.Cut(tableText, "\n")
	assert.Contains(t, head, "from k8s.io/api "+version[1]+":", "run make generate")
	types := map[string]map[string]bool{}
	for of := range goKinds() {
		collectTypes(of, types)
	}
	for place := range kubernetesTable().since {
		name, field, _ := strings.Cut(place, "\t")
		if fields := types[name]; assert.NotNil(t, fields, "no type %s: run make generate", name) && field != "" {
			assert.True(t, fields[field], "no field %s of %s: run make generate", field, name)
		}
	}
}

// goKinds returns the Go types of all kinds.
func goKinds() map[reflect.Type]bool {
	out := map[reflect.Type]bool{}
	for _, gvk := range KubernetesKinds() {
		out[Kubernetes(gvk).goType] = true
	}
	return out
}

func collectTypes(t reflect.Type, into map[string]map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || into[nameOf(t)] != nil {
		return
	}
	fields := map[string]bool{}
	into[nameOf(t)] = fields
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = true
		collectTypes(f.Type, into)
	}
}

func TestDefinedKinds(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal([]byte(`
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: "self.mode != 'b' || self.size > 1", message: b is for more than one}
            - {rule: "self.size >= oldSelf.size", message: it never gets smaller}
            properties:
              size: {type: integer, minimum: 1}
              mode: {type: string, enum: [a, b], default: a}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              labels: {type: object, additionalProperties: {type: string}}
              parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}}}}
              one:
                type: object
                properties: {a: {type: string}, b: {type: string}}
                oneOf: [{required: [a]}, {required: [b]}]
`), &crd))
	kinds := DefinedKinds(&crd)
	kind := kinds[schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}]
	require.NotNil(t, kind)
	for name, tt := range map[string]struct{ spec, want string }{
		"right":         {"{size: 1, mode: a, free: {x: {y: 1}}, labels: {a: b}, parts: [{name: a}, {name: b}], one: {a: x}}", ""},
		"unknown":       {"{size: 1, mod: a}", `spec.mod: the field "mod" does not exist; did you mean "mode"?`},
		"missing":       {"{mode: a}", "spec.size: must be set"},
		"type":          {"{size: one}", `spec.size: must be a whole number, but is the text "one"`},
		"range":         {"{size: 0}", "spec.size: 0 is too small: must be at least 1"},
		"enumeration":   {"{size: 1, mode: c}", `spec.mode: "c" is not supported; use "a" or "b"`},
		"value in map":  {"{size: 1, labels: {a: 1}}", "spec.labels[a]: must be text, but is the number 1"},
		"two of a key":  {"{size: 1, parts: [{name: a}, {name: a}]}", "spec.parts[1].name: is already used by spec.parts[0]"},
		"rule":          {"{size: 1, mode: b}", "spec: b is for more than one"},
		"rule holds":    {"{size: 2, mode: b}", ""},
		"rule, default": {"{size: 1}", ""},
		"by the server": {"{size: 1, one: {a: x, b: z}}", "spec.one: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, kind, "{apiVersion: example.org/v1, kind: Thing, metadata: {name: a, namespace: b}, spec: "+tt.spec+"}", 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}

func TestUnknownKinds(t *testing.T) {
	known := append(KubernetesKinds(), schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"})
	for name, want := range map[string]string{
		"apps/v1/Deployment":                   "",
		"apps/v1/Deploymnt":                    "there is no kind Deploymnt of apps/v1; did you mean Deployment?",
		"v1/Deployment":                        "there is no kind Deployment of v1",
		"apps/v1/DaemonSets":                   "there is no kind DaemonSets of apps/v1; did you mean DaemonSet?",
		"app/v1/Deployment":                    `there is no API "app"; did you mean apps?`,
		"apps/v3/Thing":                        `there is no version v3 of the API "apps"`,
		"policy/v2/PodDisruptionBudget":        "there is no kind PodDisruptionBudget of policy/v2; it is of policy/v1",
		"autoscaling.k8s.io/v1/VerticalPod":    "",
		"cert-manager.io/v1/Certificate":       "",
		"snapshot.storage.k8s.io/v1/VolumeAny": "",
	} {
		i := strings.LastIndexByte(name, '/')
		got := UnknownKind(schema.FromAPIVersionAndKind(name[:i], name[i+1:]), known)
		if want == "" {
			assert.Empty(t, got, name)
		} else {
			assert.Contains(t, got, want, name)
		}
	}
}

func TestSimilarAPIs(t *testing.T) {
	known := append(KubernetesKinds(),
		schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
		schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: "DNSRecord"},
	)
	for name, want := range map[string]string{
		"monitoring.coreos.com/v1/Prometheus":          "",
		"cert-manager.io/v1/Certificate":               "",
		"networking.istio.io/v1/Gateway":               "",
		"gateway.networking.k8s.io/v1/NetworkPolicy":   "",
		"monitoring.rhobs/v1/ServiceMonitor":           "",
		"monitoring.coreos.co/v1/ServiceMonitor":       `no rendered object defines the API "monitoring.coreos.co"; did you mean "monitoring.coreos.com"?`,
		"monitoring.coreos.co/v1/Prometheus":           `did you mean "monitoring.coreos.com"?`,
		"monitorring.core-os.com/v1/ServiceMonitor":    `did you mean "monitoring.coreos.com"?`,
		"extension.gardener.clod/v1alpha1/DNSRecord":   `did you mean "extensions.gardener.cloud"?`,
		"networking.k8s.oi/v1/Ingress":                 `did you mean "networking.k8s.io"?`,
		"rbac.authorisation.k8s.io/v1/Role":            `did you mean "rbac.authorization.k8s.io"?`,
		"Extensions.gardener.cloud/v1alpha1/DNSRecord": `did you mean "extensions.gardener.cloud"?`,
	} {
		i := strings.LastIndexByte(name, '/')
		got := SimilarAPI(schema.FromAPIVersionAndKind(name[:i], name[i+1:]), known)
		if want == "" {
			assert.Empty(t, got, name)
		} else {
			assert.Contains(t, got, want, name)
		}
	}
}
