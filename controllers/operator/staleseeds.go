// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// gardenletCheckInterval is the interval of checks whether gardenlets work, while a sync waits for
// them.
const gardenletCheckInterval = 10 * time.Second

// seedOf returns the seed's name of a Seed or Shoot, or "" for an unscheduled Shoot.
func seedOf(live *unstructured.Unstructured) string {
	if live.GetKind() == "Seed" {
		return live.GetName()
	}
	// A malformed object has none.
	seed, _, _ := unstructured.NestedString(live.Object, "spec", "seedName")
	return seed
}

// hasGardenlet reports whether a gardenlet ever reconciled a Seed. It may have stopped.
func hasGardenlet(seed *unstructured.Unstructured) bool {
	return seedpublication.ReadSeedReport(seed) != nil || hasHeartbeat(seed)
}

// hasHeartbeat reports whether a Seed has a gardenlet with a Lease.
func hasHeartbeat(seed *unstructured.Unstructured) bool {
	return seedCondition(seed, gardencorev1beta1.GardenletReady) != nil
}

// checkGardenlets finds gardenlets that do not renew their Lease, and seeds without a Seed. The
// cache has neither: Leases change every two seconds, and it has only Seeds that Pergola applied.
func (w *gardenletWaiter) checkGardenlets(ctx context.Context, left []*awaitedOwner) {
	now := w.reconciler.operator.role.Clock.Now()
	if now.Sub(w.seedStates.checkedAt) < gardenletCheckInterval {
		return
	}
	client, err := kubernetes.NewForConfig(w.virtual.RESTConfig())
	if err != nil {
		return // nothing is known of them
	}
	w.seedStates.checkedAt, w.seedStates.unavailable, w.seedStates.withoutSeed = now, map[string]string{}, map[string]bool{}
	var seen []string
	for _, f := range left {
		live, err := w.virtual.Get(ctx, f.ref)
		if err != nil {
			continue
		}
		name := seedOf(live)
		if name == "" || slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		seed, err := w.virtual.Get(ctx, seedRef(name))
		if apierrors.IsNotFound(err) {
			seed, err = w.virtual.GetLive(ctx, seedRef(name))
			w.seedStates.withoutSeed[name] = apierrors.IsNotFound(err)
		}
		if err != nil || !hasHeartbeat(seed) {
			continue
		}
		if silence, err := landscape.StaleSeedGardenlet(ctx, landscape.NewLeaseReader(client), name, now); err == nil && silence != nil {
			w.seedStates.unavailable[name] = silence.Text(now)
		}
	}
}

// skipReason returns why no one reconciles a written Seed or Shoot: its gardenlet ignores it, or
// its seed has none. It is empty if its gardenlet may.
func (w *gardenletWaiter) skipReason(live *unstructured.Unstructured) string {
	if why := seedpublication.IgnoreReason(live); why != "" {
		return "its gardenlet ignores it, because " + why
	}
	if seed := seedOf(live); w.seedStates.withoutSeed[seed] {
		return fmt.Sprintf("Seed %s does not exist, so no gardenlet reconciles it", seed)
	}
	return ""
}

// publicationOnly drops the changes of a followed object that no gardenlet reconciles, and returns
// only its publication, or nil for none.
func publicationOnly(f *awaitedOwner) *awaitedOwner {
	if f.publicationDigest == "" {
		return nil
	}
	return &awaitedOwner{ref: f.ref, publicationDigest: f.publicationDigest}
}

// hasEnded reports whether a gardenlet is done with an object, successfully or not.
func hasEnded(state gardencorev1beta1.LastOperationState) bool {
	switch state {
	case gardencorev1beta1.LastOperationStateSucceeded, gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateAborted:
		return true
	}
	return false
}

// recordFailingDependents notes the owners that cannot be reconciled after a Seed, since before or
// after it. The Seed itself succeeded.
func (w *gardenletWaiter) recordFailingDependents(f *awaitedOwner, seed *unstructured.Unstructured) {
	r := seedpublication.ReadSeedReport(seed)
	if r == nil {
		return
	}
	if n := len(r.Failing) + r.FailingMore; n > 0 {
		w.addNote(f, fmt.Sprintf("%d cannot be reconciled with it: %s", n, firstNames(r.Failing, n)))
	}
}

// failSeedOwners records failures for the owners of seeds whose gardenlets do not work.
func (w *gardenletWaiter) failSeedOwners(inVain map[string][]string) {
	for _, seed := range slices.Sorted(maps.Keys(inVain)) {
		names := inVain[seed]
		text := fmt.Sprintf("the gardenlet of seed %s does not work: %s; not reconciled until it works: %s", seed, w.seedStates.unavailable[seed], firstNames(names, len(names)))
		w.failures = append(w.failures, text)
		w.broadcastLine(text)
	}
}

// isWithoutReport reports whether a working gardenlet lacks a report for publicationGracePeriod. A
// gardenlet that has just started writes one soon; an old version never does.
func (w *gardenletWaiter) isWithoutReport(seed string) bool {
	since, known := w.seedStates.noReportSince[seed]
	if !known {
		since = w.reconciler.operator.role.Clock.Now()
		w.seedStates.noReportSince[seed] = since
	}
	return w.reconciler.operator.role.Clock.Since(since) >= publicationGracePeriod
}
