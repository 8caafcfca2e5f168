// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
)

// patternFields returns the fields of an object that have a pattern.
func patternFields(props apiextensionsv1.JSONSchemaProps, field string) []string {
	var out []string
	if props.Pattern != "" {
		out = append(out, field)
	}
	for name, child := range props.Properties {
		out = append(out, patternFields(child, field+"."+name)...)
	}
	if props.Items != nil {
		out = append(out, patternFields(*props.Items.Schema, field+"[0]")...)
	}
	return out
}

// TestConfigFormsInWords: no finding about landscape.yaml shows a regular expression.
func TestConfigFormsInWords(t *testing.T) {
	crd := crds.Get(landscapev1alpha1.GroupName, configKind)
	require.NotNil(t, crd)
	fields := patternFields(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], "spec")
	require.NotEmpty(t, fields)
	for _, field := range fields {
		assert.Contains(t, configForm(field), "such as ", "no words for the form of %s", field)
	}

	for name, test := range map[string]struct{ spec, want string }{
		"share":           {"  deletionGate: {maxShare: a third}\n", `spec.deletionGate.maxShare: "a third" is not a share from 0% to 100% in whole percents, such as 25% [structure]`},
		"share, no sign":  {"  deletionGate: {maxShare: '30'}\n", `"30" is not a share from 0% to 100% in whole percents, such as 25% [structure]`},
		"share, a number": {"  deletionGate: {maxShare: 30}\n", `spec.deletionGate.maxShare: must be text, but is the number 30; write it as a share, such as 25% [structure]`},
		"version":         {"  catalogue: {version: latest}\n", `spec.catalogue.version: "latest" is not a semantic version, such as 1.2.3 or 1.2.3-rc.1 [structure]`},
		"commit":          {"  source: {url: 'https://a', ref: {commit: abc}}\n", `spec.source.ref.commit: "abc" is not a whole commit id of 40 (or 64) digits`},
		"receiver":        {"  receivers: [{name: Git Hub, type: github, secretRef: {name: a}}]\n", `spec.receivers[0].name: "Git Hub" is not a name of small letters`},
		"address":         {"  source: {url: 'git@a:b'}\n", `spec.source.url: "git@a:b" is not an address that begins with https://`},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, err := LoadFS(t.Context(), tree(map[string]string{"landscape.yaml": withSpec(test.spec)}), ".", Options{})
			require.NoError(t, err)
			found, err := l.Validate(t.Context(), schemas.Options{})
			require.NoError(t, err)
			require.Len(t, found, 1)
			assert.Contains(t, found[0].String(), test.want)
			assert.NotContains(t, found[0].Message, "^")
		})
	}
}

