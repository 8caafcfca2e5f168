// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
)

var update = flag.Bool("update", false, "write the golden files anew")

// example has one item of each kind that is printed.
func example() change.Plan {
	p := change.Plan{From: "main", To: "work tree", Unchanged: 7, Notes: []string{"the base is *not* valid"}, Items: []change.Item{
		{Cluster: "runtime", Owner: "garden local", Component: "garden/vpa", Bundle: "vpa", Action: change.Create, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "new"}, Origin: "vpa/objects.cue:7"},
		{Cluster: "runtime", Owner: "garden local", Component: "garden/vpa", Bundle: "vpa", Action: change.Change, Object: change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "garden", Name: "vpa-updater"}, Consequences: []string{"rolls its pods"}, Fields: []change.Field{
			{Path: "spec.replicas", Old: int64(1), New: int64(2)},
			{Path: "spec.template.spec.containers[name=app].image", Old: "x:1", New: "x:2", Manager: "kubectl-edit"},
			{Path: "spec.template.spec.nodeSelector", New: map[string]any{"a": "b"}},
			{Path: "spec.paused", Old: true},
			{Path: "spec.empty", Old: "", New: "x"},
			{Path: "metadata.labels", Old: map[string]any{"a": "b", "one": "a longer value to fill the line", "two": "another longer value to fill the line"}, New: map[string]any{"one": "a longer value to fill the line", "two": "another longer value to fill the line", "c": "d"}},
		}},
		{Cluster: "runtime", Owner: "garden local", Component: "garden/vpa", Bundle: "vpa", Action: change.Change, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "text"}, Fields: []change.Field{
			{Path: "data[config.yaml]", Old: "one\ntwo\nthree\n", New: "one\n2\nthree\n"},
			{Path: "data.newline", Old: "x", New: "x\n"},
			{Path: "data.fence", New: "```\n</details>\n````\n"},
			{Path: "data.minus", Old: "a\n-- old\n", New: "a\n"},
			{Path: "data.terminal", New: "\x1b[31mred"},
		}},
		{Cluster: "runtime", Owner: "garden local", Component: "garden/vpa", Bundle: "vpa", Action: change.Change, Object: change.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "s"}, Fields: []change.Field{{Path: "data.password", Hidden: true, OldHash: "0123456789", NewHash: "abcdef0123"}, {Path: "data.sealed", Hidden: true, Encrypted: true}, {Path: "data.unknown", Hidden: true}}},
		{Cluster: "runtime", Owner: "garden local", Component: "garden/vpa", Bundle: "vpa", Action: change.Recreate, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "frozen"}, Reason: "data.a cannot be changed", Consequences: []string{"is deleted and created again"}},
		{Cluster: "seed", Bundle: "old", Action: change.Delete, Object: change.Ref{APIVersion: "v1", Kind: "Namespace", Name: "gone"}, Consequences: []string{"deletes everything in the namespace"}},
		{Cluster: "seed", Bundle: "old", Action: change.Hold, Object: change.Ref{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "garden", Name: "data"}, Reason: "delete is held: kind PersistentVolumeClaim is protected"},
		{Cluster: "seed", Bundle: "old", Action: change.Adopt, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "foreign"}},
		{Cluster: "seed", Bundle: "old", Action: change.Keep, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "kept"}, Reason: "its bundle keeps objects"},
		{Cluster: "seed", Bundle: "old", Action: change.Fail, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "bad|<b>"}, Reason: "told in\ntwo lines"},
		{Cluster: "seed", Bundle: "old", Action: change.Delete, Object: change.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "app"}},
		{Cluster: "seed", Bundle: "old", Action: change.Delete, Object: change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "garden", Name: "app"}},
		{Cluster: "seed", Owner: "shoot garden-p/tired", Component: "shoot/etcd-main", Bundle: "etcd-main", Action: change.Change, Object: change.Ref{APIVersion: "druid.gardener.cloud/v1alpha1", Kind: "Etcd", Namespace: "shoot--p--tired", Name: "etcd-main"}, Consequences: []string{"stops all its pods"},
			Fields: []change.Field{{Path: "spec.replicas", Old: int64(1), New: int64(0)}}},
		{Cluster: "seed", Owner: "shoot garden-p/early", Component: "shoot/kube-scheduler", Bundle: "kube-scheduler", Action: change.Change, Object: change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shoot--p--early", Name: "kube-scheduler"}, Consequences: []string{"starts its pods"},
			Fields: []change.Field{{Path: "spec.replicas", Old: int64(0), New: int64(1)}}},
	}}
	p.SortAndCount()
	return p
}

