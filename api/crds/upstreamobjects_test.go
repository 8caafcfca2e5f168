// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/corpus"
)

// removeStatus drops the status, which upstream's tests invent, and reports whether the spec lacks
// addresses: upstream recorded its flow without real clusters.
func removeStatus(object map[string]any) bool {
	delete(object, "status")
	spec, _ := object["spec"].(map[string]any)
	switch object["kind"] {
	case "DNSRecord":
		return spec["values"] == nil
	case "SelfHostedShootExposure":
		return spec["endpoints"] == nil
	default:
		return false
	}
}

// TestUpstreamObjects checks that objects written by upstream's operator and gardenlet (extension
// objects, Etcds, ManagedResources, Clusters) decode strictly into our types and pass our schemas.
func TestUpstreamObjects(t *testing.T) {
	dir := filepath.Join(corpus.Dir(t), "objects")
	scheme := newScheme(t)
	byKind := newValidators(t)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.yaml"))
	require.NoError(t, err)

	seen := map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, raw := range documentSeparator.Split(string(data), -1) {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(raw), &object); err != nil || object["kind"] == nil {
				continue
			}
			apiVersion, _ := object["apiVersion"].(string)
			kind, _ := object["kind"].(string)
			gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
			// The corpus leaves out the values of InternalSecrets.
			if !scheme.Recognizes(gvk) || kind == "InternalSecret" {
				continue
			}
			typed, err := scheme.New(gvk)
			require.NoError(t, err)
			require.NoError(t, yaml.UnmarshalStrict([]byte(raw), typed), file)

			object = document{kind: gvk, raw: []byte(raw)}.decode(t)
			validator := byKind[gvk]
			assert.Empty(t, validator.pruneAndDefault(object), "%s: unknown fields of %s", file, kind)
			if !removeStatus(object) {
				assert.Empty(t, validator.validate(object, nil), "%s: %s", file, kind)
				seen[kind]++
			}
		}
	}
	for _, kind := range []string{
		"Garden", "Seed", "Shoot", "ManagedResource", "Etcd", "EtcdCopyBackupsTask", "Cluster", "Infrastructure", "ControlPlane", "Network",
		"OperatingSystemConfig", "Worker", "DNSRecord", "ContainerRuntime", "BackupBucket", "BackupEntry", "Bastion",
	} {
		assert.Positive(t, seen[kind], "no %s was checked", kind)
	}
}