// TestClustersOfSeeds: each entry belongs to a Seed of the same name.
func TestClustersOfSeeds(t *testing.T) {
	seed := func(name string) string {
		return "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: " + name + "}\n"
	}
	const head = "landscape.yaml:"
	for name, test := range map[string]struct {
		seeds []string
		spec  string
		want  []string
	}{
		"right":                      {[]string{"europe"}, "      europe: {context: a}\n", nil},
		"none":                       {nil, "      {}\n", nil},
		"misspelt":                   {[]string{"europe"}, "      euorpe: {context: a}\n", []string{head + `7:7: error: Landscape test: spec.clusters.seeds[euorpe]: the landscape declares no Seed "euorpe"; did you mean europe? [landscape/config]`}},
		"two alike":                  {[]string{"eu-1"}, "      eu-1: {context: a}\n      eu-2: {context: b}\n", []string{head + `8:7: warning: Landscape test: spec.clusters.seeds[eu-2]: the landscape declares no Seed "eu-2"; its Seeds are eu-1 [landscape/config]`}},
		"something else":             {[]string{"europe", "asia"}, "      moon: {context: a}\n", []string{`warning: Landscape test: spec.clusters.seeds[moon]: the landscape declares no Seed "moon"; its Seeds are asia, europe [landscape/config]`}},
		"no Seeds":                   {nil, "      moon: {context: a}\n", []string{`warning: Landscape test: spec.clusters.seeds[moon]: the landscape declares no Seed "moon"; it declares no Seed at all [landscape/config]`}},
		"a file that cannot be read": {nil, "      moon: {context: a}\n", []string{`moon.yaml:4:1: error: a tab indents the line`}},
		"a kind that there is not":   {nil, "      moon: {context: a}\n", []string{`moon.yaml:2:7: error: Sed moon: kind: unknown kind "Sed"; did you mean Seed?`}},
		"a name with points":         {nil, "      a.b: {context: a}\n", []string{`warning: Landscape test: spec.clusters.seeds[a.b]: the landscape declares no Seed "a.b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"landscape.yaml": withSpec("  clusters:\n    seeds:\n" + test.spec)}
			for _, name := range test.seeds {
				files[name+".yaml"] = seed(name)
			}
			if name == "a file that cannot be read" {
				files["moon.yaml"] = seed("moon") + "\tspec: {}\n"
			}
			if name == "a kind that there is not" {
				files["moon.yaml"] = strings.Replace(seed("moon"), "Seed", "Sed", 1)
			}
			_, violations, err := LoadFS(t.Context(), tree(files), ".", Options{})
			require.NoError(t, err)
			require.Len(t, violations, len(test.want), "%v", violations)
			for i := range test.want {
				assert.Contains(t, violations[i].String(), test.want[i])
			}
		})
	}
}

// TestSharedClusters: each owner has its own cluster, but a Seed may be the runtime cluster.
func TestSharedClusters(t *testing.T) {
	const same = ", so both would be the same cluster; give it its own context, or pass --kubeconfig "
	for name, test := range map[string]struct{ clusters, want string }{
		"each its own":              {"{runtime: {context: a}, virtual: {context: b}, seeds: {one: {context: c}, two: {context: d}}}", ""},
		"a Seed in runtime":         {"{runtime: {context: a}, seeds: {one: {context: a}, two: {context: d}}}", ""},
		"two Seeds":                 {"{seeds: {one: {context: a}, two: {context: a}}}", "spec.clusters.seeds[two]: has the same access as spec.clusters.seeds[one]" + same + "two=PATH"},
		"two Seeds in runtime":      {"{runtime: {context: a}, seeds: {one: {context: a}, two: {context: a}}}", "spec.clusters.seeds[two]: has the same access as spec.clusters.seeds[one]"},
		"two of the environment":    {"{seeds: {one: {}, two: {}}}", "spec.clusters.seeds[two]"},
		"virtual is runtime":        {"{runtime: {context: a}, virtual: {context: a}}", "spec.clusters.virtual: has the same access as spec.clusters.runtime" + same + "virtual=PATH"},
		"a Seed is virtual":         {"{virtual: {kubeconfig: k}, seeds: {one: {kubeconfig: k}}}", "spec.clusters.seeds[one]: has the same access as spec.clusters.virtual"},
		"one file, two contexts":    {"{virtual: {kubeconfig: k, context: a}, seeds: {one: {kubeconfig: k, context: b}}}", ""},
		"one context in two files":  {"{virtual: {kubeconfig: k, context: a}, seeds: {one: {kubeconfig: l, context: a}}}", ""},
		"the same Secret":           {"{runtime: {secretRef: {name: a}}, virtual: {secretRef: {name: a}}}", "spec.clusters.virtual"},
		"another key of the Secret": {"{runtime: {secretRef: {name: a}}, virtual: {secretRef: {name: a, key: b}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"landscape.yaml": withSpec("  clusters: " + test.clusters + "\n")}
			for _, seed := range []string{"one", "two"} {
				files[seed+".yaml"] = "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: " + seed + "}\n"
			}
			_, violations, err := LoadFS(t.Context(), tree(files), ".", Options{})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				if v.Type == schemas.TypeDuplicate {
					assert.Equal(t, schemas.SeverityWarning, v.Severity)
					found = append(found, v.String())
				}
			}
			requireOne(t, found, test.want)
		})
	}
}

// TestSeedInAnotherCluster: a Seed that uses the runtime cluster must have its address ranges.
func TestSeedInAnotherCluster(t *testing.T) {
	for name, test := range map[string]struct{ context, pods, want string }{
		"the runtime cluster":     {"a", "10.1.0.0/16", ""},
		"another range":           {"a", "10.2.0.0/16", "spec.clusters.seeds[one]: has the same access as the runtime cluster, but the networks differ: pods are 10.2.0.0/16 in the Seed, and 10.1.0.0/16 in the Garden"},
		"a cluster of its own":    {"b", "10.2.0.0/16", ""},
		"a range that is not set": {"a", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations, err := LoadFS(t.Context(), tree(map[string]string{
				"landscape.yaml": withSpec("  clusters: {runtime: {context: a}, seeds: {one: {context: " + test.context + "}}}\n"),
				"garden.yaml":    "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Garden\nmetadata: {name: g}\nspec: {runtimeCluster: {networking: {pods: [10.1.0.0/16], services: [10.3.0.0/16]}}}\n",
				"seed.yaml":      "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: one}\nspec: {networks: {pods: \"" + test.pods + "\"}}\n",
			}), ".", Options{})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				if v.Field == "spec.clusters.seeds[one]" {
					assert.Equal(t, schemas.SeverityWarning, v.Severity)
					found = append(found, v.String())
				}
			}
			requireOne(t, found, test.want)
		})
	}
}

// requireOne requires one finding that contains a text, or none if the text is empty.
func requireOne(t *testing.T, found []string, want string) {
	t.Helper()
	if want == "" {
		assert.Empty(t, found)
		return
	}
	require.Len(t, found, 1)
	assert.Contains(t, found[0], want)
}
