// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// changeCollectDelay is how long changes are gathered, so that one assessment handles them
// together.
const changeCollectDelay = 100 * time.Millisecond

// runOwnerSync assesses the owners after every change and every sync period until ctx ends.
func (g *Gardenlet) runOwnerSync(ctx context.Context) {
	if err := g.objects.startWatches(ctx); err != nil {
		return // ctx ended
	}
	if !g.waitForGardenDetection(ctx) {
		return
	}
	g.requestSync()
	again := g.options.Clock.NewTicker(g.options.Timing.SyncPeriod)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C():
			g.resetWarnings() // Events expire: report persistent problems again
			g.resetOtherSeedShoots()
			if err := g.detectGarden(ctx); err != nil && ctx.Err() == nil {
				g.options.Log.Info("cannot check whether the seed hosts a Garden; the last result applies", "error", err)
			}
		case <-g.syncRequests:
		}
		timer := g.options.Clock.NewTimer(changeCollectDelay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		g.syncOwners(ctx)
	}
}

// syncOwners passes the owners of the seed to the fleet, and disconnects owners that left the seed.
func (g *Gardenlet) syncOwners(ctx context.Context) {
	g.refreshSettings(ctx)
	s := g.currentSettings()
	seed := g.objects.get(kindSeed, "", g.options.Seed)
	g.setPolicyNetworks(seed)
	if s == nil || ctx.Err() != nil {
		return
	}
	var members []fleet.Member[*ownerWorker]
	apart := map[string]string{}
	consider := func(kind string, object *unstructured.Unstructured) {
		id := kind + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		why := seedpublication.IgnoreReason(object)
		g.warnOnce(object, reasonLeftAlone, why)
		g.warnOnce(object, reasonOperationIgnored, ignoredOperationMessage(object, why, g.supportedOperations()))
		if why != "" {
			apart[id] = why
			return
		}
		asked := g.takeReconcileRequest(ctx, object)
		g.requestAccessRenewal(object)
		members = append(members, g.fleetMember(id, g.renderSourcesOf(kind, object, s), s, asked))
	}
	if seed != nil {
		consider(owner.Seed, seed)
	}
	for _, shoot := range g.objects.listKind(kindShoot) {
		consider(owner.Shoot, shoot)
	}
	for _, at := range g.fleet.Set(ctx, members) {
		g.disconnect(at)
		if apart[at.id] == "" {
			g.reportDepartedOwner(ctx, at.object)
		}
	}
	g.mu.Lock()
	g.eventHistory.unmanagedOwners, g.publication.syncedDigest = apart, s.publication.Digest
	g.mu.Unlock()
	g.triggerReviewedOwners()
	g.deleteStaleRecords(ctx)
}

// reconcileOperations returns the operations that request a reconciliation.
func reconcileOperations() []string {
	return []string{gardencorev1beta1.GardenerOperationReconcile, "retry"}
}

// supportedOperations returns all operations that this gardenlet handles.
func (g *Gardenlet) supportedOperations() []string {
	if g.services.accessRenewal == nil {
		return reconcileOperations()
	}
	return append(reconcileOperations(), renewalOperations()...)
}

// takeReconcileRequest reports whether an object requests a reconciliation, and removes the
// annotation. Other operations are left to their controllers.
func (g *Gardenlet) takeReconcileRequest(ctx context.Context, o *unstructured.Unstructured) bool {
	operation := o.GetAnnotations()[gardencorev1beta1.GardenerOperation]
	if !slices.Contains(reconcileOperations(), operation) {
		return false
	}
	once := string(o.GetUID()) + " " + o.GetResourceVersion()
	if g.eventHistory.handledOperations[once] {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": o.GetResourceVersion(), "annotations": map[string]any{gardencorev1beta1.GardenerOperation: nil, gardencorev1beta1.GardenerTimestamp: nil},
	}}
	if _, err := g.connections.garden.MergePatch(ctx, apply.RefOf(o), patch, "gardenlet", ""); err != nil {
		// Either the object changed and another event follows, or the virtual garden is
		// unreachable. The next assessment retries.
		g.options.Log.Info("cannot remove the annotation yet", "object", apply.RefOf(o).String(), "error", g.connections.garden.Explain(apply.RefOf(o), "patch", err))
		return false
	}
	g.eventHistory.handledOperations = map[string]bool{once: true}
	return true
}
