// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/render"
)

// TestUnreached: every format counts the skipped owners, with and without changes.
func TestUnreached(t *testing.T) {
	u := CountUnaffected([]render.Owner{{Kind: "garden"}, {Kind: "seed"}, {Kind: "shoot"}, {Kind: "shoot"}, {Kind: "shoot"}})
	assert.Equal(t, change.UnaffectedOwners{Gardens: 1, Seeds: 1, Shoots: 3}, u)
	assert.Empty(t, unaffectedText(change.UnaffectedOwners{}))

	changed := change.Plan{Unaffected: u, Items: []change.Item{{Cluster: "c", Bundle: "b", Action: change.Create, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "a"}}}}
	changed.SortAndCount()
	one := Report{Landscapes: []LandscapePlan{{Plan: changed}}}
	none := Report{Landscapes: []LandscapePlan{{Plan: change.Plan{Unaffected: u}}}}
	two := Report{Landscapes: []LandscapePlan{{"a", changed}, {"b", change.Plan{Unaffected: change.UnaffectedOwners{Seeds: 1}}}}}
	for want, r := range map[string]Report{
		"Not affected, and so neither rendered nor counted: 1 Garden, 1 Seed, 3 Shoots.":  one,
		"unchanged). Not affected, and so neither rendered nor counted: 1 Garden, 1 Seed": none,
		"neither rendered nor counted: 1 Garden, 2 Seeds, 3 Shoots.":                      two,
	} {
		for _, format := range []string{FormatText, FormatMarkdown, FormatHTML} {
			var out bytes.Buffer
			require.NoError(t, r.Print(&out, PrintOptions{Format: format}))
			assert.Contains(t, out.String(), want, format)
		}
	}
	read := func(r Report) (p change.Plan) {
		var out bytes.Buffer
		require.NoError(t, r.Print(&out, PrintOptions{Format: FormatJSON}))
		require.NoError(t, json.Unmarshal(out.Bytes(), &p))
		return p
	}
	assert.Equal(t, u, read(one).Unaffected)
	assert.Equal(t, u, read(none).Unaffected)
	assert.Equal(t, change.UnaffectedOwners{Gardens: 1, Seeds: 2, Shoots: 3}, read(two).Unaffected)
}

// TestHeldItemIsOneRow: a held item is one row, with its effect after approval.
func TestHeldItemIsOneRow(t *testing.T) {
	before := []ClusterBundle{bundlePlace(t, "c", "b", "{apiVersion: v1, kind: Namespace, metadata: {name: old}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: old}}")}
	p := CompareBundles(before, nil)
	permit.Gate{Protected: []string{"Namespace", "ConfigMap"}}.MarkHeld(&p, nil)
	var rows []string
	for _, i := range Impacts(p) {
		rows = append(rows, i.Effect+": "+shownList(refNames(i.Objects)))
	}
	assert.Equal(t, []string{
		"delete is held: kind ConfigMap is protected: ConfigMap old/a",
		"delete is held: kind Namespace is protected; once approved it deletes everything in the namespace: Namespace old",
	}, rows)

	before = []ClusterBundle{bundlePlace(t, "c", "b", "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: a, namespace: n}, data: {a: b}}")}
	after := []ClusterBundle{bundlePlace(t, "c", "b", "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: a, namespace: n}, data: {a: c}}")}
	p = CompareBundles(before, after)
	permit.Gate{Protected: []string{"ConfigMap"}}.MarkHeld(&p, nil)
	require.Len(t, Impacts(p), 1)
	assert.Equal(t, "recreate is held: kind ConfigMap is protected; once approved it is deleted and created again", Impacts(p)[0].Effect)

	// Nodes that a held deletion affects are marked.
	before = renderedShoot(t, "seed", "one", "22.04", "0123456789abcdef")
	p = CompareBundles(before, nil)
	permit.Gate{Protected: []string{"Worker"}}.MarkHeld(&p, nil)
	require.Len(t, NodeChanges(p), 1)
	assert.Equal(t, []string{"the pool is removed", "which is held"}, NodeChanges(p)[0].Causes)
}
