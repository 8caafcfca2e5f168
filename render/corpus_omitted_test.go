// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// omittedCase is a component that the example Garden omits, with the objects of upstream's test for
// it.
type omittedCase struct {
	Component string `json:"component"`
	Corpus    string `json:"corpus"`
	// Names map names in the test to names in a Garden.
	Names       [][2]string  `json:"names"`
	Differences []difference `json:"differences"`
}

// TestCorpusOmittedComponents compares components that the example Garden disables with the objects
// of upstream's tests for them. It first replaces names of the test (its namespace, its images).
func TestCorpusOmittedComponents(t *testing.T) {
	root := corpus.Dir(t)
	raw, err := os.ReadFile("testdata/corpus.yaml")
	require.NoError(t, err)
	var file corpusFile
	require.NoError(t, yaml.UnmarshalStrict(raw, &file))
	require.NotEmpty(t, file.Omitted)
	in := corpusInput(t, root, "garden")
	in.FeatureGates = &landscapev1alpha1.FeatureGates{VictoriaLogsBackend: ptr.To(true), DisableNginxIngressInGarden: ptr.To(false)}
	for path, value := range map[string]any{
		"spec.extensions": []any{map[string]any{"type": "before"}, map[string]any{"type": "def"}, map[string]any{"type": "after"}, map[string]any{"type": "after-worker"}},
		"spec.runtimeCluster.ingress": map[string]any{
			"controller": map[string]any{"kind": "nginx", "providerConfig": map[string]any{"foo": "bar", "dot": int64(3), "dash": false}},
			"domains":    []any{map[string]any{"name": "ingress.seed.world"}, map[string]any{"name": "world.seed"}},
		},
		"spec.runtimeCluster.settings.loadBalancerServices":            map[string]any{"annotations": map[string]any{"some": "value"}},
		"spec.runtimeCluster.settings.persistentVolumeClaimAutoscaler": map[string]any{"enabled": true},
		"spec.virtualCluster.gardener.gardenerDiscoveryServer":         map[string]any{"domain": map[string]any{"name": "discovery.local.gardener.cloud"}},
		"spec.virtualCluster.gardener.gardenerDashboard.terminal":      map[string]any{"container": map[string]any{"image": "some-image:latest"}},
	} {
		require.NoError(t, unstructured.SetNestedField(in.Objects["garden"], value, strings.Split(path, ".")...))
	}
	res, err := Render(in, Options{Catalogue: components.FS})
	require.NoError(t, err)
	places := recordedPlacements(t, root, "garden", res)
	for _, c := range file.Omitted {
		t.Run(c.Component, func(t *testing.T) {
			recording, err := os.ReadFile(filepath.Join(root, "objects", c.Corpus, "default.yaml"))
			require.NoError(t, err)
			text := string(recording)
			for _, name := range c.Names {
				require.Contains(t, text, name[0], "a name that the recording does not have")
				text = strings.ReplaceAll(text, name[0], name[1])
			}
			copied := filepath.Join(t.TempDir(), "default.yaml")
			require.NoError(t, os.WriteFile(copied, []byte(text), 0o600))
			used := make([]bool, len(c.Differences))
			var unlisted []string
			for _, d := range compareObjects(corpusObjects(t, copied, places), ourObjects(t, res, c.Component)) {
				if !isAllowed(c.Differences, used, d) {
					unlisted = append(unlisted, d.String())
				}
			}
			for i, d := range c.Differences {
				if !used[i] || d.Reason == "" {
					unlisted = append(unlisted, fmt.Sprintf("listed difference %s %s is none any more, or has no reason", d.Object, d.Path))
				}
			}
			require.Empty(t, unlisted, strings.Join(unlisted, "\n"))
		})
	}
}
