// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// TestConfigurationOfTheCatalogue reads the configuration that our catalogue renders for a seed.
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
		c, err := ReadConfiguration(writeConfiguration(t, text))
		require.NoError(t, err)
		assert.Equal(t, "seed", *c.Controllers.ResourceClass)
		assert.Equal(t, 20, *c.Controllers.ManagedResource.ConcurrentSyncs)
		assert.True(t, c.Controllers.GarbageCollector.Enabled)
		assert.Equal(t, 12*time.Hour, c.Controllers.GarbageCollector.SyncPeriod.Duration)
		assert.True(t, c.Controllers.NetworkPolicy.Enabled)
		assert.Len(t, c.Controllers.NetworkPolicy.NamespaceSelectors, 6)
		assert.Equal(t, "garden", c.Controllers.NetworkPolicy.IngressControllerSelector.Namespace)
		assert.Equal(t, ":10250", c.Server.Webhooks.Address())
	}
}

func writeConfiguration(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const configurationHead = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n"

func TestDefaultsOfTheConfiguration(t *testing.T) {
	c, err := ReadConfiguration(writeConfiguration(t, configurationHead))
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
	assert.False(t, c.Webhooks.HasEnabled())
	assert.Equal(t, "0", Server{Port: -1}.Address())
	assert.Equal(t, "[::1]:1", Server{BindAddress: "::1", Port: 1}.Address())
}

// TestInvalidConfigurations checks that each line of the error begins with the position of « in the
// text.
func TestInvalidConfigurations(t *testing.T) {
	const both = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1 and kind: ResourceManagerConfiguration"
	const duration = "and must be a duration such as 30s, 5m or 1h30m"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"empty":                {"«", []string{"the file is empty; a configuration begins with " + both}},
		"only comments":        {"«# later\n---\n", []string{"the file is empty; a configuration begins with " + both}},
		"no file of this kind": {"apiVersion: «v1\nkind: «Config\nfoo: bar\n", []string{`apiVersion: is "v1", and must be resourcemanager.config.gardener.cloud/v1alpha1`, `kind: is "Config", and must be ResourceManagerConfiguration`}},
		"no kind":              {"«apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\n", []string{"kind: is missing; a configuration begins with " + both}},
		"no version, no kind":  {"««logLevel: info\n", []string{"apiVersion: is missing; ", "kind: is missing; "}},
		"a list":               {"«- a\n", []string{"is a list; a configuration has fields, and begins with " + both}},
		"no YAML":              {configurationHead + "controllers:\n  «health: a: b\n", []string{"this is not YAML: mapping values are not allowed in this context; "}},

		"unknown field":           {configurationHead + "controllers: {«garbageColector: {}}\n", []string{"controllers.garbageColector: unknown field; did you mean garbageCollector?"}},
		"in another case":         {configurationHead + "«loglevel: info\n", []string{"loglevel: unknown field; did you mean logLevel?"}},
		"unknown and unlike":      {configurationHead + "server: {metrics: {«tls: {}}}\n", []string{"server.metrics.tls: unknown field; fields here are bindAddress, port"}},
		"twice":                   {configurationHead + "logLevel: info\n«logLevel: debug\n", []string{"logLevel: is given twice, first in line 3"}},
		"several":                 {configurationHead + "controllers:\n  health: {syncPeriod: «soon}\n  garbageCollector: {enabled: «maybe}\n", []string{"controllers.health.syncPeriod: ", "controllers.garbageCollector.enabled: "}},
		"a word for a number":     {configurationHead + "controllers: {managedResource: {concurrentSyncs: «many}}\n", []string{`controllers.managedResource.concurrentSyncs: is "many", and must be a whole number`}},
		"a number in quotes":      {configurationHead + "controllers: {managedResource: {concurrentSyncs: «\"5\"}}\n", []string{`controllers.managedResource.concurrentSyncs: is "5", and must be a whole number without quotes`}},
		"a fraction":              {configurationHead + "controllers: {health: {concurrentSyncs: «1.5}}\n", []string{"controllers.health.concurrentSyncs: is 1.5, and must be a whole number"}},
		"too large":               {configurationHead + "sourceClientConnection: {burst: «5000000000}\n", []string{"sourceClientConnection.burst: is 5000000000, and must be a whole number"}},
		"a word for a rate":       {configurationHead + "sourceClientConnection: {qps: «fast}\n", []string{`sourceClientConnection.qps: is "fast", and must be a number`}},
		"no boolean":              {configurationHead + "controllers: {garbageCollector: {enabled: «yes please}}\n", []string{`controllers.garbageCollector.enabled: is "yes please", and must be true or false`}},
		"a boolean in quotes":     {configurationHead + "controllers: {garbageCollector: {enabled: «'true'}}\n", []string{`controllers.garbageCollector.enabled: is "true", and must be true or false without quotes`}},
		"minutes":                 {configurationHead + "controllers: {managedResource: {syncPeriod: «5 minutes}}\n", []string{`controllers.managedResource.syncPeriod: is "5 minutes", ` + duration + ": 5m?"}},
		"a duration without unit": {configurationHead + "controllers: {managedResource: {syncPeriod: «60}}\n", []string{"controllers.managedResource.syncPeriod: is 60, " + duration + ": 60s?"}},
		"no duration":             {configurationHead + "leaderElection: {leaseDuration: «[1m]}\n", []string{"leaderElection.leaseDuration: is a list, " + duration}},
		"no value of a duration":  {configurationHead + "leaderElection:\n  leaseDuration:«\n", []string{"leaderElection.leaseDuration: is nothing, " + duration}},
		"no list":                 {configurationHead + "sourceClientConnection: {namespaces: «garden}\n", []string{`sourceClientConnection.namespaces: is "garden", and must be a list, such as ["garden"]`}},
		"no fields":               {configurationHead + "controllers: {health: «true}\n", []string{"controllers.health: is true, and must have fields"}},
		"fields for text":         {configurationHead + "logLevel: «{a: b}\n", []string{"logLevel: is a structure with fields, and must be text"}},
		"in a list":               {configurationHead + "controllers:\n  networkPolicy:\n    namespaceSelectors:\n    - matchLabels: {a: b}\n    - «matchLabel: {a: b}\n", []string{"controllers.networkPolicy.namespaceSelectors[1].matchLabel: unknown field; did you mean matchLabels?"}},
		"in what is embedded":     {configurationHead + "webhooks: {seccompProfile: {enabled: «1}}\n", []string{"webhooks.seccompProfile.enabled: is 1, and must be true or false"}},
		"by an anchor":            {configurationHead + "controllers:\n  health: &x {concurrentSyncs: ««many}\n  managedResource: *x\n", []string{"controllers.health.concurrentSyncs: ", "controllers.managedResource.concurrentSyncs: "}},
		"merged":                  {configurationHead + "controllers:\n  health: {<<: {concurrentSyncs: «many}}\n", []string{"controllers.health.concurrentSyncs: "}},
		"itself":                  {configurationHead + "controllers: &x\n  health: «*x\n", []string{"controllers.health: contains itself"}},

		"log level":               {configurationHead + "logLevel: «loud\n", []string{`logLevel: Unsupported value: "loud": supported values: "debug", "info", "error"`}},
		"workers":                 {configurationHead + "controllers:\n  managedResource:\n    concurrentSyncs: «0\n", []string{`controllers.managedResource.concurrentSyncs: Invalid value: 0: must be 1 or more`}},
		"period":                  {configurationHead + "controllers: {health: {syncPeriod: «1s}}\n", []string{`controllers.health.syncPeriod: Invalid value: "1s": must be 15s or more`}},
		"lease":                   {configurationHead + "leaderElection: {leaseDuration: «5s}\n", []string{"leaderElection.leaseDuration: Invalid value"}},
		"several namespaces":      {configurationHead + "sourceClientConnection: {«namespaces: [a, b]}\n", []string{"sourceClientConnection.namespaces: Too many"}},
		"what there is not":       {configurationHead + "controllers: {csrApprover: {enabled: «true}}\n", []string{"controllers.csrApprover.enabled: Forbidden: Pergola does not have this controller"}},
		"an authorizer":           {configurationHead + "webhooks: {nodeAgentAuthorizer: {enabled: «true}}\n", []string{"webhooks.nodeAgentAuthorizer.enabled: Forbidden"}},
		"webhooks without keys":   {"«" + configurationHead + "webhooks: {seccompProfile: {enabled: true}}\n", []string{"server.webhooks.tls.serverCertDir: Required value"}},
		"settings of one webhook": {configurationHead + "«webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 1}}\nserver: {webhooks: {tls: {serverCertDir: x}}}\n", []string{"webhooks: Invalid value"}},
		"class":                   {configurationHead + "controllers: {resourceClass: «My_Class}\n", []string{`controllers.resourceClass: Invalid value: "My_Class": must have only lower-case letters, digits and -, `}},
		"cluster":                 {configurationHead + "controllers: {clusterID: «a/b}\n", []string{`controllers.clusterID: Invalid value: "a/b": must not contain : or /`}},
		"namespace":               {configurationHead + "sourceClientConnection: {namespaces: [«Garden]}\n", []string{`sourceClientConnection.namespaces[0]: Invalid value: "Garden": must have only lower-case letters`}},
		"name of the lease":       {configurationHead + "leaderElection: {resourceName: «Mine}\n", []string{`leaderElection.resourceName: Invalid value: "Mine": a lowercase RFC 1123 subdomain`}},
		"namespace of the lease":  {configurationHead + "leaderElection: {resourceNamespace: «Mine}\n", []string{`leaderElection.resourceNamespace: Invalid value: "Mine": `}},
		"port":                    {configurationHead + "server: {healthProbes: {port: «70000}}\n", []string{"server.healthProbes.port: Invalid value: 70000: must be 1 to 65535, or -1 for none"}},
		"another port":            {configurationHead + "server: {metrics: {port: «-2}}\n", []string{"server.metrics.port: Invalid value: -2: must be 1 to 65535, or -1 for none"}},
		"port of webhooks":        {configurationHead + "webhooks: {seccompProfile: {enabled: true}}\nserver: {webhooks: {port: «-1, tls: {serverCertDir: x}}}\n", []string{"server.webhooks.port: Invalid value: -1: must be 1 to 65535"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, places := parseMarks(c.text)
			path := writeConfiguration(t, text)
			_, err := ReadConfiguration(path)
			require.Error(t, err)
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(c.want), "%s", err)
			for i, want := range c.want {
				assert.True(t, strings.HasPrefix(lines[i], path+":"+places[i]+": "+want), "%s: %s", places[i], lines[i])
			}
		})
	}
	_, err := ReadConfiguration(filepath.Join(t.TempDir(), "none.yaml"))
	assert.ErrorContains(t, err, "reading the configuration")
}

