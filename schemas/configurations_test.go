// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestEmbeddedConfigurations checks embedded objects against the schemas of their types.
func TestEmbeddedConfigurations(t *testing.T) {
	gardenlet := func(config string) string {
		return "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: Gardenlet\nmetadata: {name: a, namespace: garden}\nspec: {deployment: {}, config: {apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, " + config + "}}"
	}
	managedSeed := func(config string) string {
		return "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: ManagedSeed\nmetadata: {name: a, namespace: garden}\nspec: {shoot: {name: a}, gardenlet: {config: {" + config + "}}}"
	}
	configMap := func(text string) string {
		data, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "garden"}, "data": map[string]any{"key": text}})
		require.NoError(t, err)
		return string(data)
	}
	const warning, failure = "warning", "error"
	for name, c := range map[string]struct{ object, severity, field, words string }{
		"a field that is misspelt":               {gardenlet("loging: {}"), warning, "spec.config.loging", `did you mean "logging"?; a gardenlet drops it`},
		"a field of a controller":                {gardenlet("controllers: {shootCare: {conditionThreshold: []}}"), warning, "spec.config.controllers.shootCare.conditionThreshold", `"conditionThresholds"`},
		"a field in a list":                      {gardenlet("exposureClassHandlers: [{name: a, loadBalancerService: {anotations: {}}}]"), warning, "spec.config.exposureClassHandlers[0].loadBalancerService.anotations", `"annotations"`},
		"a field of the Seed beside its spec":    {gardenlet("seedConfig: {networks: {}}"), warning, "spec.config.seedConfig.networks", "did you mean seedConfig.spec.networks?"},
		"a field of the Seed at the top":         {gardenlet("taints: []"), warning, "spec.config.taints", "did you mean seedConfig.spec.taints?"},
		"a field of the top in a controller":     {gardenlet("controllers: {shoot: {logLevel: info}}"), warning, "spec.config.controllers.shoot.logLevel", "did you mean logLevel at the top of the object?"},
		"a field that is gone":                   {gardenlet("seedSelector: {}"), warning, "spec.config.seedSelector", "does not exist"},
		"metadata of the Seed":                   {managedSeed("seedConfig: {metadata: {lables: {}}}"), warning, "spec.gardenlet.config.seedConfig.metadata.lables", `"labels"`},
		"without apiVersion and kind":            {managedSeed("loging: {}"), warning, "spec.gardenlet.config.loging", `"logging"`},
		"a value of another type":                {gardenlet("controllers: {shoot: {concurrentSyncs: many}}"), failure, "spec.config.controllers.shoot.concurrentSyncs", "must be a whole number"},
		"no duration":                            {gardenlet("controllers: {seed: {syncPeriod: often}}"), failure, "spec.config.controllers.seed.syncPeriod", "duration"},
		"a feature gate that nobody has":         {gardenlet("featureGates: {HVPA: true}"), failure, "spec.config.featureGates.HVPA", "remove the line"},
		"a feature gate that is misspelt":        {managedSeed("featureGates: {DefaultSecompProfile: true}"), failure, "spec.gardenlet.config.featureGates.DefaultSecompProfile", "DefaultSeccompProfile"},
		"a feature gate that is locked":          {managedSeed("featureGates: {DoNotCopyBackupCredentials: false}"), failure, "spec.gardenlet.config.featureGates.DoNotCopyBackupCredentials", "locked"},
		"an audit policy":                        {configMap("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resource: []}]"), warning, "data[key].rules[0].resource", `"resources"?; kube-apiserver drops it`},
		"an audit policy with a field elsewhere": {configMap("apiVersion: audit.k8s.io/v1\nkind: Policy\nlabels: {}\nrules: [{level: None}]"), warning, "data[key].labels", "did you mean metadata.labels?"},
		"an audit policy of another type":        {configMap("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {level: None}"), failure, "data[key].rules", "must be a list"},
		"structured authentication":              {configMap("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: {URL: a}}]"), failure, "data[key].jwt[0].issuer.URL", "does not start with it"},
		"structured authorization":               {configMap("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: Webhook, names: a}]"), failure, "data[key].authorizers[0].names", `"name"`},
	} {
		t.Run(name, func(t *testing.T) {
			found := validateYAML(t, c.object)
			require.Len(t, found, 1)
			assert.Equal(t, []string{c.severity, c.field}, []string{string(found[0].Severity), found[0].Field})
			assert.Contains(t, found[0].Message, c.words)
		})
	}
	found := validateYAML(t, gardenlet("loging: {enabled: maybe}"))
	require.Len(t, found, 2, "what is in a misspelt field is looked at, too")
	assert.Equal(t, "spec.config.logging.enabled", found[0].Field)
	for name, object := range map[string]string{
		"all is known":                 gardenlet("logLevel: info, leaderElection: {leaderElect: true, resourceName: a}, gardenClientConnection: {qps: 1.5, burst: 3, kubeconfigSecret: {name: a, namespace: b}}, resources: {capacity: {shoots: 100}}, logging: {vali: {garden: {storage: 100Gi}}}"),
		"a type that is not known":     configMap("apiVersion: example.org/v1\nkind: Policy\nrule: a"),
		"a text that is not an object": configMap("apiVersion: a\n- b"),
		"a policy as it should be":     configMap("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, resources: [{group: '', resources: [secrets]}], userGroups: [a]}]"),
	} {
		assert.Empty(t, validateYAML(t, object), name)
	}
}

func validateYAML(t *testing.T, text string) []Violation {
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, object.UnmarshalJSON(data))
	found, err := Validate(t.Context(), []Input{{Object: object}}, Options{Workers: 1})
	require.NoError(t, err)
	return found
}
