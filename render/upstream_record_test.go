// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/render/availability"
)

// upstreamFolder is the environment variable for the folder of recordings.
const upstreamFolder = "PERGOLA_UPSTREAM_OPTIONS"

// recordUpstreamOptions renews the recordings before TestUpstreamOptions compares them, if the
// folder is set (see testdata/options/README.md). It writes the input of upstream's constructors
// for NAME as NAME.in.yaml and reads their output from NAME.out.yaml.
func recordUpstreamOptions(t *testing.T) {
	t.Helper()
	folder := os.Getenv(upstreamFolder)
	if folder == "" {
		return
	}
	base := optionsGarden{name: "base"}
	gardens := append([]optionsGarden{base}, optionsGardens(t)...)
	for _, g := range gardens {
		in, _ := g.input(t)
		var text bytes.Buffer
		gates, err := json.Marshal(in.FeatureGates)
		require.NoError(t, err)
		fmt.Fprintf(&text, "# feature gates: %s\n", gates)
		for _, o := range g.declarations(t) {
			if o.GetKind() == "Garden" {
				o.Object = in.Objects["garden"] // with defaults
			}
			raw, err := yaml.Marshal(o.Object)
			require.NoError(t, err)
			fmt.Fprintf(&text, "---\n%s", raw)
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, g.name+".in.yaml"), text.Bytes(), 0o600))
	}
	if _, err := os.Stat(filepath.Join(folder, "base.out.yaml")); err != nil {
		t.Logf("%s has the Gardens now, and nothing that upstream made of them: the recordings stay", folder)
		return
	}
	before := base.upstreamObjects(t, folder)
	for _, g := range gardens[1:] {
		raw, err := yaml.Marshal(deltaOf(before, g.upstreamObjects(t, folder)))
		require.NoError(t, err)
		head := "# What the Garden of " + g.name + ".yaml changes of upstream's objects; see README.md.\n"
		require.NoError(t, os.WriteFile(filepath.Join(optionsDir, g.name+".upstream.yaml"), append([]byte(head), raw...), 0o600))
	}
}

// upstreamObjects are the objects of upstream's constructors for a Garden, as in its clusters.
func (g optionsGarden) upstreamObjects(t *testing.T, folder string) map[string]any {
	t.Helper()
	given := map[string]bool{}
	for _, o := range g.declarations(t) {
		given[corpusKey(o)] = true
	}
	raw, err := os.ReadFile(filepath.Join(folder, g.name+".out.yaml"))
	require.NoError(t, err)
	places, objects := map[string]availability.Placement{}, map[string][]recordedObject{}
	for _, doc := range splitYAML(raw) {
		wrapped, err := decodeObject(doc.text)
		require.NoError(t, err)
		if len(wrapped) == 0 {
			continue
		}
		o := recordedObject{&unstructured.Unstructured{Object: wrapped["object"].(map[string]any)}, Delivery{Direct: wrapped["mr"] == ""}}
		isGenerated := o.GetKind() == "Secret" && o.GetLabels()["managed-by"] == "secrets-manager"
		if isGenerated || given[corpusKey(o.Unstructured)] {
			continue
		}
		if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
			o.SetNamespace("") // the resource manager sets one, which API servers drop
		}
		cluster := ClusterRuntime
		if !o.delivery.Direct && wrapped["class"] == "" {
			cluster = ClusterVirtual
		}
		objects[cluster] = append(objects[cluster], o)
		if o.GetKind() == "Namespace" && cluster == ClusterRuntime {
			addPlacement(places, o.Unstructured)
		}
	}
	applyPlacements(t, places, objects[ClusterRuntime])
	out := map[string]any{}
	for cluster := range objects {
		for _, o := range objects[cluster] {
			key := optionsKey(cluster, o.Unstructured)
			if out[key] = encryptionIn(t, o.Unstructured); out[key] == nil {
				out[key] = factsOf(o.Unstructured)
			}
		}
	}
	return out
}

// encryptionIn are the facts of a Secret with the encryption of etcd, without its keys.
func encryptionIn(t *testing.T, o *unstructured.Unstructured) any {
	t.Helper()
	text, has, err := unstructured.NestedString(o.Object, "data", "encryption-configuration.yaml")
	require.NoError(t, err)
	if !has {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	var file struct {
		Resources []struct {
			Resources any              `json:"resources"`
			Providers []map[string]any `json:"providers"`
		} `json:"resources"`
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	require.Len(t, file.Resources, 1)
	for provider := range file.Resources[0].Providers[0] {
		return encryption(provider, file.Resources[0].Resources)
	}
	return nil
}
