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

// collapse is how long changes are gathered, so that one assessment handles them together.
const collapse = 100 * time.Millisecond

// assessments assesses the owners after every change and every sync period until ctx ends.
func (g *Gardenlet) assessments(ctx context.Context) {
	if err := g.objects.start(ctx); err != nil {
		return // ctx ended
	}
	if !g.awaitGarden(ctx) {
		return
	}
	g.poke()
	again := g.options.Clock.NewTicker(g.options.Pace.SyncPeriod)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C():
			g.forgetSaid() // Events expire: report persistent problems again
			g.askElsewhere()
			if err := g.lookForGarden(ctx); err != nil && ctx.Err() == nil {
				g.options.Log.Info("whether a Garden is in the seed is taken as before", "error", err)
			}
		case <-g.wake:
		}
		timer := g.options.Clock.NewTimer(collapse)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		g.assess(ctx)
	}
}

// assess passes the owners of the seed to the fleet, and disconnects owners that left the seed.
func (g *Gardenlet) assess(ctx context.Context) {
	g.refresh(ctx)
	s := g.settingsInUse()
	seed := g.objects.get(kindSeed, "", g.options.Seed)
	g.setNetworks(seed)
	if s == nil || ctx.Err() != nil {
		return
	}
	var members []fleet.Member[*site]
	apart := map[string]string{}
	consider := func(kind string, object *unstructured.Unstructured) {
		id := kind + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		why := seedpublication.LeftAlone(object)
		g.say(object, reasonLeftAlone, why)
		g.say(object, reasonNotTakenUp, notTakenUp(object, why, g.does()))
		if why != "" {
			apart[id] = why
			return
		}
		asked := g.asked(ctx, object)
		g.askedForAccess(object)
		members = append(members, g.member(id, g.sourcesOf(kind, object, s), s, asked))
	}
	if seed != nil {
		consider(owner.Seed, seed)
	}
	for _, shoot := range g.objects.all(kindShoot) {
		consider(owner.Shoot, shoot)
	}
	for _, at := range g.fleet.Set(ctx, members) {
		g.disconnect(at)
		if apart[at.id] == "" {
			g.tellGone(ctx, at.object)
		}
	}
	g.mu.Lock()
	g.events.apart, g.published.assessed = apart, s.publication.Digest
	g.mu.Unlock()
	g.seeReview()
	g.forgetGone(ctx)
}

// operations returns the operations that request a reconciliation.
func operations() []string {
	return []string{gardencorev1beta1.GardenerOperationReconcile, "retry"}
}

// does returns all operations that this gardenlet handles.
func (g *Gardenlet) does() []string {
	if g.services.renewal == nil {
		return operations()
	}
	return append(operations(), renewalOperations()...)
}

// asked reports whether an object requests a reconciliation, and removes the annotation. Other
// operations are left to their controllers.
func (g *Gardenlet) asked(ctx context.Context, o *unstructured.Unstructured) bool {
	operation := o.GetAnnotations()[gardencorev1beta1.GardenerOperation]
	if !slices.Contains(operations(), operation) {
		return false
	}
	once := string(o.GetUID()) + " " + o.GetResourceVersion()
	if g.events.handled[once] {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": o.GetResourceVersion(), "annotations": map[string]any{gardencorev1beta1.GardenerOperation: nil, gardencorev1beta1.GardenerTimestamp: nil},
	}}
	if _, err := g.links.garden.MergePatch(ctx, apply.RefOf(o), patch, "gardenlet", ""); err != nil {
		// Either the object changed and another event follows, or the virtual garden is
		// unreachable. The next assessment retries.
		g.options.Log.Info("the annotation could not be taken away yet", "object", apply.RefOf(o).String(), "error", g.links.garden.Explain(apply.RefOf(o), "patch", err))
		return false
	}
	g.events.handled = map[string]bool{once: true}
	return true
}
