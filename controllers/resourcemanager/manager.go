package resourcemanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/condition"
)

// Options of a Manager.
type Options struct {
	// Source holds the ManagedResources and their Secrets; its live cache has to hold all
	// ManagedResources (SourceOptions). Target gets the objects; it may be the same.
	Source, Target *apply.Cluster
	// Class of the ManagedResources, as in spec.class; empty is the default class, * are all.
	Class string
	// ClusterID goes in front of the origin annotation where source and target differ.
	ClusterID string
	// Namespace of the ManagedResources; empty are all.
	Namespace string
	Pace      Pace
	// Clock is the real one by default.
	Clock clock.WithTicker
	// Log is slog.Default by default.
	Log *slog.Logger
	// ManagedBy is the value of the label resources.gardener.cloud/managed-by; default gardener.
	// Source and Target select by it.
	ManagedBy string
	// GarbageCollector says that Secrets and ConfigMaps with the label of the garbage collector are
	// left to it: they are not deleted when they leave a ManagedResource.
	GarbageCollector bool
	// HealthRules go before those of the kinds; nil for none.
	HealthRules health.Rules
	// Version of this program: another one may do other things with the same manifests.
	Version string
	// Force takes fields over from other managers; by default they are reported as conflicts, and
	// objects can ask for it by the annotation landscape.pergola.dev/force-conflicts.
	Force bool
	// ExistenceOnly leaves kinds that have no rule unjudged, as upstream does; by default they are
	// judged in the terms of kstatus.
	ExistenceOnly bool
	// Event is told what people may want to know of a ManagedResource; it may be nil.
	Event func(mr *resourcesv1alpha1.ManagedResource, reason, message string)
}

// Pace is how often things are done, and how long they may take.
type Pace struct {
	// Workers is the number of ManagedResources that are worked on at a time; default 5.
	Workers int
	// Sync is how often a ManagedResource is looked at again although nothing is known to have
	// changed; default 1 minute.
	Sync time.Duration
	// Settle is how long after the start requests of an instance that worked before may still
	// arrive; default 30 seconds, the timeout of a request.
	Settle time.Duration
}

// SourceOptions are what the cluster has to be made with that a Manager reads ManagedResources
// from.
func SourceOptions(namespace string) apply.ClusterOptions {
	return apply.ClusterOptions{Whole: []schema.GroupKind{managedResourceKind.GroupKind()}, Namespace: namespace}
}

// keys are upstream's, with the value that marks the objects of this manager.
func keys(managedBy string) apply.Keys {
	k := conventions.Keys()
	if managedBy != "" {
		k.ManagedByValue = managedBy
	}
	return k
}

var managedResourceKind = resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource")

// forceHint ends the hint of a conflict.
const forceHint = "give the object the annotation landscape.pergola.dev/force-conflicts=true"

const (
	// retryDeletion is how soon a deletion is looked at again that waits for finalizers; upstream's
	// value.
	retryDeletion = 5 * time.Second
	// retryRolling and lastRolling bound how soon the health of objects is looked at again that are
	// rolled out.
	retryRolling, lastRolling = 5 * time.Second, time.Minute
	// retryCluster is how soon it is tried again after a cluster did not answer.
	retryCluster = 4 * time.Second
	// firstRetry and lastRetry bound the pauses after failures.
	firstRetry, lastRetry = 500 * time.Millisecond, 2 * time.Minute
	// settle is how long changes of objects are gathered before their health is judged.
	settle = 200 * time.Millisecond
	// hold is how long objects that are deleted hold back those of kinds that come later in the
	// order of deletion, when they left the set; holdAll, when the whole set goes.
	hold, holdAll = 3 * time.Second, 30 * time.Second
	// served is how long one pass waits for a CustomResourceDefinition to be established.
	served = 10 * time.Second
	// idle is how long the watch of a kind stays that nothing needs, at least.
	idle = 10 * time.Minute
	// retryStart is how soon it is tried again to read the source.
	retryStart = 5 * time.Second
)

// Manager keeps the ManagedResources of a class.
type Manager struct {
	options    Options
	engine     *apply.Engine
	reconciler *managedresource.Reconciler
	secrets    *secrets
	neighbours *neighbours
	fights     *fights
	metrics    *metrics
	queue      workqueue.TypedDelayingInterface[types.NamespacedName]
	pauses     workqueue.TypedRateLimiter[types.NamespacedName]
	started    atomic.Bool

	mu sync.Mutex
	// due is when a ManagedResource is to be applied, and not only judged.
	due map[types.NamespacedName]time.Time
}

