package schemas

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// good gives the object of a kind in the demonstration landscape, which holds all rules.
func good(t testing.TB, kind string) *unstructured.Unstructured {
	t.Helper()
	if kind == "Secret" || kind == "ConfigMap" {
		return object(t, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: a, namespace: garden}\ndata: {a: aGk=}")
	}
	file := map[string]string{
		"Garden": "garden/garden.yaml", "CloudProfile": "gardenconfig/cloudprofile.yaml", "Seed": "seeds/local.yaml",
		"Project": "projects/local/project.yaml", "Shoot": "projects/local/shoot.yaml", "Landscape": "landscape.yaml",
	}[kind]
	data, err := os.ReadFile(filepath.Join("..", "landscapes", "local", filepath.FromSlash(file)))
	require.NoError(t, err)
	for _, object := range documents(t, data) {
		if object.GetKind() == kind {
			return object
		}
	}
	require.Fail(t, "no object of kind "+kind)
	return nil
}

// changed lays YAML over an object: maps are merged, lists replaced, null deletes.
func changed(t testing.TB, object *unstructured.Unstructured, over string) *unstructured.Unstructured {
	t.Helper()
	var patch map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(over), &patch))
	result := object.DeepCopy()
	lay(result.Object, patch)
	return result
}

func lay(base, over map[string]any) {
	for name, value := range over {
		before, wasMap := base[name].(map[string]any)
		after, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(base, name)
		case wasMap && isMap:
			lay(before, after)
		default:
			base[name] = value
		}
	}
}

const pool = `name: a, machine: {type: local, image: {name: local, version: 1.0.0}}`

