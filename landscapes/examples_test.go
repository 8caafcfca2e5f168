// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas"
)

// TestLayeredExample: layers and CUE files together, with the places of their values.
func TestLayeredExample(t *testing.T) {
	landscape, violations, err := Load(t.Context(), "examples/layered/production", Options{})
	require.NoError(t, err)
	assert.Empty(t, violations)
	found, err := landscape.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.Equal(t, []string{"CloudProfile aws", "Garden garden", "Seed aws-eu-central-1", "Seed aws-eu-north-1"}, names(landscape))

	garden := landscape.Declarations[1]
	assert.NotContains(t, garden.Object().Object["spec"].(map[string]any)["virtualCluster"].(map[string]any)["gardener"], "gardenerScheduler")
	assert.Equal(t, schemas.Position{File: "garden.yaml", Line: 23, Column: 24}, garden.Position("spec.virtualCluster.gardener.clusterIdentity"))
	assert.Equal(t, schemas.Position{File: "../base/garden.yaml", Line: 32, Column: 16}, garden.Position("spec.virtualCluster.kubernetes.version"))
	seeds, err := landscape.Seeds()
	require.NoError(t, err)
	assert.Equal(t, "10.31.0.0/16", seeds[1].Object.Spec.Networks.Pods)
	assert.Equal(t, "seeds.cue", seeds[1].Declaration.File)
	assert.Equal(t, schemas.Position{File: "seeds.cue", Line: 26, Column: 6}, seeds[1].Declaration.Position("spec.networks.pods"))
}

// TestFindingsOfALandscape: a finding names the file of the layer that sets the value.
func TestFindingsOfALandscape(t *testing.T) {
	landscape, violations, err := Load(t.Context(), "examples/layered/production", Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	garden := landscape.Declarations[1].Object().Object
	require.NoError(t, unstructured.SetNestedField(garden, "1,34", "spec", "virtualCluster", "kubernetes", "versoin"))
	require.NoError(t, unstructured.SetNestedField(garden, "never", "spec", "virtualCluster", "maintenance", "timeWindow", "begin"))
	require.NoError(t, unstructured.SetNestedStringSlice(garden, []string{"10.241.7.0/24"}, "spec", "virtualCluster", "networking", "services"))
	found, err := landscape.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	var lines []string
	for _, v := range found {
		lines = append(lines, v.String())
	}
	assert.Equal(t, []string{
		`../base/garden.yaml:32:7: error: Garden garden: spec.virtualCluster.kubernetes.versoin: the field "versoin" does not exist; did you mean "version"? [structure]`,
		`../base/garden.yaml:39:16: error: Garden garden: spec.virtualCluster.maintenance.timeWindow.begin: "never" is not a time of day with a time zone such as 220000+0100 [structure]`,
		`../base/garden.yaml:43:9: error: Garden garden: spec.virtualCluster.networking.services[0]: the range 10.241.7.0/24 overlaps with 10.241.0.0/16 of spec.runtimeCluster.networking.pods[0] [garden/networks-disjoint]`,
	}, lines)
}
