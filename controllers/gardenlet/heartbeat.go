// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/health/condition"
)

// heartbeatTimeout bounds one heartbeat.
const heartbeatTimeout = 5 * time.Second

// heartbeat renews the Lease of a seed in the virtual garden, which shows that its gardenlet is
// alive (gardener: pkg/gardenlet/controller/lease).
type heartbeat struct {
	g      *Gardenlet
	client kubernetes.Interface
	lease  *coordinationv1.Lease
}

// runHeartbeats sends heartbeats until ctx ends, and maintains the gardenlet's conditions of the
// Seed.
func (g *Gardenlet) runHeartbeats(ctx context.Context) {
	client, err := kubernetes.NewForConfig(g.connections.garden.RESTConfig())
	if err != nil {
		g.recordHeartbeatError(err)
		return
	}
	h := &heartbeat{g: g, client: client}
	tick := g.options.Clock.NewTicker(g.options.Timing.HeartbeatInterval)
	defer tick.Stop()
	for {
		h.send(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
	}
}

func (h *heartbeat) send(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	seed := h.g.objects.get(kindSeed, "", h.g.options.Seed)
	if seed == nil {
		return // the Seed is not read yet, or does not exist
	}
	if err := h.g.checkSeedHealth(ctx); err != nil {
		h.g.recordHeartbeatError(fmt.Errorf("seed %s: %w", h.g.options.Seed, err))
		return
	}
	if err := h.renew(ctx, seed); err != nil {
		h.g.recordHeartbeatError(fmt.Errorf("cannot send the heartbeat of seed %s to the virtual garden: %w", h.g.options.Seed,
			h.g.connections.garden.Explain(apply.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: gardencorev1beta1.GardenerSystemSeedLeaseNamespace, Name: h.g.options.Seed}, "renew", err)))
		return
	}
	h.g.recordHeartbeat()
	h.g.forgetWithdrawnApprovals(ctx)
	h.g.lapseUnheldApprovals(ctx, seed)
	h.g.publishUsedApprovals(ctx)
	if err := h.g.writeReport(ctx, nil); err != nil && ctx.Err() == nil {
		h.g.options.Log.Info("cannot write the report of the seed yet", "error", err)
	}
	if err := h.g.writeConditions(ctx, seed); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
		h.g.options.Log.Info("cannot write the conditions of the Seed", "error", h.g.connections.garden.Explain(apply.RefOf(seed), "write the conditions", err))
	}
}

// checkSeedHealth checks the health of the seed's API server.
func (g *Gardenlet) checkSeedHealth(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(g.connections.local.RESTConfig())
	if err != nil {
		return err
	}
	_, err = client.RESTClient().Get().AbsPath("/healthz").DoRaw(ctx)
	if err != nil {
		return g.connections.local.Explain(apply.Ref{}, "check", err)
	}
	return nil
}

// renew updates the Lease; it needs one request unless another process wrote it.
func (h *heartbeat) renew(ctx context.Context, seed *unstructured.Unstructured) error {
	leases := h.client.CoordinationV1().Leases(gardencorev1beta1.GardenerSystemSeedLeaseNamespace)
	var err error
	if h.lease == nil {
		if h.lease, err = leases.Get(ctx, h.g.options.Seed, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return h.create(ctx, seed)
		}
		if err != nil {
			h.lease = nil
			return err
		}
	}
	next := h.lease.DeepCopy()
	h.fillLease(next, seed)
	h.lease, err = leases.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		h.lease = nil
	}
	if apierrors.IsNotFound(err) {
		return h.create(ctx, seed)
	}
	return err
}

func (h *heartbeat) create(ctx context.Context, seed *unstructured.Unstructured) error {
	h.lease = nil
	fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: h.g.options.Seed}}
	h.fillLease(fresh, seed)
	leases := h.client.CoordinationV1().Leases(gardencorev1beta1.GardenerSystemSeedLeaseNamespace)
	created, err := leases.Create(ctx, fresh, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.GardenerSystemSeedLeaseNamespace}}
		if _, err := h.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		created, err = leases.Create(ctx, fresh, metav1.CreateOptions{})
	}
	if err == nil {
		h.lease = created
	}
	return err
}

func (h *heartbeat) fillLease(l *coordinationv1.Lease, seed *unstructured.Unstructured) {
	now := metav1.NewMicroTime(h.g.options.Clock.Now())
	l.OwnerReferences = []metav1.OwnerReference{{APIVersion: seed.GetAPIVersion(), Kind: seed.GetKind(), Name: seed.GetName(), UID: seed.GetUID()}}
	l.Spec.HolderIdentity, l.Spec.RenewTime = ptr.To(h.g.options.Seed), &now
	l.Spec.LeaseDurationSeconds = ptr.To(max(int32(h.g.options.Timing.HeartbeatInterval/time.Second), 1))
}

// recordHeartbeat and recordHeartbeatError record whether the last heartbeat succeeded, and log a
// change.
func (g *Gardenlet) recordHeartbeat() {
	g.mu.Lock()
	was := g.heartbeatState.lastError
	g.heartbeatState.lastError, g.heartbeatState.lastSuccess = nil, g.options.Clock.Now()
	g.mu.Unlock()
	g.services.metrics.lastHeartbeat.Set(float64(g.options.Clock.Now().Unix()))
	if was != nil {
		g.options.Log.Info("heartbeats reach the virtual garden again")
	}
}

func (g *Gardenlet) recordHeartbeatError(err error) {
	g.mu.Lock()
	was := g.heartbeatState.lastError
	g.heartbeatState.lastError = err
	g.mu.Unlock()
	if was == nil && !errors.Is(err, context.Canceled) {
		g.options.Log.Warn("heartbeats do not reach the virtual garden; the gardenlet maintains the seed with the last known objects", "error", err)
	}
}

// settingsMessage describes the settings in use. They are only published when they change, so their
// revision is usually older than the applied one.
func settingsMessage(p *seedpublication.Publication) string {
	return fmt.Sprintf("The settings and overlays of the applied revision are in use: no commit has changed them since %s. The catalogue is %s.", p.Revision, p.Catalogue)
}

// writeConditions writes that the gardenlet is alive, and whether it uses the latest settings.
// After a conflict with another writer, the next heartbeat retries.
func (g *Gardenlet) writeConditions(ctx context.Context, seed *unstructured.Unstructured) error {
	var typed gardencorev1beta1.Seed
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(seed.Object, &typed); err != nil {
		return err
	}
	b := condition.New(g.options.Clock, nil)
	have := typed.Status.Conditions
	want := []gardencorev1beta1.Condition{
		b.OK(b.GetOrInit(have, gardencorev1beta1.GardenletReady), "GardenletReady", "Gardenlet is posting ready status."),
	}
	g.mu.Lock()
	problem, inUse := g.publication.problem, g.publication.settings
	g.mu.Unlock()
	old := b.GetOrInit(have, seedpublication.ConditionSettingsUpToDate)
	switch {
	case problem != nil:
		want = append(want, b.Update(old, gardencorev1beta1.ConditionFalse, reasonOf(problem), problem.Error()))
	case inUse != nil:
		p := inUse.publication
		want = append(want, b.OK(old, "PublicationInUse", settingsMessage(p)))
	}
	merged := condition.Merge(have, want...)
	if condition.Equal(have, merged) {
		return nil
	}
	_, err := g.connections.garden.MergePatch(ctx, apply.RefOf(seed), map[string]any{
		"metadata": map[string]any{"resourceVersion": seed.GetResourceVersion()}, "status": map[string]any{"conditions": merged},
	}, "gardenlet", "status")
	return err
}
