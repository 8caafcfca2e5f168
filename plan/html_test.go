// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
)

func page(t *testing.T, r Report) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, r.Print(&out, PrintOptions{Format: FormatHTML}))
	return out.String()
}

// TestPageIsSelfContained: the page loads nothing, and its policy allows only its own code.
func TestPageIsSelfContained(t *testing.T) {
	text := page(t, Report{Landscapes: []LandscapePlan{{Plan: example()}}})
	for _, pattern := range []string{`src\s*=`, `href\s*=`, `url\(`, `@import`, `https?://`, `eval\(`, `innerHTML`, `\son\w+\s*=\s*"`, `\sstyle\s*=`} {
		assert.NotRegexp(t, regexp.MustCompile(pattern), text, pattern)
	}
	for tag, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		found := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(text, -1)
		require.Len(t, found, 1)
		policy := strings.ReplaceAll(text, "&#43;", "+")
		assert.Contains(t, policy, directive+" 'sha256-"+sha256Base64(found[0][1])+"'", "the hash of what stands in the page")
	}
	assert.Contains(t, text, "default-src 'none'")
}

func TestPageEscapes(t *testing.T) {
	const bad = `"><script>alert(1)</script><img src=x onerror=alert(1)>'{{.}}`
	p := change.Plan{From: bad, To: bad, Notes: []string{bad}, Items: []change.Item{
		{Cluster: bad, Owner: bad, Component: bad, Bundle: bad, Action: change.Change, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: bad, Name: bad}, Reason: bad, Origin: bad, Consequences: []string{bad},
			Fields: []change.Field{{Path: bad, Old: bad, New: bad + "\n" + bad, Manager: bad}, {Path: bad, Hidden: true}}},
		{Cluster: bad, Owner: "shoot " + bad, Action: change.Change, Object: change.Ref{APIVersion: "extensions.gardener.cloud/v1alpha1", Kind: "Worker", Namespace: bad, Name: bad},
			Pools: []change.PoolChange{{Pool: bad, Effect: change.NodesReplaced, Causes: []string{bad}, Surge: bad}}},
	}}
	p.SortAndCount()
	text := page(t, Report{Landscapes: []LandscapePlan{{bad, p}, {bad, p}}})
	assert.NotContains(t, text, "<script>alert")
	assert.NotContains(t, text, "<img")
	assert.Equal(t, 1, strings.Count(text, "<script>"))
	assert.Contains(t, text, "&lt;script&gt;alert(1)")
}

func TestPageWithoutChanges(t *testing.T) {
	text := page(t, Report{Landscapes: []LandscapePlan{{Plan: change.Plan{Unchanged: 3}}}})
	assert.Contains(t, text, "No changes (3 objects")
	assert.NotContains(t, text, "<table>")
	assert.NotContains(t, text, "<script>")
}
