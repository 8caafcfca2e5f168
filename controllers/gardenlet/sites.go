package gardenlet

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/render"
)

const (
	// concurrentSyncs limits the concurrent reconciliations (upstream: 20 Shoots).
	concurrentSyncs = 20
	// longestRetry bounds the time between two attempts.
	longestRetry = 10 * time.Minute
)

// site is the state of one owner: results of its reconciliations, and the known inputs.
type site struct {
	g        *Gardenlet
	id, kind string

	mu sync.Mutex
	// object is the owner's object at the last assessment, and key the digest of all its inputs.
	object *unstructured.Unstructured
	key    string
	last   lastRun
	shoot  shootAPI
	// unreviewed reports whether a deletion is held because no review showed it.
	unreviewed bool
	// reached is the key of the last finished reconciliation; failed is its result.
	reached string
	failed  bool
	// held are the owner's held deletions; judged reports whether this process determined them.
	held      []permit.HeldObjects
	judged    bool
	approvals approvals
}

// lastRun is the latest reconciliation of an owner, running or finished. site.mu guards it.
type lastRun struct {
	owner owner.Owner
	// reconciler is nil before the first run.
	reconciler *owner.Reconciler
	// left is the resulting State, and key the digest of the inputs.
	left owner.State
	key  string
}

// approvals is the use of approvals by one owner. site.mu guards it.
type approvals struct {
	// passed are the approvals that were used since the last complete run. lapsed are the ids of
	// holds that ended without an approval.
	passed, lapsed map[string]bool
	// notTaken is why an approval could not be used in the last run.
	notTaken error
}

// current returns the input of care and repair; the reconciler is nil before the first run.
func (s *site) current() (*owner.Reconciler, owner.Owner, owner.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.reconciler, s.last.owner, s.last.left
}

// now returns the State of the last or current run.
func (s *site) now() owner.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.left
}

func (s *site) keep(left owner.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.left = left
}

// giveUp reports why an owner cannot be reconciled. It keeps the State of other inputs.
func (s *site) giveUp(ctx context.Context, r *owner.Reconciler, o owner.Owner, key string, cause error) {
	s.mu.Lock()
	last, same := s.last, s.last.key == key
	s.mu.Unlock()
	left := owner.State{}
	if same {
		o, left = last.owner, last.left
	}
	if left = r.GiveUp(ctx, o, left, cause); same {
		s.keep(left)
	}
}

// begin prepares a run. It drops the State of other inputs.
func (s *site) begin(r *owner.Reconciler, o owner.Owner, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.last.left
	if s.last.key != key {
		left = owner.State{}
	}
	s.last, s.approvals.notTaken = lastRun{owner: o, reconciler: r, left: left, key: key}, nil
}

// waitsForReview reports whether a deletion is held because no review showed it.
func (s *site) waitsForReview() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unreviewed
}

// take sets the input of the next reconciliations.
func (s *site) take(from sources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object, s.key = from.object, from.key
}

// Left implements fleet.Owner.
func (s *site) HasObjects() (something, rendered bool) {
	r, _, left := s.current()
	return r != nil, len(left.Bundles()) > 0
}

// SetOf implements fleet.Owner.
func (s *site) SetOf(cluster string, managedResource apply.Ref) string {
	r, o, left := s.current()
	if r == nil {
		return ""
	}
	return r.SetOfManaged(o, left, cluster, managedResource)
}

// Care implements fleet.Owner.
func (s *site) Care(ctx context.Context) {
	r, o, left := s.current()
	left, err := r.ApplyWaiting(ctx, o, left)
	if err != nil && ctx.Err() == nil {
		s.g.options.Log.Info("what waits for the API server of a Shoot could not be applied yet", "owner", s.id, "error", err)
	}
	if _, _, err := r.Care(ctx, o, left); err != nil && ctx.Err() == nil {
		s.g.options.Log.Info("health could not be told", "owner", s.id, "error", err)
	}
}

// member returns the fleet member of an owner. Shoots wait for the Seed.
func (g *Gardenlet) member(id string, from sources, s *settings, again bool) fleet.Member[*site] {
	o := g.ownerOf(from)
	m := fleet.Member[*site]{
		ID: id, Digest: from.key, ForceRun: again,
		New:      func() *site { return &site{g: g, id: id, kind: from.kind} },
		SetInput: func(at *site) { at.take(from) },
		Converge: func(ctx context.Context, at *site) error { return g.converge(ctx, at, o, from, s) },
	}
	if from.kind == owner.Shoot {
		m.After = []string{owner.Seed + " " + g.options.Seed}
	}
	return m
}

// ended records and logs the result of a run.
func (g *Gardenlet) ended(m fleet.Member[*site], at *site, err error, next time.Duration) {
	g.services.metrics.converged(at.kind, err)
	at.reach(m.Digest, err != nil)
	if err != nil {
		g.options.Log.Warn("not converged", "owner", m.ID, "error", strings.Join(owner.Problems(err), "; "), "again", next.String())
		return
	}
	g.options.Log.Info("converged", "owner", m.ID)
}

// ownerOf returns an owner with its clusters.
func (g *Gardenlet) ownerOf(from sources) owner.Owner {
	namespace, name := from.object.GetNamespace(), from.object.GetName()
	kind := from.object.GetKind()
	return owner.Owner{
		Input: render.Input{Owner: render.Owner{Kind: from.kind, Namespace: namespace, Name: name, UID: string(from.object.GetUID())}},
		Ref:   apply.RefOf(from.object), Home: g.links.garden, Local: g.links.local,
		CachedObject: func() *unstructured.Unstructured { return g.objects.get(kind, namespace, name) },
	}
}

// converge runs one reconciliation.
func (g *Gardenlet) converge(ctx context.Context, at *site, o owner.Owner, from sources, s *settings) error {
	in, err := g.input(from)
	if err != nil {
		if ctx.Err() == nil {
			at.giveUp(ctx, s.reconciler, o, from.key, err)
		}
		return err
	}
	o.Input, o.OnState = in, at.keep
	if err := g.connectShoot(ctx, at, &o); err != nil {
		return err
	}
	complete, version := g.beginReviewed(ctx, from, s, o), g.reviewVersion()
	r := g.reconcilerFor(ctx, s, at, from, o)
	r.Hooks.OnOutcome = func(ctx context.Context, report *owner.Report, err error) {
		g.outcome(ctx, at, from, s, reviewsKnown{complete, version}, report, err)
	}
	at.begin(r, o, from.key)
	began := g.options.Clock.Now()
	_, _, err = r.Reconcile(ctx, o, at.now())
	g.services.metrics.took(from.kind, g.options.Clock.Since(began))
	at.mu.Lock()
	defer at.mu.Unlock()
	return errors.Join(err, at.approvals.notTaken)
}
