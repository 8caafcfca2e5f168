// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// rulesFolder contains the rules, each with objects that break it.
var rulesFolder = filepath.Join("..", "..", "..", "schemas", "rules")

// validObject returns an object that satisfies all rules of a kind (named as in
// structure.RulesName).
func validObject(t testing.TB, kind string) *unstructured.Unstructured {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join(rulesFolder, strings.ToLower(kind), "good.yaml")); err == nil {
		return decodeManifest(t, data)[0]
	}
	file := map[string]string{
		"Garden": "garden/garden.yaml", "CloudProfile": "gardenconfig/cloudprofile.yaml", "Seed": "seeds/local.yaml",
		"Project": "projects/local/project.yaml", "Shoot": "projects/local/shoot.yaml", "Landscape": "landscape.yaml",
	}[kind]
	require.NotEmpty(t, file, kind)
	object := landscapeObject(t, file, kind)
	if kind == "Landscape" {
		object.SetNamespace("garden") // a file has none
	}
	return object
}

// ruleCase is an entry of rules/KIND/tests.yaml; other fields are for the tests of the rules.
type ruleCase struct {
	Rule   string         `json:"rule"`
	Kind   string         `json:"kind"`
	Object map[string]any `json:"object"`
	Old    map[string]any `json:"old"`
}

// ruleCases returns the entries about kinds that the webhooks cover.
func ruleCases(t *testing.T) map[string][]ruleCase {
	cases := map[string][]ruleCase{}
	for _, gvk := range schemas.KnownKinds() {
		kind := structure.RulesName(gvk)
		if gvk.Group == "" || cases[kind] != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(rulesFolder, strings.ToLower(kind), "tests.yaml"))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		var entries []ruleCase
		require.NoError(t, yaml.Unmarshal(data, &entries), kind)
		cases[kind] = entries
	}
	return cases
}

// checkRules: the API server and the rules reject and accept the same objects. In short mode it
// checks every eighth case, which still shows a change in the webhooks.
func checkRules(t *testing.T, w *testServer) {
	every := 1
	if testing.Short() {
		every = 8
	}
	for kind, cases := range ruleCases(t) {
		for i, c := range cases {
			if c.Kind == "" {
				c.Kind = kind
			}
			if i%every != 0 {
				continue
			}
			if slices.Contains([]string{"Secret", "ConfigMap", "Namespace"}, c.Kind) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%03d %s", kind, i, c.Rule), func(t *testing.T) {
				object := validObject(t, c.Kind)
				mergeFields(object.Object, c.Object)
				change := objectChange{object: object}
				if c.Old != nil {
					change.old = validObject(t, c.Kind)
					mergeFields(change.old.Object, c.Old)
				}
				w.compareErrors(t, change)
			})
		}
	}
	// Most findings do not come from a definition.
	require.Greater(t, w.byWebhook, 200/every)
	require.Greater(t, w.byDefinition, 20/every)
	require.Greater(t, w.allowed, 20/every)
}