func TestPrint(t *testing.T) {
	for format, file := range map[string]string{FormatText: "plan.txt", FormatMarkdown: "plan.md", FormatJSON: "plan.json", FormatHTML: "plan.html"} {
		t.Run(format, func(t *testing.T) {
			var got bytes.Buffer
			require.NoError(t, Print(&got, example(), format, false))
			golden := filepath.Join("testdata", file)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got.String())
		})
	}
	assert.ErrorContains(t, Print(&bytes.Buffer{}, change.Plan{}, "xml", false), "text, markdown, json or html")
}

func TestPrintNothing(t *testing.T) {
	for format, want := range map[string]string{
		FormatText: "No changes (3 objects in bundles and declarations unchanged).\n", FormatMarkdown: "### Rendered changes\n\nNo changes (3 objects in bundles and declarations unchanged).\n",
	} {
		var got bytes.Buffer
		require.NoError(t, Print(&got, change.Plan{Unchanged: 3}, format, false))
		assert.Equal(t, want, got.String())
	}
	assert.Equal(t, "No changes in the rest (3 objects in bundles and declarations unchanged, 2 left out: see the notes).", SummaryLine(change.Plan{Unchanged: 3, UnreadableSecrets: 2}))
	var got bytes.Buffer
	require.NoError(t, Print(&got, change.Plan{}, FormatJSON, false))
	assert.Contains(t, got.String(), `"items": []`)
}

func TestJSONRoundTrip(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, Print(&text, example(), FormatJSON, false))
	var back change.Plan
	require.NoError(t, json.Unmarshal(text.Bytes(), &back))
	assert.Equal(t, example().Summary, back.Summary)
	assert.Len(t, back.Items, len(example().Items))
	var again bytes.Buffer
	require.NoError(t, Print(&again, back, FormatJSON, false))
	assert.JSONEq(t, text.String(), again.String())
}

func TestColor(t *testing.T) {
	var got bytes.Buffer
	require.NoError(t, Print(&got, example(), FormatText, true))
	assert.Contains(t, got.String(), "\x1b[31m- Namespace gone")
	assert.NotContains(t, got.String(), "\x1b[31mred", "what a value says to a terminal is spelled out")
}

// TestMarkdownFits: a comment has a size limit; omissions are counted, nothing is truncated.
func TestMarkdownFits(t *testing.T) {
	var p change.Plan
	for i := range 3000 {
		action := []change.Action{change.Change, change.Delete, change.Create}[i%3]
		p.Items = append(p.Items, change.Item{Cluster: fmt.Sprintf("c%d", i%7), Bundle: "b", Action: action, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprintf("object-%d", i)},
			Fields: []change.Field{{Path: "data.a", Old: strings.Repeat("`", i%9), New: strings.Repeat("x", i%100)}}})
	}
	p.Items = append(p.Items, change.Item{Cluster: "a", Bundle: "b", Action: change.Change, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "huge"},
		Fields: []change.Field{{Path: "data.a", Old: "x", New: strings.Repeat("y", 100000)}}})
	p.SortAndCount()
	for _, limit := range []int{2000, 10000, MaxMarkdown} {
		text := Markdown(p, limit)
		assert.LessOrEqual(t, len(text), limit)
		shown := 0
		for _, line := range strings.Split(text, "\n") {
			for _, sign := range []string{"! change ", "- delete ", "+ create "} {
				if strings.HasPrefix(line, sign) {
					shown++
				}
			}
			if n := 0; strings.HasPrefix(line, "  the same on ") {
				_, err := fmt.Sscanf(line, "  the same on %d objects:", &n)
				require.NoError(t, err)
				shown += n - 1
			}
		}
		assert.Positive(t, shown)
		assert.Contains(t, text, fmt.Sprintf("%d more objects do not fit", len(p.Items)-shown))
		if limit < MaxMarkdown {
			assert.Regexp(t, `\| is deleted \| c0 \|.* and \d+ more \|`, text, "deletions are counted, too")
		} else {
			assert.Equal(t, 1000, strings.Count(openText(text), "ConfigMap ns/"), "or all named")
		}
		assert.Equal(t, strings.Count(text, "<details>"), strings.Count(text, "</details>"))
	}
	assert.NotContains(t, Markdown(example(), MaxMarkdown), "not fit")
}

func TestHiddenText(t *testing.T) {
	assert.Equal(t, "data.gone: (hidden value removed: a)", hiddenText(change.Field{Path: "data.gone", Hidden: true, OldHash: "a"}))
	assert.Equal(t, "data.new: (hidden value added: b)", hiddenText(change.Field{Path: "data.new", Hidden: true, NewHash: "b"}))
	assert.Equal(t, "data.a: (encrypted value changed)", hiddenText(change.Field{Path: "data.a", Hidden: true, Encrypted: true}))
}
