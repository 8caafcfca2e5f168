package resourcemanager

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// The configuration that our catalogue renders for a seed is read.
func TestConfigurationOfTheCatalogue(t *testing.T) {
	files, err := filepath.Glob("../../landscapes/local/golden/local/garden/gardener-resource-manager/configmap-*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 1)
	raw, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var rendered struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal(raw, &rendered))
	require.Len(t, rendered.Data, 1)
	for _, text := range rendered.Data {
		c, err := ReadConfiguration(written(t, text))
		require.NoError(t, err)
		assert.Equal(t, "seed", *c.Controllers.ResourceClass)
		assert.Equal(t, 20, *c.Controllers.ManagedResource.ConcurrentSyncs)
		assert.True(t, c.Controllers.GarbageCollector.Enabled)
		assert.Equal(t, 12*time.Hour, c.Controllers.GarbageCollector.SyncPeriod.Duration)
		assert.True(t, c.Controllers.NetworkPolicy.Enabled)
		assert.Len(t, c.Controllers.NetworkPolicy.NamespaceSelectors, 5)
		assert.Equal(t, "garden", c.Controllers.NetworkPolicy.IngressControllerSelector.Namespace)
		assert.Equal(t, ":10250", c.Server.Webhooks.Address())
	}
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const head = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n"

func TestDefaultsOfTheConfiguration(t *testing.T) {
	c, err := ReadConfiguration(written(t, head))
	require.NoError(t, err)
	assert.Equal(t, ":8081", c.Server.HealthProbes.Address())
	assert.Equal(t, ":8080", c.Server.Metrics.Address())
	assert.Equal(t, ":9449", c.Server.Webhooks.Address())
	assert.Equal(t, "gardener-resource-manager", c.LeaderElection.ResourceName)
	assert.True(t, *c.LeaderElection.LeaderElect)
	assert.Equal(t, "resources", *c.Controllers.ResourceClass)
	assert.Equal(t, 5, *c.Controllers.ManagedResource.ConcurrentSyncs)
	assert.Equal(t, time.Minute, c.Controllers.ManagedResource.SyncPeriod.Duration)
	assert.Equal(t, "gardener", *c.Controllers.ManagedResource.ManagedByLabelValue)
	assert.Equal(t, time.Hour, c.Controllers.GarbageCollector.SyncPeriod.Duration)
	assert.Equal(t, "info", c.LogLevel)
	assert.False(t, c.Webhooks.Any())
	assert.Equal(t, "0", Server{Port: -1}.Address())
	assert.Equal(t, "[::1]:1", Server{BindAddress: "::1", Port: 1}.Address())
}

func TestWrongConfigurations(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no file of this kind":    {"apiVersion: v1\nkind: Config\n", "want apiVersion resourcemanager.config.gardener.cloud/v1alpha1 and kind ResourceManagerConfiguration, have"},
		"unknown field":           {head + "controllers: {garbageColector: {}}\n", `:3: unknown field "controllers.garbageColector"`},
		"wrong type":              {head + "controllers: {managedResource: {concurrentSyncs: many}}\n", "concurrentSyncs"},
		"log level":               {head + "logLevel: loud\n", `:3: logLevel: Unsupported value: "loud": supported values: "debug", "info", "error"`},
		"workers":                 {head + "controllers:\n  managedResource:\n    concurrentSyncs: 0\n", `:5: controllers.managedResource.concurrentSyncs: Invalid value: 0: must be 1 or more`},
		"period":                  {head + "controllers: {health: {syncPeriod: 1s}}\n", `controllers.health.syncPeriod: Invalid value: "1s": must be 15s or more`},
		"lease":                   {head + "leaderElection: {leaseDuration: 5s}\n", "leaderElection.leaseDuration: Invalid value"},
		"several namespaces":      {head + "sourceClientConnection: {namespaces: [a, b]}\n", "sourceClientConnection.namespaces: Too many"},
		"what there is not":       {head + "controllers: {csrApprover: {enabled: true}}\n", "controllers.csrApprover.enabled: Forbidden: Pergola has no such controller"},
		"an authorizer":           {head + "webhooks: {nodeAgentAuthorizer: {enabled: true}}\n", "webhooks.nodeAgentAuthorizer.enabled: Forbidden"},
		"webhooks without keys":   {head + "webhooks: {seccompProfile: {enabled: true}}\n", "server.webhooks.tls.serverCertDir: Required value"},
		"settings of one webhook": {head + "webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 1}}\n", "webhooks: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, c.text)
			_, err := ReadConfiguration(path)
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, path)
		})
	}
	_, err := ReadConfiguration(filepath.Join(t.TempDir(), "none.yaml"))
	assert.ErrorContains(t, err, "reading the configuration")
}
