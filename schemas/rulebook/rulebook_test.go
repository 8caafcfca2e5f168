// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// TestPageIsCurrent checks docs/reference/rules.md against the generator, and the syntax of
// schemas/coverage.tsv.
func TestPageIsCurrent(t *testing.T) {
	page, err := RenderPage(filepath.Join("..", "coverage.tsv"))
	require.NoError(t, err)
	file, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "rules.md"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(page, file), "docs/reference/rules.md is not current; run `make generate`")
}

// TestRuleIDsAreUnique checks that an id belongs to one rule, which may have several kinds.
func TestRuleIDsAreUnique(t *testing.T) {
	own, err := schemas.Rules()
	require.NoError(t, err)
	all, err := Rules()
	require.NoError(t, err)
	type use struct{ id, kind string }
	seen := map[use]bool{}
	for _, rule := range all {
		assert.False(t, seen[use{rule.ID, rule.Kind}], "%s is there twice", rule.ID)
		seen[use{rule.ID, rule.Kind}] = true
	}
	for _, rule := range own {
		found, err := FindRule(rule.ID)
		require.NoError(t, err)
		assert.Len(t, found, 1, "%s is a rule of objects and one across landscapes", rule.ID)
	}
}

func TestReadCoverage(t *testing.T) {
	rules := []schemas.Rule{{ID: "seed/name"}}
	line := func(columns ...string) []byte {
		return []byte(coverageHeader + "\n" + strings.Join(columns, "\t") + "\n")
	}
	for name, test := range map[string]struct {
		data  []byte
		fault string
	}{
		"a rule":               {line("a-1", "Seed", "seed.go", "what", "seed/name structure default", ""), ""},
		"a reason":             {line("a-1", "Seed", "seed.go", "what", "", "only the API knows"), ""},
		"no head":              {[]byte("a\tb\n"), "line 1 must be"},
		"columns are missing":  {line("a-1", "Seed"), "line 2: has 2 columns, but must have 6"},
		"nothing is said":      {line("a-1", "Seed", "seed.go", "what", "", ""), "line 2: a-1 has neither a rule nor a reason"},
		"the statement is not": {line("a-1", "Seed", "seed.go", "", "structure", ""), "line 2: id, topic, source and statement must be set"},
		"no such rule":         {line("a-1", "Seed", "seed.go", "what", "seed/nmae", ""), `line 2: a-1 names the rule "seed/nmae", which does not exist`},
		"an id twice":          {append(line("a-1", "Seed", "seed.go", "what", "structure", ""), "a-1\tSeed\tseed.go\twhat\tstructure\t\n"...), "line 3: the id a-1 exists twice"},
	} {
		t.Run(name, func(t *testing.T) {
			statements, err := ReadCoverage(test.data, rules)
			if test.fault != "" {
				assert.ErrorContains(t, err, test.fault)
				return
			}
			require.NoError(t, err)
			assert.Len(t, statements, 1)
		})
	}
}

// TestExplainEverything checks every field of every kind, by every name of its kind.
func TestExplainEverything(t *testing.T) {
	kinds, err := schemas.StructuralKinds()
	require.NoError(t, err)
	count := 0
	for _, kind := range kinds {
		var ask func(path string, n *structure.Node)
		ask = func(path string, n *structure.Node) {
			count++
			found, node, _, err := resolveField(kind, path)
			require.NoError(t, err, "%s.%s", kind.GVK.Kind, path)
			assert.Equal(t, path, found.String())
			assert.NotEmpty(t, typeWords(node))
			_, err = functionDefault(kind, found)
			require.NoError(t, err)
			for _, name := range n.InnermostItems().FieldNames() {
				ask(fieldpath.Parse(path).Append(name).String(), n.InnermostItems().Properties[name])
			}
		}
		for _, name := range kind.Root.FieldNames() {
			ask(name, kind.Root.Properties[name])
		}
		for _, name := range kindNames(kind)[3:] {
			e, err := Explain(name + ".metadata")
			require.NoError(t, err)
			assert.Equal(t, kind.GVK.Kind, e.Kind)
		}
	}
	assert.Greater(t, count, 2000)
}

func TestExplain(t *testing.T) {
	ids := func(mentions []RuleSummary) []string {
		var out []string
		for _, m := range mentions {
			out = append(out, m.ID)
		}
		return out
	}
	e, err := Explain("shoot.spec.provider.workers[0].maximum")
	require.NoError(t, err)
	assert.Equal(t, []any{"Shoot", "spec.provider.workers.maximum", "whole number", true}, []any{e.Kind, e.Field, e.Type, e.Required})
	assert.Equal(t, []string{"shoot/worker-minimum-maximum", "shoot/worker-system-components"}, ids(e.Rules))
	assert.Contains(t, ids(e.ParentRules), "shoot/nodes-limit")
	assert.NotContains(t, ids(e.ParentRules), "structure")

	e, err = Explain("Shoot.spec.region")
	require.NoError(t, err)
	at := slices.IndexFunc(e.Rules, func(m RuleSummary) bool { return m.ID == "shoot/immutable" })
	require.GreaterOrEqual(t, at, 0)
	assert.Equal(t, schemas.ClassChange, e.Rules[at].Class)

	e, err = Explain("Shoot.spec.purpose")
	require.NoError(t, err)
	assert.Equal(t, "evaluation", e.Default)
	assert.Contains(t, e.Values, "production")

	e, err = Explain("Shoot.spec.maintenance.timeWindow.begin")
	require.NoError(t, err)
	assert.Nil(t, e.Default, "it depends on the name")
	assert.NotEmpty(t, e.Constraints)

	e, err = Explain("Shoot.metadata.annotations[gardener.cloud/operation]")
	require.NoError(t, err)
	assert.Contains(t, ids(append(e.Rules, e.ParentRules...)), "shoot/operations")
}