// TestRules breaks one rule after the other in an object that holds them all.
func TestRules(t *testing.T) {
	tests := []struct {
		rule, kind, over string
		old              string // changes to the object before the update; "-" for a new object
		want             []string
	}{
		{rule: "any/one-shot-operation", kind: "Shoot", over: `metadata: {annotations: {gardener.cloud/operation: reconcile}}`, want: []string{"metadata.annotations[gardener.cloud/operation] Forbidden"}},
		{rule: "any/deletion-confirmation", kind: "Seed", over: `metadata: {annotations: {confirmation.gardener.cloud/deletion: "1"}}`, want: []string{"metadata.annotations[confirmation.gardener.cloud/deletion] Invalid"}},
		{rule: "garden/ingress-domains-required", kind: "Garden", over: `spec: {runtimeCluster: {ingress: {domains: null}}}`, want: []string{"spec.runtimeCluster.ingress.domains Required"}},
		{rule: "garden/domain-provider", kind: "Garden", over: `spec: {runtimeCluster: {ingress: {domains: [{name: a.b}, {name: c.d, provider: other}]}}, virtualCluster: {gardener: {gardenerDashboard: {domain: {name: d.e, provider: third}}}}}`, want: []string{
			"spec.runtimeCluster.ingress.domains[0].provider Required", "spec.runtimeCluster.ingress.domains[1].provider Invalid", "spec.virtualCluster.gardener.gardenerDashboard.domain.provider Invalid"}},
		{rule: "garden/dns-providers-unique", kind: "Garden", over: `spec: {dns: {providers: [{name: primary, type: a, secretRef: {name: x}}, {name: primary, type: b, secretRef: {name: y}}]}}`, want: []string{"spec.dns.providers[1].name Duplicate"}},
		{rule: "garden/domains-unique", kind: "Garden", over: `spec: {virtualCluster: {dns: {domains: [{name: a.b, provider: primary}, {name: c.d, provider: primary}, {name: a.b, provider: primary}]}}}`, want: []string{"spec.virtualCluster.dns.domains[2].name Duplicate"}},
		{rule: "garden/audit-webhook-policy", kind: "Garden", over: `spec: {virtualCluster: {kubernetes: {kubeAPIServer: {auditWebhook: {kubeconfigSecretName: a}}}, gardener: {gardenerAPIServer: {auditWebhook: {kubeconfigSecretName: a}}}}}`, want: []string{
			"spec.virtualCluster.gardener.gardenerAPIServer.auditWebhook Required", "spec.virtualCluster.kubernetes.kubeAPIServer.auditWebhook Required"}},
		{rule: "garden/topology-aware-routing", kind: "Garden", over: `spec: {runtimeCluster: {settings: {topologyAwareRouting: {enabled: true}}}}`, want: []string{"spec.runtimeCluster.settings.topologyAwareRouting.enabled Forbidden"}},
		{rule: "garden/cluster-identity-immutable", kind: "Garden", old: `spec: {virtualCluster: {gardener: {clusterIdentity: before}}}`, want: []string{"spec.virtualCluster.gardener.clusterIdentity Invalid"}},
		{rule: "garden/networks-disjoint", kind: "Garden", over: `spec: {runtimeCluster: {networking: {nodes: [10.1.5.0/24], pods: [10.1.0.0/16, "x"]}}, virtualCluster: {networking: {services: [10.0.0.0/8]}}}`, want: []string{
			"spec.runtimeCluster.networking.nodes[0] Invalid", "spec.virtualCluster.networking.services[0] Invalid"}},
		{rule: "seed/zones-unique", kind: "Seed", over: `spec: {provider: {zones: [a, b, a]}}`, want: []string{"spec.provider.zones[2] Duplicate"}},
		{rule: "seed/topology-aware-routing", kind: "Seed", over: `spec: {settings: {topologyAwareRouting: {enabled: true}}}`, want: []string{"spec.settings.topologyAwareRouting.enabled Forbidden"}},
		{rule: "seed/taints-unique", kind: "Seed", over: `spec: {taints: [{key: a}, {key: a, value: b}, {key: a}]}`, want: []string{"spec.taints[2] Duplicate"}},
		{rule: "seed/networks-disjoint", kind: "Seed", over: `spec: {networks: {services: 10.3.4.0/24, nodes: 10.0.0.0/8}}`, want: []string{"spec.networks.nodes Invalid", "spec.networks.services Invalid"}},
		{rule: "shoot/worker-names-unique", kind: "Shoot", over: `spec: {provider: {workers: [{` + pool + `, minimum: 1, maximum: 1}, {` + pool + `, minimum: 1, maximum: 1}]}}`, want: []string{"spec.provider.workers[1].name Duplicate"}},
		{rule: "shoot/worker-minimum-maximum", kind: "Shoot", over: `spec: {provider: {workers: [{` + pool + `, minimum: 2, maximum: 1}]}}`, want: []string{"spec.provider.workers[0].maximum Forbidden"}},
		{rule: "shoot/worker-surge", kind: "Shoot", over: `spec: {provider: {workers: [{` + pool + `, minimum: 1, maximum: 1, maxSurge: 0, maxUnavailable: 0%}]}}`, want: []string{"spec.provider.workers[0].maxUnavailable Invalid"}},
		{rule: "shoot/worker-machine-image", kind: "Shoot", over: `spec: {cloudProfile: {name: other}, provider: {workers: [{name: a, machine: {type: b}, minimum: 1, maximum: 1}, {name: b, machine: {type: b, image: {name: c}}, minimum: 1, maximum: 1}]}}`, want: []string{
			"spec.provider.workers[0].machine.image Required", "spec.provider.workers[1].machine.image.version Required"}},
		{rule: "shoot/workerless-fields", kind: "Shoot", over: `spec: {provider: {workers: null}}`, want: []string{
			"spec.maintenance.autoUpdate.machineImageVersion Forbidden", "spec.networking.nodes Forbidden", "spec.networking.pods Forbidden", "spec.networking.type Forbidden"}},
		{rule: "shoot/networking-type-required", kind: "Shoot", over: `spec: {networking: {type: null}}`, want: []string{"spec.networking.type Required"}},
		{rule: "shoot/extension-types", kind: "Shoot", over: `spec: {provider: {type: <type>}, networking: {type: Calico}}`, want: []string{"spec.networking.type Invalid", "spec.provider.type Invalid"}},
		{rule: "shoot/kubernetes-version-required", kind: "Shoot", over: `spec: {cloudProfile: {name: other}, kubernetes: {version: ""}}`, want: []string{"spec.kubernetes.version Required"}},
		{rule: "shoot/cloud-profile-required", kind: "Shoot", over: `spec: {cloudProfile: null}`, want: []string{"spec.cloudProfile.name Required"}},
		{rule: "shoot/networks-disjoint", kind: "Shoot", over: `spec: {networking: {services: 100.96.0.0/13}}`, want: []string{"spec.networking.services Invalid"}},
		{rule: "project/namespace-prefix", kind: "Project", over: `spec: {namespace: kube-system}`, want: []string{"spec.namespace Invalid"}},
		{rule: "cloudprofile/duplicates", kind: "CloudProfile", over: `spec: {kubernetes: {versions: [{version: 1.34.1}, {version: 1.34.1}]}, machineImages: [{name: a, versions: [{version: 1.0.0, cri: [{name: containerd}]}, {version: 1.0.0, cri: [{name: containerd}]}]}], regions: [{name: a}, {name: a}]}`, want: []string{
			"spec.kubernetes.versions[1].version Duplicate", "spec.machineImages[0].versions[1].version Duplicate", "spec.regions[1].name Duplicate"}},
		{rule: "landscape/cluster-access", kind: "Landscape", over: `spec: {clusters: {runtime: {kubeconfig: a, secretRef: {name: b}}, seeds: {x: {kubeconfig: a, secretRef: {name: b}}}}}`, want: []string{
			"spec.clusters.runtime.kubeconfig Forbidden", "spec.clusters.seeds[x].kubeconfig Forbidden"}},
		{rule: "any/metadata", kind: "Shoot", over: `metadata: {name: Local_1, namespace: a.b, labels: {a b: x, c: "x y"}, annotations: {a/b/c: x}, finalizers: ["x y"]}`, want: []string{
			"metadata.annotations[a/b/c] Invalid", "metadata.finalizers[0] Invalid", "metadata.labels[a b] Invalid", "metadata.labels[c] Invalid", "metadata.name Invalid", "metadata.namespace Invalid"}},
		{rule: "secret/data", kind: "Secret", over: `{type: kubernetes.io/tls, data: {a b: "", tls.crt: ""}, stringData: {..: x}}`, want: []string{"data[a b] Invalid", "data[tls.key] Required", "stringData[..] Invalid"}},
		{rule: "configmap/data", kind: "ConfigMap", over: `{data: {a b: "", c: x}, binaryData: {c: ""}}`, want: []string{"binaryData[c] Duplicate", "data[a b] Invalid"}},
		{rule: "landscape/component-owners", kind: "Landscape", over: `spec: {components: {shot: {etcd: {enabled: false}}}}`, want: []string{"spec.components[shot] NotSupported"}},
	}
	around := &Surroundings{Objects: []*unstructured.Unstructured{good(t, "CloudProfile"), good(t, "Seed"), good(t, "Project"), good(t, "Garden")}}
	tested := map[string]bool{}
	for i, test := range tests {
		t.Run(fmt.Sprintf("%02d %s", i, test.rule), func(t *testing.T) {
			tested[test.rule] = true
			in := Input{Object: changed(t, good(t, test.kind), test.over)}
			if test.old != "" {
				in.Old = changed(t, good(t, test.kind), test.old)
			}
			violations, err := Validate(t.Context(), []Input{in}, Options{Landscape: around})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				if v.Rule == test.rule {
					found = append(found, v.Field+" "+string(v.Type))
				}
			}
			slices.Sort(found)
			assert.Equal(t, test.want, found, "%v", lines(violations))
		})
	}
	rules, err := Rules()
	require.NoError(t, err)
	for _, rule := range rules {
		if rule.ID != RuleStructure && rule.ID != ruleEmptyValue && rule.ID != ruleDeletionConfirm {
			assert.True(t, tested[rule.ID], "the rule %s has no test", rule.ID)
		}
		assert.NotEmpty(t, rule.Title+rule.Doc+rule.Source)
		assert.True(t, strings.HasPrefix(rule.ID, strings.ToLower(rule.Kind)+"/") || rule.Kind == "*", rule.ID)
	}
}

