// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/operator"
)

// TestSelectOwner: the name of a landscape suffices, as for all other commands.
func TestSelectOwner(t *testing.T) {
	owners := []operator.TreeOwner{{Owner: "garden.production"}, {Owner: "landscape.production"}, {Owner: "seed.a"}}
	for name, want := range map[string]string{"production": "landscape.production", "landscape.production": "landscape.production", "garden.production": "garden.production", "seed.a": "seed.a"} {
		shown, err := selectOwner(owners, []string{name})
		require.NoError(t, err, name)
		assert.Equal(t, []operator.TreeOwner{{Owner: want}}, shown, name)
	}
	shown, err := selectOwner(owners, nil)
	require.NoError(t, err)
	assert.Equal(t, owners, shown)
	_, err = selectOwner(owners, []string{"a"})
	assert.EqualError(t, err, `"a" has no inventory in this cluster, unlike garden.production, landscape.production, seed.a: `+
		"inventories of a Seed and its Shoots are in the seed, others in the runtime cluster")
	assert.ErrorAs(t, err, new(commands.Finding))
}

// TestTreeReportsInventoryClusters: for the virtual garden, which has no inventories, the message
// names the clusters that have them.
func TestTreeReportsInventoryClusters(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncurrent-context: seed\ncontexts:\n- {name: virtual, context: {}}\n- {name: runtime, context: {}}\n- {name: seed, context: {}}\n"), 0o600))
	flags := &objectFlags{kubeconfig: kubeconfig, context: "virtual"}
	assert.Equal(t, `neither "local" nor any other owner has an inventory in this cluster: the seed has the inventories of a Seed and its Shoots, and the `+
		"runtime cluster has all others; other contexts of the kubeconfig are runtime, seed (--context)", noInventoriesText([]string{"local"}, flags.otherContexts()))
	flags.context = ""
	assert.Equal(t, []string{"runtime", "virtual"}, flags.otherContexts())
	assert.Empty(t, (&objectFlags{kubeconfig: "/nowhere"}).otherContexts())
	assert.Contains(t, noInventoriesText(nil, nil), "no owner has an inventory in this cluster")
}

func TestTreeReportsStaleOwners(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	since := now.Add(-5 * time.Minute)
	var b strings.Builder
	require.NoError(t, printTree(&b, []operator.TreeOwner{{Owner: "garden.g"}, {Owner: "seed.one", StaleRole: &landscape.StaleRole{Lease: "garden/x", Holder: "g-1", LastRenewal: &since}}}, now))
	assert.Equal(t, "garden.g\nseed.one  (not reconciled: g-1 last renewed its lease garden/x 5m ago)\n0 objects\n", b.String())
}

// TestTreeReportsOtherOwners: an object that another owner has is not counted twice.
func TestTreeReportsOtherOwners(t *testing.T) {
	var b strings.Builder
	require.NoError(t, printTree(&b, []operator.TreeOwner{{Owner: "landscape.one", Bundles: []operator.TreeBundle{{Name: "declarations", Cluster: "runtime", Objects: []operator.TreeObject{
		{Object: "ConfigMap a/b", Source: "b.yaml:1", OwnedBy: "landscape.two"}, {Object: "ConfigMap a/c", OtherOwners: []string{"landscape.two"}}}}}}}, time.Time{}))
	assert.Equal(t, "landscape.one\n└─ declarations on runtime\n   ├─ ConfigMap a/b  (b.yaml:1)  declared here, but landscape.two has it\n"+
		"   └─ ConfigMap a/c  also in the inventory of landscape.two\n1 object\n", b.String())
}

// TestTreeIsPrintable: text of inventories can neither control the terminal nor add lines.
func TestTreeIsPrintable(t *testing.T) {
	const evil = "x\x1b[2J\u202e\nlandscape.other"
	var b strings.Builder
	require.NoError(t, printTree(&b, []operator.TreeOwner{{Owner: evil, Bundles: []operator.TreeBundle{{Name: evil, Cluster: evil, Error: evil,
		Objects: []operator.TreeObject{{Object: evil, Source: evil, Objects: []operator.TreeObject{{Object: evil}}}}}}}}, time.Time{}))
	assert.NotRegexp(t, "[\x1b\u202e]", b.String())
	assert.Len(t, strings.Split(b.String(), "\n"), 7, b.String())
}
