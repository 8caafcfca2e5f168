// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExtensionConfigurations checks findings in the configurations of published extensions.
func TestExtensionConfigurations(t *testing.T) {
	shoot := func(provider, rest string) string {
		return "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: a, namespace: garden-a}\nspec: {provider: {type: aws, " + provider + "}" + rest + "}"
	}
	infrastructure := func(fields string) string {
		return shoot("infrastructureConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1, kind: InfrastructureConfig, "+fields+"}", "")
	}
	network := func(fields string) string {
		return shoot("", ", networking: {type: calico, providerConfig: {apiVersion: calico.networking.extensions.gardener.cloud/v1alpha1, kind: NetworkConfig, "+fields+"}}")
	}
	const inInfrastructure, inNetwork = "spec.provider.infrastructureConfig", "spec.networking.providerConfig"
	for name, c := range map[string]struct{ object, field, words string }{
		"a field":                     {infrastructure("nework: {}"), inInfrastructure + ".nework", `did you mean "networks"?; the extension refuses or drops it`},
		"a field in a list":           {infrastructure("networks: {zones: [{name: a, worker: 10.0.0.0/24}]}"), inInfrastructure + ".networks.zones[0].worker", `"workers"`},
		"a range":                     {infrastructure("networks: {vpc: {cidr: 10.0.0.0/40}}"), inInfrastructure + ".networks.vpc.cidr", "network range"},
		"a list for an object":        {infrastructure("networks: []"), inInfrastructure + ".networks", "must be an object"},
		"a value of a few":            {network("backend: birdd"), inNetwork + ".backend", "bird"},
		"text for a switch":           {network("overlay: {enabled: 'yes'}"), inNetwork + ".overlay.enabled", "true or false"},
		"a kind":                      {shoot("infrastructureConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1, kind: InfrastuctureConfig}", ""), inInfrastructure + ".kind", `did you mean "InfrastructureConfig"?`},
		"a version":                   {shoot("infrastructureConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1, kind: InfrastructureConfig}", ""), inInfrastructure + ".apiVersion", "v1alpha1"},
		"a group":                     {shoot("infrastructureConfig: {apiVersion: aws.provider.extension.gardener.cloud/v1alpha1, kind: InfrastructureConfig}", ""), inInfrastructure + ".apiVersion", `did you mean "aws.provider.extensions.gardener.cloud"?`},
		"a field of another provider": {shoot("controlPlaneConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1, kind: ControlPlaneConfig, zone: eu-central-1a}", ""), "spec.provider.controlPlaneConfig.zone", "it is one of gcp.provider.extensions.gardener.cloud"},
		"no kind":                     {shoot("controlPlaneConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1}", ""), "spec.provider.controlPlaneConfig", "has no kind"},
		"no apiVersion":               {shoot("controlPlaneConfig: {storage: {}}", ""), "spec.provider.controlPlaneConfig", "has no apiVersion"},
		"of a worker": {shoot("workers: [{name: a, providerConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1, kind: WorkerConfig, instanceMetadataOptions: {httpTokens: require}}}]", ""),
			"spec.provider.workers[0].providerConfig.instanceMetadataOptions.httpTokens", "required"},
		"of an extension": {shoot("", ", extensions: [{type: shoot-dns-service, providerConfig: {apiVersion: service.dns.extensions.gardener.cloud/v1alpha1, kind: DNSConfig, provider: []}}]"), "spec.extensions[0].providerConfig.provider", `"providers"`},
	} {
		t.Run(name, func(t *testing.T) {
			found := extensionConfigViolations(t, c.object)
			require.Len(t, found, 1)
			assert.Equal(t, []string{string(SeverityWarning), c.field}, []string{string(found[0].Severity), found[0].Field})
			assert.Contains(t, found[0].Message, c.words)
		})
	}
	for name, object := range map[string]string{
		"all is known":              infrastructure("networks: {vpc: {cidr: 10.0.0.0/16, gatewayEndpoints: [s3]}, zones: [{name: a, internal: 10.0.1.0/24, public: 10.0.2.0/24, workers: 10.0.3.0/24}]}"),
		"a field of a later one":    infrastructure("somethingElse: {enabled: true}"),
		"a kind of a later one":     shoot("infrastructureConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1, kind: TransitConfig}", ""),
		"an extension of your own":  shoot("infrastructureConfig: {apiVersion: metal.provider.example.org/v1, kind: InfrastructureConfig, nework: {}}", ""),
		"without a field":           shoot("infrastructureConfig: {}", ""),
		"a version without a table": shoot("", ", extensions: [{type: registry-cache, providerConfig: {apiVersion: registry.extensions.gardener.cloud/v1alpha2, kind: RegistryConfig, caches: [{upstram: docker.io}]}}]"),
	} {
		assert.Empty(t, extensionConfigViolations(t, object), name)
	}
}

func extensionConfigViolations(t *testing.T, text string) []Violation {
	return slices.DeleteFunc(validateYAML(t, text), func(v Violation) bool { return v.Rule != ruleExtensionConfig })
}