// New makes a Manager. It makes no request.
func New(o Options) (*Manager, error) {
	if o.Source == nil || o.Target == nil {
		return nil, errors.New("a resource manager needs a source and a target")
	}
	if o.Pace.Workers <= 0 {
		o.Pace.Workers = 5
	}
	if o.Pace.Sync <= 0 {
		o.Pace.Sync = time.Minute
	}
	if o.Pace.Settle <= 0 {
		o.Pace.Settle = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Class == resourcesv1alpha1.ClassDefault {
		o.Class = ""
	}
	m := &Manager{options: o, engine: conventions.NewEngine(apply.Options{Clock: o.Clock, Keys: keys(o.ManagedBy), Kin: managedresource.IsFieldManager,
		Force: func(apply.Ref) bool { return o.Force }, ForceHint: func(apply.Ref) string { return forceHint }}), due: map[types.NamespacedName]time.Time{},
		pauses: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
		queue:  workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Name: "managedresource", Clock: o.Clock})}
	m.metrics = newMetrics()
	m.neighbours = newNeighbours(m)
	m.fights = &fights{clock: o.Clock, objects: map[types.NamespacedName]map[apply.Ref]*fight{}}
	var err error
	if m.secrets, err = newSecrets(o.Source, o.Namespace, m.secretChanged); err != nil {
		return nil, err
	}
	m.reconciler = &managedresource.Reconciler{
		Engine: m.engine, Source: o.Source, Target: o.Target, Class: o.Class, ClusterID: o.ClusterID, Clock: o.Clock,
		Data:       managedresource.DataSecrets{Secrets: m.secrets.get, Versions: m.versions},
		Options:    apply.ApplyOptions{DeleteTimeout: hold, NoWait: true, CRDTimeout: served},
		Deletion:   managedresource.Deletion{DeleteTimeout: holdAll, GarbageCollector: o.GarbageCollector, LeaveDeletions: true},
		Neighbours: m.neighbours, Contested: m.fights.told,
		Judging:   managedresource.Judging{Rules: o.HealthRules, ExistenceOnly: o.ExistenceOnly},
		ManagedBy: o.ManagedBy,
	}
	return m, nil
}

// Ready is nil once all ManagedResources are known.
func (m *Manager) Ready() error {
	if !m.started.Load() {
		return errors.New("the ManagedResources are not read yet")
	}
	return nil
}

