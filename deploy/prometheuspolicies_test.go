// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/resourcemanager/networkpolicy"
	"github.com/pergola-dev/pergola/deploy"
)

// TestPrometheusNetworkPolicies: network policies allow the operator to query each Prometheus of
// the garden. They need a Service that selects its pods, and clients with that Service's label.
func TestPrometheusNetworkPolicies(t *testing.T) {
	const golden = "../landscapes/local/golden/runtime/garden"
	labels, _, err := unstructured.NestedStringMap(filterKind(renderRole(t, deploy.Operator).Objects, "Deployment")[0].Object, "spec", "template", "metadata", "labels")
	require.NoError(t, err)
	asked := 0
	instances, err := filepath.Glob(golden + "/*/prometheus.monitoring.coreos.com-*.yaml")
	require.NoError(t, err)
	for _, file := range instances {
		instance := readManifestFile(t, file)
		if instance.GetLabels()["health-check-by"] != "gardener-operator" {
			continue
		}
		asked++
		name := "prometheus-" + instance.GetName()
		service := readManifestFile(t, filepath.Join(filepath.Dir(file), "service-garden-"+name+".yaml"))
		selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
		assert.Equal(t, map[string]string{"prometheus": instance.GetName()}, selector)
		ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
		targets := map[string]bool{}
		for _, p := range ports {
			targets[fmt.Sprint(p.(map[string]any)["targetPort"])] = true
		}
		assert.True(t, targets["9090"], name)
		assert.Equal(t, "allowed", labels[networkpolicy.ClientLabel(name+"-tcp-9090")], name)
	}
	assert.Equal(t, 2, asked)
}

func readManifestFile(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &o.Object))
	return o
}
