// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestResourceManagerSettings: invalid settings are rejected before the first request to a cluster;
// the error names the flag or the field.
func TestResourceManagerSettings(t *testing.T) {
	dir := t.TempDir()
	const head = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n"
	file := filepath.Join(dir, "config.yaml")
	for name, test := range map[string]struct {
		file string
		args []string
		want string
	}{
		"class":               {"", []string{"--class", "My Class"}, `Error: --class (controllers.resourceClass): Invalid value: "My Class": must have only lower-case letters, digits and -, begin and end with a letter or digit, and have at most 37 characters (it is part of the finalizer); * means all classes`},
		"cluster":             {"", []string{"--cluster-id", "a:b"}, `Error: --cluster-id (controllers.clusterID): Invalid value: "a:b": must not contain : or /`},
		"namespace":           {"", []string{"-n", "Garden"}, `Error: --namespace (sourceClientConnection.namespaces[0]): Invalid value: "Garden": `},
		"port":                {"", []string{"--health-port", "0"}, "Error: --health-port (server.healthProbes.port): Invalid value: 0: must be 1 to 65535, or -1 for none\n"},
		"another port":        {"", []string{"--metrics-port", "65536"}, "Error: --metrics-port (server.metrics.port): Invalid value: 65536: "},
		"level":               {"", []string{"--log-level", "loud"}, `Error: --log-level (logLevel): Unsupported value: "loud"`},
		"format in file":      {head + "logFormat: xml\n", nil, "Error: " + file + `:3:12: logFormat: Unsupported value: "xml"`},
		"period":              {"", []string{"--sync-period", "1s"}, `Error: --sync-period (controllers.managedResource.syncPeriod): Invalid value: "1s": must be 15s or more`},
		"workers":             {"", []string{"--concurrent-syncs", "0"}, "Error: --concurrent-syncs (controllers.managedResource.concurrentSyncs): Invalid value: 0: must be 1 or more"},
		"lease":               {"", []string{"--leader-election-name", "Mine"}, `Error: --leader-election-name (leaderElection.resourceName): Invalid value: "Mine"`},
		"two":                 {"", []string{"--class", "A", "--metrics-port", "0"}, "at most 37 characters (it is part of the finalizer); * means all classes\n--metrics-port (server.metrics.port): "},
		"file":                {head + "server: {metrics: {port: 0x10000}}\n", nil, "Error: " + file + ":3:26: server.metrics.port: Invalid value: 65536: "},
		"type in file":        {head + "controllers: {managedResource: {syncPeriod: 5 minutes}}\n", nil, "Error: " + file + `:3:45: controllers.managedResource.syncPeriod: is "5 minutes", and must be a duration such as 30s, 5m or 1h30m: 5m?`},
		"flag beside a file":  {head + "controllers: {resourceClass: seed}\n", []string{"--class", "A"}, "Error: --class (controllers.resourceClass): "},
		"an empty file":       {"", []string{"--config", file}, "Error: " + file + ":1:1: the file is empty; a configuration begins with apiVersion: "},
		"rules that are none": {"", []string{"--health-rules", filepath.Join(dir, "none.yaml"), "--kubeconfig", filepath.Join(dir, "none")}, "Error: "},
	} {
		t.Run(name, func(t *testing.T) {
			writeFile(t, dir, "config.yaml", test.file)
			args := append([]string{"resource-manager"}, test.args...)
			if test.file != "" {
				args = append(args, "--config", file)
			}
			o := pergola(t, args...)
			assert.Equal(t, 2, o.code)
			assert.Contains(t, o.stderr, test.want)
		})
	}
}
