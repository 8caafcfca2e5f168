// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/render"
)

// TestHibernatedShootsHaveNoNodes: a hibernated Shoot replaces no nodes, rendered or only declared.
// With a schedule it may be awake.
func TestHibernatedShootsHaveNoNodes(t *testing.T) {
	for name, c := range map[string]struct {
		hibernation, later string
		nodes              int
	}{
		"awake":              {"{}", "{}", 1},
		"disabled":           {"{enabled: false}", "{enabled: false}", 1},
		"hibernated":         {"{enabled: true}", "{enabled: true}", 0},
		"wakes up":           {"{enabled: true}", "{enabled: false}", 0},
		"goes to sleep":      {"{enabled: false}", "{enabled: true}", 0},
		"by a schedule":      {"{enabled: true, schedules: [{start: 0 20 * * *}]}", "{enabled: true, schedules: [{start: 0 20 * * *}]}", 1},
		"without a schedule": {"{enabled: true, schedules: []}", "{enabled: true, schedules: []}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			side := func(version, hash, hibernation string) (all, declared []ClusterBundle) {
				all = renderedShoot(t, "s", "a", version, hash)
				all = append(all, renderedShoot(t, "s", "other", version, hash)...)
				for _, p := range all {
					for _, o := range p.Bundle.Objects {
						spec := map[string]any(nil)
						switch {
						case o.GetName() == "a" && o.GetKind() == "Shoot":
							spec, _ = o.Object["spec"].(map[string]any)
							declared = append(declared, p)
						case o.GetName() == "shoot--prod--a" && o.GetKind() == "Cluster":
							spec, _ = nestedValue(o.Object, "spec", "shoot", "spec").(map[string]any)
						}
						if spec != nil {
							spec["hibernation"] = object(t, "{apiVersion: v1, kind: H, h: "+hibernation+"}").Object["h"]
						}
					}
				}
				return all, declared
			}
			from, declaredFrom := side("1", "0123456789abcdef", c.hibernation)
			to, declaredTo := side("2", "fedcba9876543210", c.later)
			assert.Len(t, NodeChanges(CompareBundles(from, to)), 1+c.nodes, "the other one is awake")
			p := CompareBundles(declaredFrom, declaredTo)
			assert.Len(t, NodeChanges(p), c.nodes)
			for _, item := range p.Items {
				assert.Len(t, item.Pools, c.nodes)
			}
			gone := CompareBundles(from, nil)
			assert.Len(t, NodeChanges(gone), map[bool]int{true: 2, false: 1}[c.hibernation == "{}" || c.nodes == 1 || c.hibernation == "{enabled: false}"])
		})
	}
}

// TestNothingRestarts: a report says so if nothing else happens and that is certain.
func TestNothingRestarts(t *testing.T) {
	const says = "Nothing restarts, and nothing is recreated or deleted."
	settings := func(value string, kind string, owner render.Owner) []ClusterBundle {
		return []ClusterBundle{{Cluster: "c", Bundle: render.Bundle{Name: "b", Owner: owner, Objects: []render.Object{{Unstructured: object(t, "{apiVersion: core.gardener.cloud/v1beta1, kind: "+kind+", metadata: {name: x, namespace: garden-p}, spec: {a: "+value+"}}")}}}}}
	}
	cloudProfile := func(value string) []ClusterBundle { return settings(value, "CloudProfile", render.Owner{}) }
	shoot := func(value string) []ClusterBundle { return settings(value, "Shoot", render.Owner{}) }
	cluster := func(value string) []ClusterBundle {
		return settings(value, "Cluster", render.Owner{Kind: "shoot", Namespace: "garden-p", Name: "x"})
	}
	assert.Contains(t, Markdown(CompareBundles(cloudProfile("b"), cloudProfile("c")), MaxMarkdown), says)
	assert.NotContains(t, Markdown(CompareBundles(cloudProfile("b"), nil), MaxMarkdown), says)
	assert.NotContains(t, Markdown(CompareBundles(nil, nil), MaxMarkdown), says, "No changes says it")
	assert.NotContains(t, Markdown(CompareBundles(shoot("b"), shoot("c")), MaxMarkdown), says, "it is not rendered, who knows")
	assert.Contains(t, Markdown(CompareBundles(append(shoot("b"), cluster("b")...), append(shoot("c"), cluster("c")...)), MaxMarkdown), says)
	noted := CompareBundles(cloudProfile("b"), cloudProfile("c"))
	noted.Notes = []string{"Secrets were left out"}
	assert.NotContains(t, Markdown(noted, MaxMarkdown), says)
}
