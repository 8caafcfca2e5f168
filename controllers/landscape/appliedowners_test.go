// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// TestStatusOfAppliedOwners checks that the status of invalid files shows the previously
// applied owners, and claims nothing about missing declarations.
func TestStatusOfAppliedOwners(t *testing.T) {
	w := newFolderLandscape(t, "unreadable", map[string]string{"map.yaml": mapFile("unreadable")})
	c := w.mustSync()
	seed := ownerRef(render.Owner{Kind: owner.Seed, Name: "far"})
	shoot := ownerRef(render.Owner{Kind: owner.Shoot, Namespace: "garden-a", Name: "b"})
	inventory := c.declarationInventory(Virtual)
	entries, err := inventory.Load(testContext(t))
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	require.NoError(t, inventory.Save(testContext(t), append(entries, apply.Entry{Ref: seed}, apply.Entry{Ref: shoot})))

	w.remove("map.yaml")
	w.write("seed.yaml", "what: is: this")
	l, violations, err := landscapes.Load(t.Context(), w.dir, landscapes.Options{})
	require.NoError(t, err)
	require.NotEmpty(t, violations)
	view, err := NewFromInventories(l, Options{Connections: Connections{Configs: c.options.Connections.Configs}, Clock: w.clock, Permits: Permits{Gate: permit.DefaultGate()}})
	require.NoError(t, err)
	defer view.Close()
	for range 2 { // as with --watch
		s := view.Status(testContext(t), StatusOptions{Invalid: "its files are not valid", Live: true, Components: true})
		assert.False(t, s.Ready)
		assert.False(t, s.Live, "nothing can be judged")
		assert.Empty(t, s.Undeclared)
		require.Len(t, s.Owners, 2)
		assert.Equal(t, "garden-a/b", s.Owners[0].Namespace+"/"+s.Owners[0].Name, "a Shoot is shown, too, where nobody knows its Seed")
		assert.Contains(t, s.Owners[1].Error, "seed far: no access to cluster far")
		assert.Equal(t, "its files are not valid", s.Invalid)
	}
}

// TestStatusOfAppliedObjects checks that a landscape without owners is not reported as
// never applied.
func TestStatusOfAppliedObjects(t *testing.T) {
	w := newFolderLandscape(t, "ownerless", map[string]string{"map.yaml": mapFile("ownerless")})
	c := w.mustSync()
	w.write("seed.yaml", "what: is: this")
	l, _, err := landscapes.Load(t.Context(), w.dir, landscapes.Options{})
	require.NoError(t, err)
	view, err := NewFromInventories(l, Options{Connections: Connections{Configs: c.options.Connections.Configs}, Clock: w.clock, Permits: Permits{Gate: permit.DefaultGate()}})
	require.NoError(t, err)
	defer view.Close()
	s := view.Status(testContext(t), StatusOptions{Invalid: "its files are not valid"})
	assert.False(t, s.Ready)
	var said []string
	for _, o := range s.Owners {
		said = append(said, o.Error)
	}
	assert.Contains(t, said, "previously applied objects stay, but none is a Garden, Seed or Shoot with conditions to show: 1 on cluster virtual")
	assert.NotContains(t, strings.Join(said, "\n"), "was applied to cluster runtime yet")
}

func TestClustersWithAccess(t *testing.T) {
	l := &landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}
	assert.Equal(t, []string{Runtime, Virtual}, Access{}.ClustersWithAccess(l))
	l.Config.Spec.Clusters = &landscapev1alpha1.Clusters{Seeds: map[string]landscapev1alpha1.ClusterAccess{"b": {}}}
	access := Access{KubeconfigByCluster: map[string]string{"a": "x", Runtime: "y"}}
	assert.Equal(t, []string{Runtime, Virtual, "a", "b"}, access.ClustersWithAccess(l))
}
