package gardenlet

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/render"
)

const (
	// concurrentSyncs is how many owners are converged at a time (upstream: 20 Shoots).
	concurrentSyncs = 20
	// longestRetry bounds the time between two tries.
	longestRetry = 10 * time.Minute
)

// State of a site.
const (
	stateWaiting   = "waiting"
	stateConverged = "converged"
	stateFailing   = "failing"
)

// site is the place of one owner. Its job converges it; keeping looks after what the job has left.
type site struct {
	kind, key string
	// object is the one that is converged, as it was seen last.
	object *unstructured.Unstructured
	// poked asks its job to converge it once more. It stays the same from job to job, so that whoever has the site reaches the one there is.
	poked  chan struct{}
	cancel context.CancelCauseFunc
	done   chan struct{}

	// busy is held by whoever works on the owner.
	busy sync.Mutex
	mu   sync.Mutex
	// owner is the one that was converged last, with the reconciler that did it; nil before.
	owner      *owner.Owner
	reconciler *owner.Reconciler
	// api is the API server of a Shoot; nil before it was converged. unwatch ends the look after what was applied there.
	api     *apply.Cluster
	unwatch context.CancelFunc
	// controlPlane is the namespace of its control plane.
	controlPlane string
	state        string
	// unreviewed is whether something of it is held because no review could show it.
	unreviewed bool
	// reached is the key of what was converged last, well or, with failed, not.
	reached string
	failed  bool
	// held is what is held of the owner; judged says that this process has seen it.
	held   []owner.HeldObjects
	judged bool
	// passed are approvals by which something passed since a run has seen everything. lapsed are ids of what was held, and is not any more without one.
	passed, lapsed map[string]bool
	// notTaken is why something did not pass by an approval in the last run.
	notTaken error
	// drifted is what changed on the seed while somebody worked on the owner, and new says that some of it was not looked at yet.
	drifted map[apply.Ref]apply.DriftEvent
	new     bool
}

// current gives what keeping works with; nil when nothing was converged yet.
func (s *site) current() (*owner.Reconciler, *owner.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconciler, s.owner
}

// waitsForReview tells whether something is held because no review could show it.
func (s *site) waitsForReview() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unreviewed
}

