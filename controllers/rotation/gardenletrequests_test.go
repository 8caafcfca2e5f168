// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// testGarden is a virtual garden with Seeds.
type testGarden struct {
	*testing.T
	config *rest.Config
	seeds  dynamic.ResourceInterface
	api    kubernetes.Interface
}

func newTestGarden(t *testing.T) *testGarden {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	g := &testGarden{T: t}
	g.config = apiserver.Start(t, crds.Get(gardencorev1beta1.SchemeGroupVersion.Group, "Seed"), crds.Get(seedmanagementv1alpha1.SchemeGroupVersion.Group, "Gardenlet"))
	client, err := dynamic.NewForConfig(g.config)
	require.NoError(t, err)
	g.seeds = client.Resource(gardencorev1beta1.SchemeGroupVersion.WithResource("seeds"))
	g.api, err = kubernetes.NewForConfig(g.config)
	require.NoError(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.GardenerSystemSeedLeaseNamespace}}
	_, err = g.api.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	return g
}

// createSeed creates a Seed with an operation, whose last heartbeat is some time ago; negative for
// none.
func (g *testGarden) createSeed(name, asked string, ago time.Duration) {
	g.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"provider": map[string]any{"type": "local", "region": "here"},
			"networks": map[string]any{"pods": "10.3.0.0/16", "services": "10.4.0.0/16"},
			"dns":      map[string]any{},
		},
	}}
	if asked != "" {
		o.SetAnnotations(map[string]string{gardencorev1beta1.GardenerOperation: asked})
	}
	_, err := g.seeds.Create(g.Context(), o, metav1.CreateOptions{})
	require.NoError(g, err)
	if ago < 0 {
		return
	}
	heard := metav1.NewMicroTime(time.Now().Add(-ago))
	_, err = g.api.CoordinationV1().Leases(gardencorev1beta1.GardenerSystemSeedLeaseNamespace).Create(g.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &heard},
	}, metav1.CreateOptions{})
	require.NoError(g, err)
}

// operationOf returns the operation of a Seed.
func (g *testGarden) operationOf(name string) string {
	g.Helper()
	o, err := g.seeds.Get(g.Context(), name, metav1.GetOptions{})
	require.NoError(g, err)
	return o.GetAnnotations()[gardencorev1beta1.GardenerOperation]
}

