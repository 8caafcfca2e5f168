// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const versionsYAML = `apiVersion: core.gardener.cloud/v1beta1
kind: CloudProfile
metadata: {name: local}
spec:
  type: local
  kubernetes: {versions: [{version: 1.34.1}, {version: 1.34.9, expirationDate: "2026-06-01T00:00:00Z"}, {version: 1.35.0, classification: preview}]}
  machineImages: [{name: os, versions: [{version: 1.0.0, architectures: [arm64]}]}]
  machineTypes: [{name: m, cpu: "1", gpu: "0", memory: 1Gi, architecture: arm64}]
`

func shootWithOpenVersions(spec string) string {
	return "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: a, namespace: garden-dev}\nspec:\n  kubernetes: {}\n  seedName: eu\n  cloudProfile: {name: local}\n" + spec
}

// TestOwnersAreMutated: a Shoot is rendered as the API fills it in at a time.
func TestOwnersAreMutated(t *testing.T) {
	l := loadLandscape(t, map[string]string{
		"landscape.yaml": landscapeFile("{}"), "p.yaml": projectYAML, "profile.yaml": versionsYAML,
		"s.yaml": "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: eu}\nspec: {provider: {type: local, region: local}, networks: {shootDefaults: {pods: 10.1.0.0/16, services: 10.2.0.0/16}}, dns: {defaults: [{type: x, domain: example.org, credentialsRef: {}}]}}\n",
		"a.yaml": shootWithOpenVersions("  provider: {type: local, workers: [{name: a, machine: {type: m}}]}\n"),
	})
	for at, version := range map[string]string{"2026-05-31T00:00:00Z": "1.34.9", "2026-06-02T00:00:00Z": "1.34.1"} {
		now, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		require.Empty(t, CheckLandscape(smallCatalogue(t, nil), l, WithTime(now)))
		inputs, err := Owners(l, WithTime(now))
		require.NoError(t, err)
		shoot := inputs[len(inputs)-1]
		require.Equal(t, "shoot", shoot.Owner.Kind)
		assert.Equal(t, version, shoot.TargetVersion, "what has expired is not chosen")
		for path, want := range map[string]any{"kubernetes.version": version, "dns.domain": "a.dev.example.org", "networking.pods": "10.1.0.0/16", "networking.services": "10.2.0.0/16", "kubernetes.kubelet.failSwapOn": true} {
			got, _, _ := nestedField(shoot.Objects["shoot"], strings.Split("spec."+path, ".")...)
			assert.Equal(t, want, got, path)
		}
		workers, _, _ := nestedField(shoot.Objects["shoot"], "spec", "provider", "workers")
		machine := workers.([]any)[0].(map[string]any)["machine"].(map[string]any)
		assert.Equal(t, map[string]any{"type": "m", "architecture": "arm64", "image": map[string]any{"name": "os", "version": "1.0.0"}}, machine)
		said := map[string]string{}
		for _, change := range shoot.MutationChanges {
			said[change.Field] = change.Reason
		}
		assert.Equal(t, "the newest supported version of CloudProfile local", said["spec.kubernetes.version"])
		assert.Equal(t, "below the default domain of Seed eu", said["spec.dns.domain"])
	}

	_, err := Owners(l)
	assert.ErrorContains(t, err, "spec.kubernetes.version", "without a time no version is chosen")
}

// TestUnavailableVersion: a version that cannot be selected now does not prevent a render, because
// the Shoot may already have it. Rules check new Shoots.
func TestUnavailableVersion(t *testing.T) {
	l := loadLandscape(t, map[string]string{
		"landscape.yaml": landscapeFile("{}"), "p.yaml": projectYAML, "s.yaml": seedYAML, "profile.yaml": versionsYAML,
		"a.yaml": "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: a, namespace: garden-dev}\nspec:\n  kubernetes: {version: '1.35'}\n  seedName: eu\n  cloudProfile: {name: local}\n  provider: {type: local}\n",
	})
	at := WithTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	assert.Empty(t, CheckLandscape(smallCatalogue(t, nil), l, at))
	inputs, err := Owners(l, at)
	require.NoError(t, err)
	shoot := inputs[len(inputs)-1]
	assert.Equal(t, []any{"a", "1.35.0"}, []any{shoot.Owner.Name, shoot.TargetVersion})
	assert.Contains(t, shoot.MutationChanges[0].Reason+shoot.MutationChanges[len(shoot.MutationChanges)-1].Reason, "none of them can be chosen now")
}
