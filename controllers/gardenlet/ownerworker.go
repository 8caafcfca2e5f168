// SPDX-License-Identifier: Apache-2.0

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
	// maxRetryInterval bounds the time between two attempts.
	maxRetryInterval = 10 * time.Minute
)

// ownerWorker is the state of one owner: results of its reconciliations, and the known inputs.
type ownerWorker struct {
	g        *Gardenlet
	id, kind string

	mu sync.Mutex
	// object is the owner's object at the last assessment; key is the digest of all its inputs.
	object  *unstructured.Unstructured
	key     string
	lastRun lastRun
	shoot   shootAPI
	// awaitsReview reports whether a deletion is held because no review showed it.
	awaitsReview bool
	// reconciledKey is the key of the last finished reconciliation; hasFailed is its result.
	reconciledKey string
	hasFailed     bool
	// held are the owner's held deletions; isHeldKnown reports whether this process determined
	// them.
	held          []permit.HeldObjects
	isHeldKnown   bool
	approvalUsage approvalUsage
}

// lastRun is the latest reconciliation of an owner, running or finished. site.mu guards it.
type lastRun struct {
	owner owner.Owner
	// reconciler is nil before the first run.
	reconciler *owner.Reconciler
	// state is the resulting State; key is the digest of the inputs.
	state owner.State
	key   string
}

// approvalUsage is the use of approvals by one owner. site.mu guards it.
type approvalUsage struct {
	// used are the approvals that were used since the last complete run. lapsedIDs are the ids of
	// holds that ended without an approval.
	used, lapsedIDs map[string]bool
	// useError is why an approval could not be used in the last run.
	useError error
}

// lastRunInput returns the input of care and repair; the reconciler is nil before the first run.
func (s *ownerWorker) lastRunInput() (*owner.Reconciler, owner.Owner, owner.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastRun.reconciler, s.lastRun.owner, s.lastRun.state
}

// currentState returns the State of the last or current run.
func (s *ownerWorker) currentState() owner.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastRun.state
}

func (s *ownerWorker) setState(left owner.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastRun.state = left
}

// reportInputError reports why an owner cannot be reconciled. It keeps the State of other inputs.
func (s *ownerWorker) reportInputError(ctx context.Context, r *owner.Reconciler, o owner.Owner, key string, cause error) {
	s.mu.Lock()
	last, same := s.lastRun, s.lastRun.key == key
	s.mu.Unlock()
	left := owner.State{}
	if same {
		o, left = last.owner, last.state
	}
	if left = r.MarkUnreconciled(ctx, o, left, cause); same {
		s.setState(left)
	}
}

// beginRun prepares a run. It drops the State of other inputs.
func (s *ownerWorker) beginRun(r *owner.Reconciler, o owner.Owner, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.lastRun.state
	if s.lastRun.key != key {
		left = owner.State{}
	}
	s.lastRun, s.approvalUsage.useError = lastRun{owner: o, reconciler: r, state: left, key: key}, nil
}

// isAwaitingReview reports whether a deletion is held because no review showed it.
func (s *ownerWorker) isAwaitingReview() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaitsReview
}

// setInput sets the input of the next reconciliations.
func (s *ownerWorker) setInput(from renderSources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object, s.key = from.object, from.digest
}

// HasObjects implements fleet.Owner.
func (s *ownerWorker) HasObjects() (something, rendered bool) {
	r, _, left := s.lastRunInput()
	return r != nil, len(left.Bundles()) > 0
}

// SetOf implements fleet.Owner.
func (s *ownerWorker) SetOf(cluster string, managedResource apply.Ref) string {
	r, o, left := s.lastRunInput()
	if r == nil {
		return ""
	}
	return r.SetOfManaged(o, left, cluster, managedResource)
}

// Care implements fleet.Owner.
func (s *ownerWorker) Care(ctx context.Context) {
	r, o, left := s.lastRunInput()
	left, err := r.ApplyWaiting(ctx, o, left)
	if err != nil && ctx.Err() == nil {
		s.g.options.Log.Info("cannot apply the objects that wait for the API server of a Shoot yet", "owner", s.id, "error", err)
	}
	if _, _, err := r.Care(ctx, o, left); err != nil && ctx.Err() == nil {
		s.g.options.Log.Info("cannot check the health of an owner", "owner", s.id, "error", err)
	}
}

// fleetMember returns the fleet member of an owner. Shoots wait for the Seed.
func (g *Gardenlet) fleetMember(id string, from renderSources, s *settings, again bool) fleet.Member[*ownerWorker] {
	o := g.ownerOf(from)
	m := fleet.Member[*ownerWorker]{
		ID: id, Digest: from.digest, ForceRun: again,
		New:      func() *ownerWorker { return &ownerWorker{g: g, id: id, kind: from.kind} },
		SetInput: func(at *ownerWorker) { at.setInput(from) },
		Converge: func(ctx context.Context, at *ownerWorker) error { return g.reconcileOwner(ctx, at, o, from, s) },
	}
	if from.kind == owner.Shoot {
		m.After = []string{owner.Seed + " " + g.options.Seed}
	}
	return m
}

// recordRunResult records and logs the result of a run.
func (g *Gardenlet) recordRunResult(m fleet.Member[*ownerWorker], at *ownerWorker, err error, next time.Duration) {
	g.services.metrics.countRun(at.kind, err)
	at.recordReconciled(m.Digest, err != nil)
	if err != nil {
		g.options.Log.Warn("not converged", "owner", m.ID, "error", strings.Join(apply.Problems(err), "; "), "again", next.String())
		return
	}
	g.options.Log.Info("converged", "owner", m.ID)
}

// ownerOf returns an owner with its clusters.
func (g *Gardenlet) ownerOf(from renderSources) owner.Owner {
	namespace, name := from.object.GetNamespace(), from.object.GetName()
	kind := from.object.GetKind()
	return owner.Owner{
		Input: render.Input{Owner: render.Owner{Kind: from.kind, Namespace: namespace, Name: name, UID: string(from.object.GetUID())}},
		Ref:   apply.RefOf(from.object), ObjectCluster: g.connections.garden, Local: g.connections.local,
		CachedObject: func() *unstructured.Unstructured { return g.objects.get(kind, namespace, name) },
	}
}

// reconcileOwner runs one reconciliation.
func (g *Gardenlet) reconcileOwner(ctx context.Context, at *ownerWorker, o owner.Owner, from renderSources, s *settings) error {
	in, err := g.renderInput(from)
	if err != nil {
		if ctx.Err() == nil {
			at.reportInputError(ctx, s.reconciler, o, from.digest, err)
		}
		return err
	}
	o.Input, o.OnState = in, at.setState
	if err := g.connectShoot(ctx, at, &o); err != nil {
		return err
	}
	complete, version := g.beginConvergenceRecord(ctx, from, s, o), g.reviewVersion()
	r := g.reconcilerFor(ctx, s, at, from, o)
	r.Hooks.OnOutcome = func(ctx context.Context, report *owner.Report, err error) {
		g.recordOutcome(ctx, at, from, s, reviewState{complete, version}, report, err)
	}
	at.beginRun(r, o, from.digest)
	began := g.options.Clock.Now()
	_, _, err = r.Reconcile(ctx, o, at.currentState())
	g.services.metrics.observeDuration(from.kind, g.options.Clock.Since(began))
	at.mu.Lock()
	defer at.mu.Unlock()
	return errors.Join(err, at.approvalUsage.useError)
}
