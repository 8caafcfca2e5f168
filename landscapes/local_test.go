// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

func demoKey(t testing.TB) Options {
	t.Helper()
	data, err := os.ReadFile("local/.sops/age.key")
	require.NoError(t, err)
	identities, err := ParseAgeIdentities(string(data))
	require.NoError(t, err)
	require.Len(t, identities, 1)
	return Options{AgeIdentities: identities}
}

// TestLocal: the demonstration landscape has no findings, with and without its key.
func TestLocal(t *testing.T) {
	for name, opts := range map[string]Options{"with key": demoKey(t), "without key": {}} {
		t.Run(name, func(t *testing.T) {
			landscape, violations, err := Load(t.Context(), "local", opts)
			require.NoError(t, err)
			assert.Empty(t, violations)
			found, err := landscape.Validate(t.Context(), schemas.Options{})
			require.NoError(t, err)
			assert.Empty(t, found)

			garden, declaration, err := landscape.Garden()
			require.NoError(t, err)
			assert.Equal(t, "local", garden.Spec.VirtualCluster.Gardener.ClusterIdentity)
			assert.Equal(t, "garden/garden.yaml", declaration.File)
			shoots, err := landscape.Shoots()
			require.NoError(t, err)
			require.Len(t, shoots, 1)
			assert.Equal(t, "garden-local", shoots[0].Object.Namespace)
			seeds, err := landscape.Seeds()
			require.NoError(t, err)
			assert.Len(t, seeds, 1)
			assert.Equal(t, "pergola-runtime", landscape.Config.Spec.Clusters.Runtime.Context)

			secrets, err := landscape.Secrets()
			require.NoError(t, err)
			require.Len(t, secrets, 5)
			for _, secret := range secrets {
				if secret.Object.Name == "local" {
					assert.Empty(t, secret.Object.StringData, "the provider local has no accounts")
					assert.Equal(t, SecretPlain, secret.Declaration.Secret)
				} else if len(opts.AgeIdentities) > 0 {
					assert.Equal(t, SecretDecrypted, secret.Declaration.Secret)
				} else {
					assert.Equal(t, SecretEncrypted, secret.Declaration.Secret)
				}
			}
			want := ""
			if len(opts.AgeIdentities) > 0 {
				want = "/etc/gardener/local-backupbuckets"
			}
			assert.Equal(t, want, secrets[1].Object.StringData["hostPath"])
		})
	}
}
