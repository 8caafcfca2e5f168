// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// gardenProject has other objects that a Shoot in namespace garden needs in landscape "local".
const gardenProject = `apiVersion: core.gardener.cloud/v1beta1
kind: Project
metadata: {name: garden}
spec: {namespace: garden}
---
apiVersion: v1
kind: Secret
metadata: {name: soil, namespace: garden}
---
apiVersion: security.gardener.cloud/v1alpha1
kind: CredentialsBinding
metadata: {name: soil, namespace: garden}
provider: {type: local}
credentialsRef: {apiVersion: v1, kind: Secret, name: soil, namespace: garden}
`

const internalDNS = `dns: {internal: {type: local, domain: internal.soil.example.org, credentialsRef: {apiVersion: v1, kind: Secret, name: seed-dns-local, namespace: garden}}}`

// managedSeedOf returns landscape "local" with a Shoot of two zones in namespace garden, and with a
// ManagedSeed for it.
func managedSeedOf(t *testing.T, shootDeclared bool, spec string) *Landscape {
	files := readMemoryFS(t, "local")
	shoot := string(files["projects/local/shoot.yaml"].Data)
	replaced := map[string]string{
		"  name: local\n  namespace: garden-local\n": "  name: soil\n  namespace: garden\n", "credentialsBindingName: local": "credentialsBindingName: soil",
		"nodes: 10.10.0.0/16": "nodes: 10.20.0.0/16", "pods: 100.96.0.0/11": "pods: 10.128.0.0/11", "services: 100.72.0.0/13": "services: 10.160.0.0/13",
		"      - \"0\"\n": "      - \"0\"\n      - \"1\"\n", "domain: local.local.": "domain: soil.garden.",
	}
	for before, after := range replaced {
		require.Contains(t, shoot, before)
		shoot = strings.Replace(shoot, before, after, 1)
	}
	profile := files["gardenconfig/cloudprofile.yaml"]
	profile.Data = []byte(strings.Replace(string(profile.Data), "    - name: \"0\"\n", "    - name: \"0\"\n    - name: \"1\"\n", 1))
	files["soil/project.yaml"] = &fstest.MapFile{Data: []byte(gardenProject)}
	if shootDeclared {
		files["soil/shoot.yaml"] = &fstest.MapFile{Data: []byte(shoot)}
	} else {
		config := files["landscape.yaml"]
		config.Data = append(config.Data, []byte("\n  external:\n  - {kind: Shoot, namespace: garden, name: soil}\n")...)
	}
	files["soil/managedseed.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: seedmanagement.gardener.cloud/v1alpha1
kind: ManagedSeed
metadata: {name: soil, namespace: garden}
spec:
  shoot: {name: soil}
  gardenlet:
    config:
      apiVersion: gardenlet.config.gardener.cloud/v1alpha1
      kind: GardenletConfiguration
      seedConfig:
        spec:
          ` + strings.ReplaceAll(spec, "\n", "\n          ") + "\n")}
	l, violations, err := LoadFS(t.Context(), files, ".", Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	return l
}

// TestManagedSeedDefaults: upstream defaults fields from the Shoot before it
// validates the Seed.
func TestManagedSeedDefaults(t *testing.T) {
	const at = "spec.gardenlet.config.seedConfig.spec."
	const soil = "{apiVersion: v1, kind: Secret, name: soil, namespace: garden}"
	for _, c := range []struct {
		name, spec string
		// finding fields with a declared Shoot (want), and with an external one (elsewhere)
		want, elsewhere []string
	}{
		{"nothing but what the Shoot has not", internalDNS, nil, nil},
		{"no internal domain", "settings: {}", []string{"dns.internal"}, []string{"dns.internal"}},
		{"a backup without credentials", internalDNS + "\nbackup: {region: local}", []string{"backup.credentialsRef"}, []string{"backup.credentialsRef"}},
		{"a backup with the provider of the Shoot", internalDNS + "\nbackup: {credentialsRef: " + soil + "}", nil, nil},
		{"a backup with another provider, of which the region is missing", internalDNS + "\nbackup: {provider: other, credentialsRef: " + soil + "}", []string{"backup.region"}, nil},
		{"routing between the zones of the Shoot", internalDNS + "\nsettings: {topologyAwareRouting: {enabled: true}}", nil, nil},
		{"routing in one zone", internalDNS + "\nprovider: {zones: [\"0\"]}\nsettings: {topologyAwareRouting: {enabled: true}}", []string{"settings.topologyAwareRouting.enabled"}, []string{"settings.topologyAwareRouting.enabled"}},
		{"load balancers in a zone of the Shoot", internalDNS + "\nsettings: {loadBalancerServices: {zones: [{name: \"1\"}]}}", nil, nil},
		{"load balancers in a zone that it has not", internalDNS + "\nsettings: {loadBalancerServices: {zones: [{name: \"7\"}]}}", []string{"settings.loadBalancerServices.zones[0].name"}, nil},
		{"networks for Shoots that overlap with nothing", internalDNS + "\nnetworks: {shootDefaults: {pods: 10.64.0.0/12, services: 10.80.0.0/16}}", nil, nil},
		{"an ingress without its domain", internalDNS + "\ningress: {controller: {kind: nginx}}", nil, nil},
		{"an ingress without its controller", internalDNS + "\ningress: {domain: ingress.soil.garden.external.local.gardener.cloud}", []string{"ingress.controller.kind"}, []string{"ingress.controller.kind"}},
		{"a DNS provider without credentials", "dns:\n  provider: {type: local}\n  " + strings.TrimSuffix(strings.TrimPrefix(internalDNS, "dns: {"), "}"), []string{"dns.provider.credentialsRef"}, []string{"dns.provider.credentialsRef"}},
		{"another region", internalDNS + "\nprovider: {region: elsewhere}", []string{"provider.region"}, nil},
	} {
		for declared, want := range map[bool][]string{true: c.want, false: c.elsewhere} {
			found, err := managedSeedOf(t, declared, c.spec).ValidateAt(t.Context(), validationTime, nil, schemas.Options{})
			require.NoError(t, err)
			var fields []string
			for _, v := range found {
				fields = append(fields, strings.TrimPrefix(v.Field, at))
				assert.Equal(t, "soil/managedseed.yaml", v.File, "%s: %s", c.name, v)
				assert.Greater(t, v.Line, 9, "%s: %s", c.name, v)
			}
			assert.ElementsMatch(t, want, fields, "%s, Shoot declared: %t: %v", c.name, declared, found)
		}
	}
}

// TestManagedSeedChanges: changes are compared with the defaulted old object, and
// findings about defaulted fields say so.
func TestManagedSeedChanges(t *testing.T) {
	before := managedSeedOf(t, true, internalDNS)
	for spec, want := range map[string]string{
		internalDNS: "",
		internalDNS + "\nnetworks: {nodes: 10.20.0.0/16, pods: 10.128.0.0/11, services: 10.160.0.0/13}": "",
		internalDNS + "\nnetworks: {shootDefaults: {pods: 10.130.0.0/16}, ipFamilies: [IPv6]}":          "ipFamilies",
	} {
		found, err := managedSeedOf(t, true, spec).ValidateAt(t.Context(), validationTime, before, schemas.Options{})
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, found)
			continue
		}
		assert.True(t, slices.ContainsFunc(found, func(v schemas.Violation) bool { return strings.HasSuffix(v.Field, want) }), "%v", found)
	}
	found, err := managedSeedOf(t, true, internalDNS+"\nnetworks: {ipFamilies: [IPv6]}").ValidateAt(t.Context(), validationTime, nil, schemas.Options{})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	assert.Contains(t, found[0].Message, "; the API fills it in: the value of the Shoot soil")
}