// Start works until the context ends, and returns when nothing is under way any more.
func (m *Manager) Start(ctx context.Context) error {
	defer m.queue.ShutDown()
	m.engine.Settle(m.options.Pace.Settle)
	defer m.options.Source.OnChange(m.sourceChanged)()
	defer m.options.Target.OnChange(m.targetChanged)()
	if m.read(ctx) != nil {
		return nil // it was told to end
	}
	m.started.Store(true)
	var group sync.WaitGroup
	group.Go(func() {
		m.engine.Watch(ctx, m.options.Target, m.drifted)
	})
	group.Go(func() { m.dropIdle(ctx) })
	for range m.options.Pace.Workers {
		group.Go(func() {
			for m.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	m.queue.ShutDown()
	group.Wait()
	return nil
}

// dropIdle ends watches of kinds that are in no inventory any more: everything that is in one is
// looked at within Sync.
func (m *Manager) dropIdle(ctx context.Context) {
	after := max(idle, 2*m.options.Pace.Sync)
	tick := m.options.Clock.NewTicker(after / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		if gone := m.options.Target.DropIdle(after); len(gone) > 0 {
			m.options.Log.Info("watches ended", "cluster", m.options.Target.Name(), "resources", fmt.Sprint(gone))
		}
	}
}

// read opens the caches of the source; what they hold comes as changes. It fails only when the
// context ends.
func (m *Manager) read(ctx context.Context) error {
	for {
		err := m.secrets.start(ctx)
		if err == nil {
			_, err = m.options.Source.List(ctx, managedResourceKind, m.options.Namespace, nil)
		}
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		m.options.Log.Error("reading the ManagedResources", "cluster", m.options.Source.Name(), "error", err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.options.Clock.After(retryStart):
		}
	}
}

// next works on one ManagedResource; false when there will be no more.
func (m *Manager) next(ctx context.Context) bool {
	key, shutdown := m.queue.Get()
	if shutdown {
		return false
	}
	defer m.queue.Done(key)
	full := m.take(key)
	began := m.options.Clock.Now()
	again, result, err := m.work(ctx, key, full)
	if err != nil {
		result = resultFailed
	}
	m.metrics.looked(result, m.options.Clock.Since(began))
	m.options.Log.Debug("looked", "managedResource", key.String(), "applied", full, "again", again)
	defer m.remember(key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		m.options.Log.Error("reconciling", "managedResource", key.String(), "error", err.Error())
		m.demand(key, m.pause(key, err))
	default:
		m.pauses.Forget(key)
		if again > 0 {
			m.demand(key, again)
		}
	}
	return true
}

// pause is how long to wait after a failure: longer and longer where it is about the
// ManagedResource, and shortly where a cluster does not answer, since that costs next to nothing
// and all is to go on soon after it does.
func (m *Manager) pause(key types.NamespacedName, err error) time.Duration {
	if apply.IsPassing(err) {
		return wait.Jitter(retryCluster, 0.2)
	}
	return m.pauses.When(key)
}

// remember puts a ManagedResource into the queue for the time at which it is to be applied: the
// queue has one time for it, which a look at its health took away.
func (m *Manager) remember(key types.NamespacedName) {
	m.mu.Lock()
	due, ok := m.due[key]
	m.mu.Unlock()
	if ok {
		m.queue.AddAfter(key, due.Sub(m.options.Clock.Now()))
	}
}

// take tells whether a ManagedResource is to be applied now.
func (m *Manager) take(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	due, ok := m.due[key]
	if !ok || m.options.Clock.Now().Before(due) {
		return false
	}
	delete(m.due, key)
	return true
}

// demand says that a ManagedResource is to be applied after a while, or sooner if that was said
// already. At once is no point in time: a clock that is put back before anybody looks would make it
// one of the future.
func (m *Manager) demand(key types.NamespacedName, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var due time.Time
	if after > 0 {
		due = m.options.Clock.Now().Add(after)
	}
	if before, ok := m.due[key]; !ok || due.Before(before) {
		m.due[key] = due
	}
}

// work reconciles a ManagedResource, or only judges its objects. It tells when to look again, 0 is
// never, and what was done.
func (m *Manager) work(ctx context.Context, key types.NamespacedName, full bool) (time.Duration, string, error) {
	if !full {
		return 0, resultJudged, m.judge(ctx, key)
	}
	out, err := m.reconciler.Reconcile(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) && out == nil {
		return 0, resultApplied, nil
	}
	if out != nil {
		m.metrics.done(out.Applied)
	}
	if err != nil {
		if out != nil && m.options.Event != nil && ctx.Err() == nil {
			m.options.Event(out.Object, resourcesv1alpha1.ConditionApplyFailed, err.Error())
		}
		return 0, resultFailed, err
	}
	switch {
	case out.Waiting != "":
		m.options.Log.Info("another class still has its objects", "managedResource", key.String(), "finalizer", out.Waiting)
		return 0, resultPending, nil // its end is a change of the ManagedResource
	case out.Applied == nil:
		return 0, resultApplied, nil
	case !out.Applied.Complete:
		return retryDeletion, resultPending, nil
	case out.Object.DeletionTimestamp != nil:
		return 0, resultApplied, nil
	}
	m.lookAgain(key, out.Object)
	return m.options.Pace.Sync, resultApplied, nil
}

// judge looks at the health of what is applied.
func (m *Manager) judge(ctx context.Context, key types.NamespacedName) error {
	mr, err := m.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !m.reconciler.Responsible(mr) || mr.DeletionTimestamp != nil || managedresource.IsIgnored(mr) || !isApplied(mr) {
		return nil
	}
	if _, err := m.reconciler.CheckHealth(ctx, mr); err != nil {
		return fmt.Errorf("judging the health of ManagedResource %s: %w", key, err)
	}
	m.lookAgain(key, mr)
	return nil
}

// lookAgain sees to it that a roll-out is looked at again, less and less often: what happens to
// pods is not watched, and their events tell why it does not go on.
func (m *Manager) lookAgain(key types.NamespacedName, mr *resourcesv1alpha1.ManagedResource) {
	c := condition.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	if c != nil && c.Status == gardencorev1beta1.ConditionTrue {
		m.queue.AddAfter(key, min(max(retryRolling, m.options.Clock.Since(c.LastTransitionTime.Time)/4), lastRolling))
	}
}

// isApplied tells whether health can be judged: what is there is what was asked for, as far as it
// is known.
func isApplied(mr *resourcesv1alpha1.ManagedResource) bool {
	for _, c := range mr.Status.Conditions {
		if c.Type == resourcesv1alpha1.ResourcesApplied {
			// What left the set may still be there: what is in it is applied.
			return c.Status == gardencorev1beta1.ConditionTrue || c.Status == gardencorev1beta1.ConditionUnknown || c.Reason == resourcesv1alpha1.ConditionDeletionPending
		}
	}
	return false
}
