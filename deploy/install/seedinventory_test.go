// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/deploy"
	"github.com/pergola-dev/pergola/deploy/install"
)

// TestSeedInventoriesAreSeparate: the virtual garden has the access of each seed, and a change of
// one does not affect others. An installation without a seed still writes the one inventory that
// earlier versions had for all seeds.
func TestSeedInventoriesAreSeparate(t *testing.T) {
	ctx := testContext(t)
	access := func(seed string) *deploy.Installation {
		return rendered(t, deploy.GardenletAccess, "garden", map[string]any{"gardenlet": map[string]any{"seed": seed}})
	}
	run := func(seed string) *install.Installer {
		return install.New(deploy.GardenletAccess, "garden", install.Options{Cluster: connectCluster(t), Seed: seed, Gate: permit.DefaultGate()})
	}
	there := func(ref apply.Ref) bool {
		_, err := connectCluster(t).GetLive(ctx, ref)
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
		return err == nil
	}
	account := func(seed string) apply.Ref { return object("v1", "ServiceAccount", "garden", "gardenlet-"+seed) }
	inventory := func(suffix string) apply.Ref {
		return object("v1", "ConfigMap", "garden", "pergola-install.gardenlet-access"+suffix)
	}
	for _, seed := range []string{"one", "two"} {
		ensureNamespace(t, connectCluster(t), "seed-"+seed)
	}

	_, err := run("").Apply(ctx, access("one"))
	require.NoError(t, err)
	require.True(t, there(inventory("")))
	report, err := run("two").Apply(ctx, access("two"))
	require.NoError(t, err)
	assert.Zero(t, report.Count(apply.Deleted))
	assert.True(t, there(account("one")) && there(account("two")))
	assert.True(t, there(inventory("")), "it is of the first seed")

	planned, err := run("one").Plan(ctx, access("one"))
	require.NoError(t, err)
	for _, item := range planned.Items {
		assert.NotContains(t, []change.Action{change.Delete, change.Create, change.Hold}, item.Action, item.Object)
	}
	report, err = run("one").Apply(ctx, access("one"))
	require.NoError(t, err)
	assert.Zero(t, report.Count(apply.Deleted, apply.Created))
	assert.False(t, there(inventory("")), "its seed has taken it over")
	assert.True(t, there(inventory(".one")) && there(inventory(".two")))
	c := connectCluster(t)
	_, err = install.New(deploy.GardenletAccess, "garden", install.Options{Cluster: c, Seed: "one"}).Apply(ctx, access("one"))
	require.NoError(t, err)
	assert.Zero(t, c.Requests().Writes())

	going, err := run("nix").PlanDelete(ctx)
	require.NoError(t, err)
	assert.Empty(t, going.Items)
	going, err = run("two").PlanDelete(ctx)
	require.NoError(t, err)
	assert.Len(t, going.Items, len(access("two").Objects))
	_, err = run("two").Delete(ctx)
	require.NoError(t, err)
	assert.False(t, there(account("two")) || there(inventory(".two")))
	assert.True(t, there(account("one")) && there(inventory(".one")))
}

// TestSeedLeavesSharedInventory: each seed leaves an inventory of several seeds, as it remains
// after a held deletion, by itself; also by an uninstallation.
func TestSeedLeavesSharedInventory(t *testing.T) {
	ctx := testContext(t)
	run := func(seed string, gate permit.Gate) *install.Installer {
		return install.New(deploy.GardenletAccess, "garden", install.Options{Cluster: connectCluster(t), Seed: seed, Gate: gate})
	}
	for _, seed := range []string{"three", "four"} {
		ensureNamespace(t, connectCluster(t), "seed-"+seed)
		in := rendered(t, deploy.GardenletAccess, "garden", map[string]any{"gardenlet": map[string]any{"seed": seed}})
		report, err := run("", permit.Gate{MaxDeletions: permit.Limit(0)}).Apply(ctx, in)
		require.NoError(t, err)
		require.Zero(t, report.Count(apply.Deleted))
	}
	shared := object("v1", "ConfigMap", "garden", "pergola-install.gardenlet-access")
	left := func() int {
		live, err := connectCluster(t).GetLive(ctx, shared)
		if apierrors.IsNotFound(err) {
			return 0
		}
		require.NoError(t, err)
		entries, err := apply.EntriesOf(live)
		require.NoError(t, err)
		return len(entries)
	}
	all := left()
	for n, seed := range []string{"three", "four"} {
		report, err := run(seed, permit.Gate{}).Delete(ctx)
		require.NoError(t, err)
		assert.Equal(t, all/2, report.Count(apply.Deleted, apply.AlreadyDeleted))
		assert.Equal(t, all/2*(1-n), left())
	}
}
