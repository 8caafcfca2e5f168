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

// askEvery is how often it is asked, while a sync waits for gardenlets, whether they work.
const askEvery = 10 * time.Second

// seedOf is the name of the seed of a Seed or Shoot; empty for a Shoot that has none yet.
func seedOf(live *unstructured.Unstructured) string {
	if live.GetKind() == "Seed" {
		return live.GetName()
	}
	// of another form it is empty
	seed, _, _ := unstructured.NestedString(live.Object, "spec", "seedName")
	return seed
}

// hasGardenlet tells whether a gardenlet has looked after a Seed; it may not work any more.
func hasGardenlet(seed *unstructured.Unstructured) bool {
	return seedpublication.ReadReport(seed) != nil || beats(seed)
}

// beats tells whether a gardenlet looks after a Seed of which a Lease says whether it works.
func beats(seed *unstructured.Unstructured) bool {
	return seedCondition(seed, gardencorev1beta1.GardenletReady) != nil
}

// askForSilence finds out whose gardenlets do not renew their Lease, and which seeds have no Seed
// at all. That is what is not in memory: the one changes every two seconds, and of Seeds only those
// are there that Pergola has applied.
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

// notWaitedFor says why nobody does what was written of a Seed or Shoot, empty where somebody may:
// its gardenlet leaves it alone, or its seed has none.
func (w *wait) notWaitedFor(live *unstructured.Unstructured) string {
	if why := seedpublication.LeftAlone(live); why != "" {
		return "its gardenlet leaves it alone, because " + why
	}
	if seed := seedOf(live); w.seeds.seedless[seed] {
		return fmt.Sprintf("there is no Seed %s, and so no gardenlet that looks after it", seed)
	}
	return ""
}

// withoutWriting is what is left to wait for of what a sync has written and nobody reconciles: what
// was published besides; nil for nothing.
func withoutWriting(f *followed) *followed {
	if f.digest == "" {
		return nil
	}
	return &followed{ref: f.ref, digest: f.digest}
}

// hasEnded tells whether a gardenlet is done with an object, well or not.
func hasEnded(state gardencorev1beta1.LastOperationState) bool {
	switch state {
	case gardencorev1beta1.LastOperationStateSucceeded, gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateAborted:
		return true
	}
	return false
}

// noteFailing notes what follows a Seed and cannot be reconciled, whether it was so before or is
// since: that of the sync itself went well.
func (w *wait) noteFailing(f *followed, seed *unstructured.Unstructured) {
	r := seedpublication.ReadReport(seed)
	if r == nil {
		return
	}
	if n := len(r.Failing) + r.FailingMore; n > 0 {
		w.note(f, fmt.Sprintf("%d cannot be reconciled with it: %s", n, firstOf(r.Failing, n)))
	}
}

// giveUp notes what is not waited for any more, by the name of the seed.
func (w *wait) giveUp(inVain map[string][]string) {
	for _, seed := range slices.Sorted(maps.Keys(inVain)) {
		names := inVain[seed]
		text := fmt.Sprintf("the gardenlet of seed %s does not work: %s; to be reconciled when it does: %s", seed, w.seeds.gone[seed], firstOf(names, len(names)))
		w.failed = append(w.failed, text)
		w.line(text)
	}
}

// isMute tells whether a gardenlet that works has not said anything for long enough to know that it
// never does. One that has just begun comes to it soon.
func (w *wait) isMute(seed string) bool {
	since, known := w.seeds.mute[seed]
	if !known {
		since = w.s.parts.role.Clock.Now()
		w.seeds.mute[seed] = since
	}
	return w.s.parts.role.Clock.Since(since) >= settleIn
}