// finishOperation removes the operation of a Seed, as its gardenlet does.
func (g *testGarden) finishOperation(name string) {
	g.Helper()
	_, err := g.seeds.Patch(g.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`), metav1.PatchOptions{})
	require.NoError(g, err)
}

func (g *testGarden) newRequester(clk clock.WithTicker, tell func(string)) GardenletRequester {
	g.Helper()
	client, err := metadata.NewForConfig(g.config)
	require.NoError(g, err)
	return GardenletRequester{Client: client, Leases: g.api, Clock: clk, Report: tell}
}

// hasEnded reports whether a call that sends its error to end has returned, and checks that it has
// no error.
func hasEnded(t *testing.T, end <-chan error) func() bool {
	return func() bool {
		select {
		case err := <-end:
			assert.NoError(t, err)
			return true
		default:
			return false
		}
	}
}

// TestSeedsGetOperations checks that all gardenlets get an operation at once, and that Seeds
// without a gardenlet are skipped.
func TestSeedsGetOperations(t *testing.T) {
	g := newTestGarden(t)
	g.createSeed("idle", "", 0)
	g.createSeed("busy", "reconcile", 0)
	g.createSeed("unattended", "", -1)
	clk := clocktesting.NewFakeClock(time.Now())
	var mu sync.Mutex
	var told []string
	asks := g.newRequester(clk, func(m string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, m)
	})
	end := make(chan error, 1)
	go func() { end <- asks.RequestFromSeeds(t.Context(), "renew-kubeconfig") }()
	step := func(what string, ok func() bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			clk.Step(seedsInterval)
			return ok()
		}, 30*time.Second, 20*time.Millisecond, what)
	}
	step("the idle one is asked", func() bool { return g.operationOf("idle") == "renew-kubeconfig" })
	assert.Equal(t, "reconcile", g.operationOf("busy"), "what it was asked for before comes first")
	assert.Empty(t, g.operationOf("unattended"))
	g.finishOperation("busy")
	step("the busy one is asked then", func() bool { return g.operationOf("busy") == "renew-kubeconfig" })
	g.finishOperation("idle")
	g.finishOperation("busy")
	step("all are done", hasEnded(t, end))
	assert.Empty(t, g.operationOf("idle"), "it is not asked twice")
	mu.Lock()
	defer mu.Unlock()
	assert.Contains(t, told, "gardenlets have to complete renew-kubeconfig: busy, idle")
}

// TestUnansweredRequestsAreReported checks that the error has the unfinished Seeds with reasons.
func TestUnansweredRequestsAreReported(t *testing.T) {
	g := newTestGarden(t)
	g.createSeed("busy", "rotate-something", 0)
	g.createSeed("dead", "", time.Hour)
	g.createSeed("deaf", "", 0)
	clk := clocktesting.NewFakeClock(time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := make(chan error, 1)
	go func() { end <- g.newRequester(clk, nil).RequestFromSeeds(ctx, "renew-kubeconfig") }()
	// The clock steps only after the requests, while heartbeats continue.
	require.Eventually(t, func() bool {
		return g.operationOf("deaf") == "renew-kubeconfig" && g.operationOf("dead") == "renew-kubeconfig"
	}, 30*time.Second, 10*time.Millisecond)
	cancel()
	err := <-end
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, `Seed busy: renew-kubeconfig is not done: it has the operation "rotate-something", which comes first`)
	assert.ErrorContains(t, err, "Seed dead: renew-kubeconfig is not done: its gardenlet last renewed its Lease 1h")
	assert.ErrorContains(t, err, "delete Lease gardener-system-seed-lease/dead")
	assert.ErrorContains(t, err, "Seed deaf: renew-kubeconfig is not done: its gardenlet has not answered")

	// RequestFromSeeds also times out.
	go func() { end <- g.newRequester(clk, nil).RequestFromSeeds(t.Context(), "renew-kubeconfig") }()
	require.Eventually(t, func() bool {
		clk.Step(time.Minute)
		select {
		case err = <-end:
			return true
		default:
			return false
		}
	}, 30*time.Second, 20*time.Millisecond)
	assert.ErrorContains(t, err, "Seed dead: renew-kubeconfig is not done")
}

// TestSelfHostedGardenletsGetOperations checks that only Gardenlets of self-hosted Shoots get an
// operation, not Gardenlets of seeds.
func TestSelfHostedGardenletsGetOperations(t *testing.T) {
	g := newTestGarden(t)
	client, err := dynamic.NewForConfig(g.config)
	require.NoError(t, err)
	_, err = g.api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	gardenlets := client.Resource(seedmanagementv1alpha1.SchemeGroupVersion.WithResource("gardenlets")).Namespace("garden")
	for name, asked := range map[string]string{"self-hosted-shoot-idle": "", "self-hosted-shoot-busy": "reconcile", "seed": ""} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "seedmanagement.gardener.cloud/v1alpha1", "kind": "Gardenlet", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"deployment": map[string]any{"helm": map[string]any{"ociRepository": map[string]any{"ref": "example.org/gardenlet:v1"}}}},
		}}
		if asked != "" {
			o.SetAnnotations(map[string]string{gardencorev1beta1.GardenerOperation: asked})
		}
		_, err := gardenlets.Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	asked := func(name string) string {
		o, err := gardenlets.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return o.GetAnnotations()[gardencorev1beta1.GardenerOperation]
	}
	done := func(name string) {
		_, err := gardenlets.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	clk := clocktesting.NewFakeClock(time.Now())
	end := make(chan error, 1)
	go func() { end <- g.newRequester(clk, nil).RequestFromSelfHosted(t.Context(), "renew-kubeconfig") }()
	step := func(what string, ok func() bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			clk.Step(seedsInterval)
			return ok()
		}, 30*time.Second, 20*time.Millisecond, what)
	}
	step("the idle one is asked", func() bool { return asked("self-hosted-shoot-idle") == "renew-kubeconfig" })
	assert.Equal(t, "reconcile", asked("self-hosted-shoot-busy"), "what it was asked for before comes first")
	done("self-hosted-shoot-busy")
	step("the busy one is asked then", func() bool { return asked("self-hosted-shoot-busy") == "renew-kubeconfig" })
	done("self-hosted-shoot-idle")

	// The error names the unfinished gardenlet.
	var late error
	step("it ends", func() bool {
		clk.Step(time.Minute)
		select {
		case late = <-end:
			return true
		default:
			return false
		}
	})
	require.EqualError(t, late, "Gardenlet garden/self-hosted-shoot-busy: renew-kubeconfig is not done: its gardenlet has not answered; if it no longer exists, delete the Gardenlet")
	go func() { end <- g.newRequester(clk, nil).RequestFromSelfHosted(t.Context(), "renew-kubeconfig") }()
	step("the idle one is asked again by another run", func() bool { return asked("self-hosted-shoot-idle") == "renew-kubeconfig" })
	done("self-hosted-shoot-busy")
	done("self-hosted-shoot-idle")
	step("all are done", hasEnded(t, end))
	assert.Empty(t, asked("seed"))
}

// TestSeedOperations checks that the operations follow from the prepared kinds, in upstream's
// order.
func TestSeedOperations(t *testing.T) {
	preparing := Rotation{Phase: gardencorev1beta1.RotationPreparing}
	all := State{Rotation: map[Kind]Rotation{CertificateAuthorities: preparing, ServiceAccountKey: preparing, WorkloadIdentityKey: preparing, ETCDEncryptionKey: preparing}}
	assert.Equal(t, []string{"renew-garden-access-secrets", "renew-workload-identity-tokens", "renew-kubeconfig"}, all.SeedOperations())
	assert.Empty(t, State{Rotation: map[Kind]Rotation{CertificateAuthorities: {Phase: gardencorev1beta1.RotationPrepared}, ETCDEncryptionKey: preparing}}.SeedOperations())
}