// TestRequiredFieldDocumentation checks that the documentation of the field of
// garden/sni-domains does not call it optional.
func TestRequiredFieldDocumentation(t *testing.T) {
	e, err := Explain("garden.spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns")
	require.NoError(t, err)
	assert.True(t, slices.ContainsFunc(e.Rules, func(m RuleSummary) bool { return m.ID == "garden/sni-domains" }))
	assert.Contains(t, e.Documentation, "At least one")
	assert.NotContains(t, e.Documentation, "Unset:")
}

func TestKindsOfTheSameName(t *testing.T) {
	for question, want := range map[string]string{
		"Worker":                                          "extensions.gardener.cloud/v1alpha1",
		"extensions.Worker.spec.pools":                    "extensions.gardener.cloud/v1alpha1",
		"worker.extensions.gardener.cloud":                "extensions.gardener.cloud/v1alpha1",
		"Extension":                                       "operator.gardener.cloud/v1alpha1",
		"extensions.Extension":                            "extensions.gardener.cloud/v1alpha1",
		"Bastion.operations.gardener.cloud.spec":          "operations.gardener.cloud/v1alpha1",
		"ControllerDeployment.helm":                       "core.gardener.cloud/v1",
		"ControllerDeployment.v1beta1.type":               "core.gardener.cloud/v1beta1",
		"ControllerDeployment.v1.core.gardener.cloud":     "core.gardener.cloud/v1",
		"ConfigMap.data":                                  "v1",
		"BackupBucket.spec.credentialsRef":                "core.gardener.cloud/v1beta1",
		"BackupBucket.v1alpha1.extensions.gardener.cloud": "extensions.gardener.cloud/v1alpha1",
	} {
		e, err := Explain(question)
		require.NoError(t, err, question)
		assert.Equal(t, want, e.APIVersion, question)
	}
	e, err := Explain("Extension")
	require.NoError(t, err)
	assert.Equal(t, []string{"Extension.v1alpha1.extensions.gardener.cloud"}, e.OtherKinds)
}

func TestUnknownNames(t *testing.T) {
	for question, want := range map[string]string{
		"Shot":                           `there is no kind "Shot"; did you mean "Shoot"?`,
		"Nonsense":                       `there is no kind "Nonsense"; known kinds are BackupBucket, `,
		"HorizontalPodAutoscaler.spec":   `HorizontalPodAutoscaler is a kind of Kubernetes, which only overlays change; kubectl explain HorizontalPodAutoscaler describes its fields`,
		"deployment":                     `kubectl explain Deployment describes its fields`,
		"Shoot.spec.provder":             `Shoot.spec has no field "provder"; did you mean "provider"?`,
		"Shoot.spec.purpose.x":           `Shoot.spec.purpose has no fields`,
		"Shoot.spec.provider.workers.zz": `Shoot.spec.provider.workers has no field "zz"; its fields are annotations, `,
	} {
		_, err := Explain(question)
		assert.ErrorContains(t, err, want)
	}
	_, err := FindRule("shoot/purpos")
	assert.ErrorContains(t, err, `did you mean "shoot/purpose"?`)
	_, err = RulesOfKindName("Shoot.spec")
	assert.ErrorContains(t, err, "takes a kind")
}

func TestComplete(t *testing.T) {
	for begin, want := range map[string][]string{
		"sho":               {"Shoot", "ShootState"},
		"Shoot.spec.prov":   {"Shoot.spec.provider"},
		"Shoot.nothing.":    {},
		"extensions.Worker": {"extensions.Worker"},
	} {
		offers, err := CompleteFieldReference(begin)
		require.NoError(t, err)
		assert.Equal(t, want, append([]string{}, offers...), begin)
	}
}

// TestRuleLinks checks that docs/reference/rules.md has the anchor of each rule, and the rule
// there.
func TestRuleLinks(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "rules.md"))
	require.NoError(t, err)
	sections := map[string]string{}
	for _, section := range strings.Split(string(data), "\n### ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		if _, twice := sections[headingAnchor(title)]; !twice { // GitHub numbers repeated anchors
			sections[headingAnchor(title)] = text
		}
	}
	all, err := Rules()
	require.NoError(t, err)
	for _, rule := range all {
		_, name, _ := strings.Cut(RuleLink(rule), "/docs/reference/rules.md#")
		assert.Contains(t, sections[name], "\n| "+rule.ID+" |", RuleLink(rule))
	}
	assert.Equal(t, "every-kind-of-extensionsgardenercloud", headingAnchor(kindHeading("extensions.*")))
}
