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

// askEvery is the interval of checks whether gardenlets work, while a sync waits for them.
const askEvery = 10 * time.Second

// seedOf returns the seed's name of a Seed or Shoot; empty for an unscheduled Shoot.
func seedOf(live *unstructured.Unstructured) string {
	if live.GetKind() == "Seed" {
		return live.GetName()
	}
	// A malformed object has none.
	seed, _, _ := unstructured.NestedString(live.Object, "spec", "seedName")
	return seed
}

// hasGardenlet reports whether a gardenlet ever reconciled a Seed. It may not work any longer.
func hasGardenlet(seed *unstructured.Unstructured) bool {
	return seedpublication.ReadReport(seed) != nil || beats(seed)
}

// beats reports whether a Seed has a gardenlet with a Lease.
func beats(seed *unstructured.Unstructured) bool {
	return seedCondition(seed, gardencorev1beta1.GardenletReady) != nil
}

// askForSilence finds gardenlets that do not renew their Lease, and seeds without a Seed. The cache
// has neither: Leases change every two seconds, and it has only Seeds that Pergola applied.
func (w *wait) askForSilence(ctx context.Context, left []*followed) {
	now := w.s.parts.role.Clock.Now()
	if now.Sub(w.seeds.asked) < askEvery {
		return
	}
	client, err := kubernetes.NewForConfig(w.virtual.RESTConfig())
	if err != nil {
		return // nothing is known of them
	}
	w.seeds.asked, w.seeds.gone, w.seeds.seedless = now, map[string]string{}, map[string]bool{}
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
			w.seeds.seedless[name] = apierrors.IsNotFound(err)
		}
		if err != nil || !beats(seed) {
			continue
		}
		if silence, err := landscape.SeedSilence(ctx, landscape.LeasesOf(client), name, now); err == nil && silence != nil {
			w.seeds.gone[name] = silence.Text(now)
		}
	}
}

// notWaitedFor returns why nobody reconciles a written Seed or Shoot: its gardenlet ignores it, or
// its seed has none. Empty if somebody may.
func (w *wait) notWaitedFor(live *unstructured.Unstructured) string {
	if why := seedpublication.LeftAlone(live); why != "" {
		return "its gardenlet leaves it alone, because " + why
	}
	if seed := seedOf(live); w.seeds.seedless[seed] {
		return fmt.Sprintf("there is no Seed %s, and so no gardenlet that looks after it", seed)
	}
	return ""
}

// withoutWriting drops the changes of a followed object that no gardenlet reconciles, and returns
// only its publication; nil for none.
func withoutWriting(f *followed) *followed {
	if f.digest == "" {
		return nil
	}
	return &followed{ref: f.ref, digest: f.digest}
}

// hasEnded reports whether a gardenlet is done with an object, successfully or not.
func hasEnded(state gardencorev1beta1.LastOperationState) bool {
	switch state {
	case gardencorev1beta1.LastOperationStateSucceeded, gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateAborted:
		return true
	}
	return false
}

// noteFailing notes the owners that cannot be reconciled after a Seed, since before or after it.
// The Seed itself succeeded.
func (w *wait) noteFailing(f *followed, seed *unstructured.Unstructured) {
	r := seedpublication.ReadReport(seed)
	if r == nil {
		return
	}
	if n := len(r.Failing) + r.FailingMore; n > 0 {
		w.note(f, fmt.Sprintf("%d cannot be reconciled with it: %s", n, firstOf(r.Failing, n)))
	}
}

// giveUp records failures for the owners of seeds whose gardenlets do not work.
func (w *wait) giveUp(inVain map[string][]string) {
	for _, seed := range slices.Sorted(maps.Keys(inVain)) {
		names := inVain[seed]
		text := fmt.Sprintf("the gardenlet of seed %s does not work: %s; to be reconciled when it does: %s", seed, w.seeds.gone[seed], firstOf(names, len(names)))
		w.failed = append(w.failed, text)
		w.line(text)
	}
}

// isMute reports whether a working gardenlet lacks a report for settleIn. A gardenlet that has just
// started writes one soon; an old version never does.
func (w *wait) isMute(seed string) bool {
	since, known := w.seeds.mute[seed]
	if !known {
		since = w.s.parts.role.Clock.Now()
		w.seeds.mute[seed] = since
	}
	return w.s.parts.role.Clock.Since(since) >= settleIn
}
