// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// corpusCase is one file with headers, and documents by name.
type corpusCase struct {
	name      string
	headers   map[string]string
	documents map[string]map[string]any
}

func (c corpusCase) list(t *testing.T, header string) []string {
	var out []string
	if text := c.headers[header]; text != "" {
		require.NoError(t, json.Unmarshal([]byte(text), &out), header)
	}
	return out
}

func corpusCases(t *testing.T, folder string) []corpusCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Join(corpus.Dir(t), folder), "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []corpusCase
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		c := corpusCase{name: strings.TrimSuffix(filepath.Base(file), ".yaml"), headers: map[string]string{}, documents: map[string]map[string]any{}}
		parts := strings.Split("\n"+string(raw), "\n--- # ")
		for _, line := range strings.Split(parts[0], "\n") {
			if k, v, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": "); ok {
				c.headers[k] = v
			}
		}
		for _, part := range parts[1:] {
			name, body, _ := strings.Cut(part, "\n")
			var doc any
			text, err := yaml.YAMLToJSON([]byte(body + "\n"))
			require.NoError(t, err, file)
			require.NoError(t, utiljson.Unmarshal(text, &doc), file)
			if m, ok := doc.(map[string]any); ok {
				c.documents[name] = m
			}
		}
		out = append(out, c)
	}
	return out
}

// TestDryRunMatchesArgo checks comparisons of objects from an API server with the corpus.
func TestDryRunMatchesArgo(t *testing.T) {
	seen := 0
	for _, c := range corpusCases(t, "diff") {
		if !strings.HasPrefix(c.headers["mode"], "server-side") {
			continue
		}
		seen++
		t.Run(c.name, func(t *testing.T) {
			fields := redact.Compare(c.documents["live"], c.documents["predicted"])
			assert.Equal(t, c.headers["expect"] == "modified", len(fields) > 0, "%+v", fields)
		})
	}
	assert.NotZero(t, seen)
}

// decidedByOwnership are cases of the corpus whose live object has undeclared fields. They are a
// difference only for some owners, which only an API server knows. Package apply runs these cases
// against one. Between two renderings, a field on one side only is always a difference.
var decidedByOwnership = map[string]string{
	"argo-cluster-scoped-namespace":           "the API server drops the namespace",
	"argo-ignored-path-three-way":             "there are no ignore rules: a field that others decide on is left out of the declaration",
	"argo-ignored-path-two-way":               "there are no ignore rules: a field that others decide on is left out of the declaration",
	"argo-live-only":                          "in two renderings an object that is in the first only is deleted",
	"argo-mutatingwebhookconfig":              "an injected certificate, and a field that this version of the API requires",
	"argo-namespace-only-in-live":             "the namespace comes with the request",
	"argo-serviceaccount-secrets":             "a controller adds Secrets to ServiceAccounts",
	"argo-smd-deployment-defaults":            "a controller adds its annotation",
	"argo-spinnaker-sa":                       "a controller adds Secrets to ServiceAccounts",
	"own-custom-resource-extra-field-two-way": "a default of a definition that is not known",
	"own-custom-resource-list-item-defaulted": "a default of a definition that is not known",
	"own-restartedat-in-live":                 "an annotation of kubectl",
	"own-sidecar-injected-three-way":          "a container of a webhook",
	"own-webhook-cabundle-injected":           "an injected certificate",
}

// betterThanArgo are cases with another verdict, and the reason.
var betterThanArgo = map[string]string{
	"own-rbac-rules-order": "rules mean the same in any order, and nothing restarts with them",
}

// TestRenderingComparisonMatchesArgo: formatting, insignificant order and defaults are not
// differences.
func TestRenderingComparisonMatchesArgo(t *testing.T) {
	for _, c := range corpusCases(t, "diff") {
		if strings.HasPrefix(c.headers["mode"], "server-side") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			fields := redact.Masking{}.CompareMeaning(c.documents["live"], c.documents["desired"])
			want := strings.HasPrefix(c.headers["expect"], "modified")
			if should := c.headers["should"]; should != "" {
				want = strings.HasPrefix(should, "modified")
			}
			reason := decidedByOwnership[c.name] + betterThanArgo[c.name]
			if reason != "" {
				assert.NotEqual(t, want, len(fields) > 0, "needs no waiver any more: %s", reason)
				return
			}
			assert.Equal(t, want, len(fields) > 0, "%+v", fields)
		})
	}
}

func TestNoSecretInAnyOutput(t *testing.T) {
	for _, c := range corpusCases(t, "secrets") {
		t.Run(c.name, func(t *testing.T) {
			text := ""
			for _, pair := range [][2]string{{"live", "desired"}, {"desired", "live"}, {"", "desired"}, {"live", ""}} {
				old, new := c.documents[pair[0]], c.documents[pair[1]]
				if old == nil && new == nil {
					continue
				}
				text += allFormats(t, redact.Compare(old, new)) + allFormats(t, redact.NewMasking(nil).CompareMeaning(old, new))
			}
			if doc, ok := c.documents["text"]; ok && !quotingTexts[c.name] {
				text += redact.Text(doc["text"].(string))
			}
			for _, secret := range c.list(t, "forbidden") {
				assert.NotContains(t, text, secret)
			}
			for _, name := range c.list(t, "visible") {
				assert.Contains(t, text, name)
			}
		})
	}
}

// quotingTexts are texts in which the server repeats a Secret. Package apply withholds such
// texts entirely, and its tests run these cases.
var quotingTexts = map[string]bool{"own-error-text-validation": true}

// allFormats prints a plan with these fields in every format.
func allFormats(t *testing.T, fields []change.Field) string {
	t.Helper()
	p := change.Plan{Items: []change.Item{{Cluster: "c", Bundle: "b", Action: change.Change, Object: change.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "n", Name: "s"}, Fields: fields}}}
	p.SortAndCount()
	var b strings.Builder
	for _, format := range []string{FormatText, FormatMarkdown, FormatJSON, FormatHTML} {
		require.NoError(t, Print(&b, p, format, false))
	}
	return b.String()
}
