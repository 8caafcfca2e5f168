package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/corpus"
)

// corpusCase is one file: headers, and documents by name.
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
			require.NoError(t, yaml.Unmarshal([]byte(body+"\n"), &doc), file)
			if m, ok := doc.(map[string]any); ok {
				c.documents[name] = m
			}
		}
		out = append(out, c)
	}
	return out
}

// The client-side cases need the API server's defaults; package apply runs them against one.
func TestDryRunAnswersAsArgo(t *testing.T) {
	seen := 0
	for _, c := range corpusCases(t, "diff") {
		if !strings.HasPrefix(c.headers["mode"], "server-side") {
			continue
		}
		seen++
		t.Run(c.name, func(t *testing.T) {
			fields := Compare(c.documents["live"], c.documents["predicted"])
			assert.Equal(t, c.headers["expect"] == "modified", len(fields) > 0, "%+v", fields)
		})
	}
	assert.NotZero(t, seen)
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
				text += outputs(t, Compare(old, new))
			}
			if doc, ok := c.documents["text"]; ok && !quotesTheObject[c.name] {
				text += CleanText(doc["text"].(string))
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

// quotesTheObject are texts in which the server repeats a Secret. Package apply withholds such texts as a whole,
// and its tests run these cases.
var quotesTheObject = map[string]bool{"own-error-text-validation": true}

// outputs is a plan with these fields in every format.
func outputs(t *testing.T, fields []Field) string {
	t.Helper()
	p := Plan{Items: []Item{{Cluster: "c", Bundle: "b", Action: Change, Object: Ref{"v1", "Secret", "n", "s"}, Fields: fields}}}
	p.Sort()
	var b strings.Builder
	for _, format := range []string{FormatText, FormatMarkdown, FormatJSON} {
		require.NoError(t, Print(&b, p, format, false))
	}
	return b.String()
}