// parseMarks removes the marks « from a text and returns their positions as LINE:COLUMN.
func parseMarks(text string) (plain string, places []string) {
	parts := strings.Split(text, "«")
	for i, part := range parts {
		plain += part
		if i+1 < len(parts) {
			places = append(places, fmt.Sprintf("%d:%d", strings.Count(plain, "\n")+1, len(plain)-strings.LastIndex(plain, "\n")))
		}
	}
	return plain, places
}

// TestConfigurationFormats checks that upstream's forms of a configuration are accepted.
func TestConfigurationFormats(t *testing.T) {
	for name, text := range map[string]string{
		"YAML":              configurationHead + "controllers:\n  resourceClass: seed\n  managedResource:\n    concurrentSyncs: 7\n    syncPeriod: 1h\n  garbageCollector:\n    enabled: true\n",
		"JSON":              `{"apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1", "kind": "ResourceManagerConfiguration",` + "\n\t" + `"controllers": {"resourceClass": "seed", "managedResource": {"concurrentSyncs": 7, "syncPeriod": "1h"}, "garbageCollector": {"enabled": true}}}`,
		"in quotes":         "\"apiVersion\": 'resourcemanager.config.gardener.cloud/v1alpha1'\nkind: \"ResourceManagerConfiguration\"\ncontrollers: {'resourceClass': 'seed', managedResource: {concurrentSyncs: 7, syncPeriod: \"1h\"}, garbageCollector: {enabled: true}}\n",
		"old booleans":      configurationHead + "controllers: {resourceClass: seed, managedResource: {concurrentSyncs: 7, syncPeriod: 1h0m0s}, garbageCollector: {enabled: yes}}\n",
		"anchors":           configurationHead + "controllers:\n  resourceClass: seed\n  health: &w {concurrentSyncs: 7, syncPeriod: 1h}\n  managedResource: *w\n  garbageCollector: {enabled: on}\n",
		"merged":            configurationHead + "controllers:\n  resourceClass: seed\n  health: &w {concurrentSyncs: 7, syncPeriod: 60m}\n  managedResource: {<<: *w, alwaysUpdate: true}\n  garbageCollector: {enabled: TRUE}\n",
		"nothing said":      configurationHead + "sourceClientConnection:\ndebugging: null\nleaderElection: {}\nwebhooks: ~\ncontrollers: {resourceClass: seed, clusterID: null, csrApprover: , managedResource: {concurrentSyncs: 7, syncPeriod: 1h}, garbageCollector: {enabled: true}}\n",
		"a marker before":   "\ufeff---\n# ours\n" + configurationHead + "controllers: {resourceClass: seed, managedResource: {concurrentSyncs: 0x7, syncPeriod: 1h}, garbageCollector: {enabled: true}}\n...\n",
		"numbers for texts": configurationHead + "sourceClientConnection: {kubeconfig: 1, qps: 1e2, burst: 130, namespaces: [17]}\ncontrollers: {resourceClass: seed, managedResource: {concurrentSyncs: 7, syncPeriod: 1h}, garbageCollector: {enabled: true}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ReadConfiguration(writeConfiguration(t, text))
			require.NoError(t, err)
			k := c.Controllers
			assert.Equal(t, []any{"seed", 7, time.Hour, true}, []any{*k.ResourceClass, *k.ManagedResource.ConcurrentSyncs, k.ManagedResource.SyncPeriod.Duration, k.GarbageCollector.Enabled})
		})
	}
}

func TestClassNameValidation(t *testing.T) {
	for class, want := range map[string]bool{"": true, "*": true, "seed": true, "resources": true, "a": true, "a-1": true, strings.Repeat("a", 37): true,
		strings.Repeat("a", 38): false, "A": false, "a.b": false, "-a": false, "a-": false, "a b": false, "**": false} {
		c := &Configuration{}
		c.Default()
		c.Controllers.ResourceClass = &class
		wrong := c.Validate()
		assert.Equal(t, want, len(wrong) == 0, "%q: %v", class, wrong)
		if want && class != "*" {
			finalizer := resourcesv1alpha1.FinalizerName + "-" + class
			assert.LessOrEqual(t, len(finalizer)-strings.Index(finalizer, "/")-1, 63, "an API server takes no longer one")
		}
	}
}
