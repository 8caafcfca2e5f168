// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/deploy"
	"github.com/pergola-dev/pergola/deploy/install"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server = config }))
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connectCluster returns a new connection, as in every run of the command.
func connectCluster(t *testing.T) *apply.Cluster {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	c, err := conventions.NewCluster("runtime", rest.CopyConfig(server), apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func values(more map[string]any) map[string]any {
	out := map[string]any{
		"image": map[string]any{"repository": "pergola"},
		"landscapes": []any{map[string]any{"name": "production", "spec": map[string]any{
			"source": map[string]any{"url": "https://git.example.org/landscapes.git", "path": "production"},
		}}},
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func rendered(t *testing.T, role deploy.Role, namespace string, v map[string]any) *deploy.Installation {
	t.Helper()
	in, err := deploy.Render(deploy.Options{Role: role, Namespace: namespace, Values: v})
	require.NoError(t, err)
	return in
}

var landscape = apply.Ref{APIVersion: "landscape.pergola.dev/v1alpha1", Kind: "Landscape", Namespace: "garden", Name: "production"}

func object(apiVersion, kind, namespace, name string) apply.Ref {
	return apply.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

// TestInstallUpgradeDelete covers installation, upgrade and deletion, each with a new connection.
func TestInstallUpgradeDelete(t *testing.T) {
	ctx := testContext(t)
	run := func() *install.Installer {
		return install.New(deploy.Operator, "garden", install.Options{Cluster: connectCluster(t), Gate: permit.DefaultGate()})
	}
	first := rendered(t, deploy.Operator, "garden", values(nil))

	planned, err := run().Plan(ctx, first)
	require.NoError(t, err)
	assert.Len(t, planned.Items, len(first.Objects)+len(first.Definitions)+1, "and the namespace")
	_, err = connectCluster(t).GetLive(ctx, object("v1", "Namespace", "", "garden"))
	assert.True(t, apierrors.IsNotFound(err), "a plan writes nothing")

	report, err := run().Apply(ctx, first)
	require.NoError(t, err)
	assert.Equal(t, len(first.Objects)+len(first.Definitions)+1, report.Count(apply.Created))

	c := connectCluster(t)
	report, err = install.New(deploy.Operator, "garden", install.Options{Cluster: c, Gate: permit.DefaultGate()}).Apply(ctx, first)
	require.NoError(t, err)
	assert.Zero(t, c.Requests().Writes(), "%v", c.Requests())
	assert.Equal(t, len(report.Objects), report.Count(apply.Unchanged))
	planned, err = run().Plan(ctx, first)
	require.NoError(t, err)
	assert.Empty(t, planned.Items)

	second := rendered(t, deploy.Operator, "garden", values(map[string]any{
		"replicas": 2, "landscapes": []any{}, "podDisruptionBudget": map[string]any{"enabled": false},
	}))
	report, err = run().Apply(ctx, second)
	require.NoError(t, err)
	assert.Equal(t, 1, report.Count(apply.Configured))
	assert.Equal(t, 1, report.Count(apply.Deleted))
	_, err = c.GetLive(ctx, object("policy/v1", "PodDisruptionBudget", "garden", "pergola-operator"))
	assert.True(t, apierrors.IsNotFound(err))
	_, err = c.GetLive(ctx, landscape)
	require.NoError(t, err, "a Landscape that left the values is not deleted")

	// The Garden has the priority class, too: the operator's engine adopts it.
	class := object("scheduling.k8s.io/v1", "PriorityClass", "", "gardener-garden-system-critical")
	live, err := c.GetLive(ctx, class)
	require.NoError(t, err)
	require.NotContains(t, live.GetAnnotations(), "resources.gardener.cloud/origin")

	going, err := run().PlanDelete(ctx)
	require.NoError(t, err)
	named := map[string]change.Action{}
	for _, item := range going.Items {
		named[item.Object.String()] = item.Action
	}
	assert.Equal(t, change.Delete, named["Deployment garden/pergola-operator"], "%v", named)
	for name := range named {
		assert.NotRegexp(t, "^(CustomResourceDefinition|PriorityClass|Landscape|Namespace) ", name, "it stays")
	}
	_, err = c.GetLive(ctx, object("apps/v1", "Deployment", "garden", "pergola-operator"))
	require.NoError(t, err, "nothing is written")

	ending := install.New(deploy.Operator, "garden", install.Options{Cluster: connectCluster(t), Timeout: time.Second})
	report, err = ending.Delete(ctx)
	// No garbage collector runs here to remove the Deployment.
	if err != nil {
		require.Equal(t, apply.ReasonStuckDeletion, apply.ReasonOf(err), "%v", err)
		_, err = c.MergePatch(ctx, object("apps/v1", "Deployment", "garden", "pergola-operator"), map[string]any{"metadata": map[string]any{"finalizers": nil}}, "test", "")
		require.NoError(t, err)
		_, err = run().Delete(ctx)
		require.NoError(t, err)
	}
	assert.NotZero(t, report.Count(apply.Deleted))
	for _, kept := range []apply.Ref{landscape, class, object("v1", "Namespace", "", "garden"), object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "landscapes.landscape.pergola.dev")} {
		_, err = c.GetLive(ctx, kept)
		assert.NoError(t, err, kept)
	}
	for _, o := range second.Objects {
		if !deploy.IsRetained(o) {
			_, err = c.GetLive(ctx, apply.RefOf(o))
			assert.True(t, apierrors.IsNotFound(err), "%s is still there", apply.RefOf(o))
		}
	}
	report, err = run().Delete(ctx)
	require.NoError(t, err)
	assert.Empty(t, report.Objects)
}

// TestApplyWaitsForHealth acts as the Deployment controller.
func TestApplyWaitsForHealth(t *testing.T) {
	ctx := testContext(t)
	clock := testclock.NewFakeClock(time.Now())
	in := rendered(t, deploy.Gardenlet, "seed", map[string]any{"image": map[string]any{"repository": "pergola"}, "gardenlet": map[string]any{"seed": "local"}, "rbac": map[string]any{"create": false}})
	done := make(chan error, 1)
	c := connectCluster(t)
	apply1 := func() {
		_, err := install.New(deploy.Gardenlet, "seed", install.Options{Cluster: c, Clock: clock, Timeout: time.Minute}).Apply(ctx, in)
		done <- err
	}
	go apply1()
	ref := object("apps/v1", "Deployment", "seed", "pergola-gardenlet")
	require.Eventually(t, func() bool { _, err := c.GetLive(ctx, ref); return err == nil && clock.HasWaiters() }, 20*time.Second, 20*time.Millisecond)
	var unhealthy *install.UnhealthyError
	require.Eventually(t, func() bool {
		clock.Step(10 * time.Second)
		select {
		case err := <-done:
			return assert.ErrorAs(t, err, &unhealthy)
		default:
			return false
		}
	}, 20*time.Second, 20*time.Millisecond)
	require.Len(t, unhealthy.Objects, 1)
	assert.Contains(t, unhealthy.Objects[0], "Deployment seed/pergola-gardenlet: ")

	live, err := c.GetLive(ctx, ref)
	require.NoError(t, err)
	_, err = c.MergePatch(ctx, ref, map[string]any{"status": map[string]any{
		"observedGeneration": live.GetGeneration(), "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
		"conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	}}, "test", "status")
	require.NoError(t, err)
	go apply1()
	require.Eventually(t, func() bool {
		clock.Step(time.Second)
		select {
		case err := <-done:
			return assert.NoError(t, err)
		default:
			return false
		}
	}, 20*time.Second, 20*time.Millisecond)
}

// TestRightsOfAGardenletInTheVirtualGarden installs only rights, and repairs them.
func TestRightsOfAGardenletInTheVirtualGarden(t *testing.T) {
	ctx := testContext(t)
	in := rendered(t, deploy.GardenletAccess, "garden", map[string]any{"gardenlet": map[string]any{"seed": "local"}})
	c := connectCluster(t)
	_, err := install.New(deploy.GardenletAccess, "garden", install.Options{Cluster: c, Seed: "local"}).Apply(ctx, in)
	require.ErrorContains(t, err, "create the Namespace seed-local first")
	ensureNamespace(t, c, "seed-local")
	account := object("v1", "ServiceAccount", "garden", "gardenlet-local")
	_, err = install.New(deploy.GardenletAccess, "garden", install.Options{Cluster: c, Seed: "local"}).Apply(ctx, in)
	require.NoError(t, err)
	_, err = c.MergePatch(ctx, account, map[string]any{"automountServiceAccountToken": true}, "somebody", "")
	require.NoError(t, err)
	report, err := install.New(deploy.GardenletAccess, "garden", install.Options{Cluster: connectCluster(t), Seed: "local"}).Apply(ctx, in)
	require.NoError(t, err, "drift is repaired")
	assert.Equal(t, 1, report.Count(apply.Configured))
}

// TestPlanHasHeldDeletions: the plan has held deletions, too, with the ids that approve them.
func TestPlanHasHeldDeletions(t *testing.T) {
	ctx := testContext(t)
	const namespace = "held"
	with := map[string]any{"landscapes": []any{}}
	run := func(gate permit.Gate) *install.Installer {
		return install.New(deploy.Operator, namespace, install.Options{Cluster: connectCluster(t), Gate: gate})
	}
	_, err := run(permit.DefaultGate()).Apply(ctx, rendered(t, deploy.Operator, namespace, values(with)))
	require.NoError(t, err)
	with["podDisruptionBudget"] = map[string]any{"enabled": false}
	less := rendered(t, deploy.Operator, namespace, values(with))
	budget := object("policy/v1", "PodDisruptionBudget", namespace, "pergola-operator")

	none := permit.Gate{MaxDeletions: permit.Limit(0)}
	planned, err := run(none).Plan(ctx, less)
	require.NoError(t, err)
	require.Len(t, planned.Items, 1)
	item := planned.Items[0]
	assert.Equal(t, change.Hold, item.Action)
	assert.Equal(t, budget, item.Object)
	assert.Equal(t, "every deletion on cluster runtime needs approval", item.Reason)

	report, err := run(none).Apply(ctx, less)
	require.NoError(t, err)
	assert.Equal(t, 1, report.Count(apply.HeldBack))
	_, err = connectCluster(t).GetLive(ctx, budget)
	require.NoError(t, err, "it is still there")

	none.Approved = map[string]bool{item.Approval: true}
	planned, err = run(none).Plan(ctx, less)
	require.NoError(t, err)
	require.Len(t, planned.Items, 1)
	assert.Equal(t, change.Delete, planned.Items[0].Action)
	report, err = run(none).Apply(ctx, less)
	require.NoError(t, err)
	assert.Equal(t, 1, report.Count(apply.Deleted))
}

func ensureNamespace(t *testing.T, c *apply.Cluster, name string) {
	t.Helper()
	mapping, err := c.Mapping(testContext(t), object("v1", "Namespace", "", "").GVK())
	require.NoError(t, err)
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	_, err = c.Dynamic().Resource(mapping.Resource).Create(testContext(t), o, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}
