// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/corpus"
)

// corpusCase is one file: headers, and objects by the name of their document.
type corpusCase struct {
	name    string
	headers map[string]string
	objects map[string]*unstructured.Unstructured
}

// strings reads a header that is a map of strings.
func (c corpusCase) strings(t *testing.T, header string) map[string]string {
	out := map[string]string{}
	if text := c.headers[header]; text != "" {
		require.NoError(t, json.Unmarshal([]byte(text), &out), header)
	}
	return out
}

func corpusCases(t *testing.T, pattern string) []corpusCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []corpusCase
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		c := corpusCase{name: strings.TrimSuffix(filepath.Base(file), ".yaml"), headers: map[string]string{}, objects: map[string]*unstructured.Unstructured{}}
		parts := strings.Split(string(raw), "\n--- # ")
		for _, line := range strings.Split(parts[0], "\n") {
			if k, v, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": "); ok {
				c.headers[k] = v
			}
		}
		for _, part := range parts[1:] {
			name, body, _ := strings.Cut(part, "\n")
			json, err := yaml.YAMLToJSON([]byte(body + "\n"))
			require.NoError(t, err, file)
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON(json); err == nil { // some documents are not objects
				c.objects[name] = o
			}
		}
		out = append(out, c)
	}
	return out
}

func TestInjectLabelsAsUpstream(t *testing.T) {
	for _, c := range corpusCases(t, "merge/inject-*.yaml") {
		t.Run(c.name, func(t *testing.T) {
			keys := gardenerKeys()
			got, err := keys.decorate(&Set{Name: "x", InjectLabels: c.strings(t, "injectLabels")}, c.objects["desired"])
			require.NoError(t, err)
			dropBookkeeping(got)
			for _, o := range []*unstructured.Unstructured{got, c.objects["expected"]} {
				normalize(o)
				dropEmptyMetadata(o)
			}
			assert.Equal(t, c.objects["expected"].Object, got.Object)
		})
	}
}

// dropBookkeeping removes the metadata that the engine adds to every object.
func dropBookkeeping(o *unstructured.Unstructured) {
	keys := gardenerKeys()
	unstructured.RemoveNestedField(o.Object, "metadata", "labels", keys.ManagedByLabel)
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", keys.Origin)
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", keys.Description)
	dropEmptyMetadata(o)
}

func dropEmptyMetadata(o *unstructured.Unstructured) {
	for _, field := range []string{"labels", "annotations"} {
		if m, ok, _ := unstructured.NestedMap(o.Object, "metadata", field); ok && len(m) == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
	}
}

// TestNoSecretInTheErrorOfAnObject covers texts in which servers and parsers repeat a Secret.
func TestNoSecretInTheErrorOfAnObject(t *testing.T) {
	c, err := newCluster("seed", restConfigOf("https://seed.example.com"), ClusterOptions{})
	require.NoError(t, err)
	defer c.Close()
	seen := 0
	for _, test := range corpusCases(t, "secrets/*.yaml") {
		raw, err := os.ReadFile(filepath.Join(corpus.Dir(t), "secrets", test.name+".yaml"))
		require.NoError(t, err)
		_, part, found := strings.Cut(string(raw), "\n--- # text\n")
		if !found {
			continue
		}
		seen++
		t.Run(test.name, func(t *testing.T) {
			part, _, _ = strings.Cut(part, "\n--- # ")
			var doc struct{ Text string }
			require.NoError(t, yaml.Unmarshal([]byte(part), &doc))
			var forbidden []string
			require.NoError(t, json.Unmarshal([]byte(test.headers["forbidden"]), &forbidden))
			require.NotEmpty(t, doc.Text)
			about := refFor("v1", "Secret", "bar", "s")
			if test.objects["desired"] == nil {
				about = Ref{}
			}
			for _, cause := range []error{statusError(422, doc.Text), statusError(500, doc.Text), statusError(403, doc.Text), plainError(doc.Text)} {
				e := c.objectErrorFor(about, "apply", cause)
				for _, secret := range forbidden {
					assert.NotContains(t, e.Error()+e.Hint, secret)
				}
				assert.Contains(t, e.Error(), "cluster seed")
			}
		})
	}
	assert.NotZero(t, seen)
}