func (s *site) enter(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

// poke asks for one more convergence, by whichever job there is; several at a time are one.
func (s *site) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

// superseded is why a job ends when a newer one takes its place.
var errSuperseded = errors.New("a newer state is to be converged")

// start puts a job at the place of an owner. The former one is given up: what it waits for may never come now. A change of other
// owners does not disturb it.
// The job begins when begin is closed: then all others know what they have to converge, too, so that none is said to be done that has to begin yet.
func (g *Gardenlet) start(ctx context.Context, id string, from sources, s *settings, begin <-chan struct{}) {
	g.mu.Lock()
	former := g.sites[id]
	next := former
	if next == nil {
		next = &site{kind: from.kind, state: stateWaiting, poked: make(chan struct{}, 1)}
		g.sites[id] = next
	}
	formerDone, formerCancel := next.done, next.cancel
	jobCtx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	next.object = from.object
	next.key, next.cancel, next.done = from.key, cancel, done
	g.mu.Unlock()
	go func() {
		defer close(done)
		defer cancel(nil)
		if formerCancel != nil {
			formerCancel(errSuperseded)
			<-formerDone
		}
		select {
		case <-begin:
		case <-jobCtx.Done():
		}
		g.work(jobCtx, next, id, from, s)
	}()
}

// end takes the job of an owner away. What is on the seed stays.
func (g *Gardenlet) end(id string, cause error) {
	g.mu.Lock()
	s := g.sites[id]
	delete(g.sites, id)
	g.mu.Unlock()
	if s != nil {
		s.cancel(cause)
		<-s.done
		g.disconnect(s)
	}
}

func (g *Gardenlet) stopAll(cause error) {
	g.mu.Lock()
	var ids []string
	for id, s := range g.sites {
		s.cancel(cause)
		ids = append(ids, id)
	}
	g.mu.Unlock()
	for _, id := range ids {
		g.end(id, cause)
	}
}

// work converges an owner, and does so again when that failed, when somebody asks for it, and once in a while.
func (g *Gardenlet) work(ctx context.Context, at *site, id string, from sources, s *settings) {
	o := g.ownerOf(from)
	wait := g.RetryInterval
	for ctx.Err() == nil {
		select {
		case <-at.poked: // what was asked for before it begins is done by it
		default:
		}
		err := g.converge(ctx, at, o, from, s)
		if ctx.Err() != nil {
			return
		}
		g.metrics.converged(from.kind, err)
		at.reach(from.key, err != nil)
		next := g.SyncPeriod + time.Duration(rand.Int64N(int64(g.SyncPeriod)/10+1))
		if err != nil {
			at.enter(stateFailing)
			g.Log.Warn("not converged", "owner", id, "error", strings.Join(owner.Problems(err), "; "), "again", wait.String())
			next, wait = wait, min(2*wait, longestRetry)
		} else {
			at.enter(stateConverged)
			g.Log.Info("converged", "owner", id)
			wait = g.RetryInterval
		}
		if from.kind == owner.Seed {
			g.seedIs(err == nil)
		}
		timer := g.Clock.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-at.poked:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// ownerOf places an owner on its clusters.
func (g *Gardenlet) ownerOf(from sources) *owner.Owner {
	namespace, name := from.object.GetNamespace(), from.object.GetName()
	kind := from.object.GetKind()
	return &owner.Owner{
		Input: render.Input{Owner: render.Owner{Kind: from.kind, Namespace: namespace, Name: name, UID: string(from.object.GetUID())}},
		Ref:   apply.RefOf(from.object), Home: g.garden, Local: g.local,
		Known: func() *unstructured.Unstructured { return g.objects.get(kind, namespace, name) },
	}
}

// converge runs once. Shoots wait until the Seed has what they need.
func (g *Gardenlet) converge(ctx context.Context, at *site, o *owner.Owner, from sources, s *settings) error {
	if from.kind == owner.Shoot && !g.awaitSeed(ctx) {
		return nil
	}
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return nil
	}
	at.busy.Lock()
	defer g.repairDrifted(ctx, at, false)
	defer at.busy.Unlock()
	in, err := g.input(ctx, from)
	if err != nil {
		if ctx.Err() == nil {
			s.reconciler.GiveUp(ctx, o, err)
		}
		return err
	}
	o.Take(in)
	if err := g.connectShoot(ctx, at, o); err != nil {
		return err
	}
	complete, version := g.beginReviewed(ctx, from, s, o), g.reviewVersion()
	g.readUses(ctx)
	r := g.reconcilerFor(ctx, s, at, from, o)
	r.OnOutcome = func(ctx context.Context, report *owner.Report, err error) {
		g.outcome(ctx, at, o, from, s, reviewsKnown{complete, version}, report, err)
	}
	at.mu.Lock()
	at.owner, at.reconciler, at.notTaken = o, r, nil
	at.mu.Unlock()
	began := g.Clock.Now()
	_, err = r.Reconcile(ctx, o)
	g.metrics.took(from.kind, g.Clock.Since(began))
	at.mu.Lock()
	defer at.mu.Unlock()
	return errors.Join(err, at.notTaken)
}

// awaitSeed is false when ctx ended first.
func (g *Gardenlet) awaitSeed(ctx context.Context) bool {
	for {
		g.mu.Lock()
		ok, now := g.seedOK, g.seedNow
		g.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-now:
		case <-ctx.Done():
			return false
		}
	}
}

func (g *Gardenlet) seedIs(ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ok != g.seedOK {
		g.seedOK = ok
		close(g.seedNow)
		g.seedNow = make(chan struct{})
	}
}

// ids of the owners there are.
func (g *Gardenlet) ids() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for id := range g.sites {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func (g *Gardenlet) site(id string) *site {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sites[id]
}