// TestGoodObjects: the objects that TestRules breaks hold every rule, in a landscape and on their own.
func TestGoodObjects(t *testing.T) {
	for _, kind := range []string{"Garden", "CloudProfile", "Seed", "Project", "Shoot", "Landscape", "Secret", "ConfigMap"} {
		for _, around := range []*Surroundings{nil, {Objects: []*unstructured.Unstructured{good(t, "CloudProfile")}}} {
			violations, err := Validate(t.Context(), []Input{{Object: good(t, kind), Old: good(t, kind)}}, Options{Landscape: around})
			require.NoError(t, err)
			assert.Empty(t, violations, kind)
		}
	}
}

// TestProfileFillsIn: in a landscape with the cloud profile, versions and images may be left out.
func TestProfileFillsIn(t *testing.T) {
	shoot := changed(t, good(t, "Shoot"), `spec: {kubernetes: {version: null}, provider: {workers: [{name: a, machine: {type: local}, minimum: 1, maximum: 1}]}}`)
	alone, err := Validate(t.Context(), []Input{{Object: shoot}}, Options{})
	require.NoError(t, err)
	assert.Len(t, alone, 2)
	inside, err := Validate(t.Context(), []Input{{Object: shoot}}, Options{Landscape: &Surroundings{Objects: []*unstructured.Unstructured{good(t, "CloudProfile")}}})
	require.NoError(t, err)
	assert.Empty(t, inside)
}

// TestOneShotOutsideOfALandscape: upstream accepts an operation in a manifest that somebody applies by hand.
func TestOneShotOutsideOfALandscape(t *testing.T) {
	shoot := changed(t, good(t, "Shoot"), `metadata: {annotations: {gardener.cloud/operation: reconcile}}`)
	violations, err := Validate(t.Context(), []Input{{Object: shoot}}, Options{})
	require.NoError(t, err)
	assert.Empty(t, violations)
}
