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
	// Source holds the ManagedResources and their Secrets; its live cache must hold all
	// ManagedResources (SourceOptions). Target receives the objects; both may be the same.
	Source, Target *apply.Cluster
	// Class is the spec.class to reconcile; empty is the default class, * are all.
	Class string
	// ClusterID prefixes the origin annotation if source and target differ.
	ClusterID string
	// Namespace of the ManagedResources; empty means all.
	Namespace string
	Pace      Pace
	// Clock is the real one by default.
	Clock clock.WithTicker
	// Log is slog.Default by default.
	Log *slog.Logger
	// ManagedBy is the value of the label resources.gardener.cloud/managed-by; default gardener.
	// Source and Target select by it.
	ManagedBy string
	// GarbageCollector leaves Secrets and ConfigMaps with its label to the garbage collector: they
	// are not deleted when they leave a ManagedResource.
	GarbageCollector bool
	// HealthRules take precedence over those of the kinds; nil for none.
	HealthRules health.Rules
	// Version of this program: another version may apply the same manifests differently.
	Version string
	// Force takes fields over from other managers. By default they are conflicts; an object can
	// force with the annotation landscape.pergola.dev/force-conflicts.
	Force bool
	// ExistenceOnly does not judge kinds without a rule, as upstream; by default they are judged by
	// kstatus conventions.
	ExistenceOnly bool
	// Event publishes an event about a ManagedResource; it may be nil.
	Event func(mr *resourcesv1alpha1.ManagedResource, reason, message string)
}

// Pace sets intervals and concurrency.
type Pace struct {
	// Workers is the number of ManagedResources reconciled concurrently; default 5.
	Workers int
	// Sync is the interval of reconciliations without a known change; default 1 minute.
	Sync time.Duration
	// Settle is how long after the start requests of an earlier instance may still arrive; default
	// 30 seconds, the timeout of a request.
	Settle time.Duration
}

// SourceOptions returns the options of a source cluster of a Manager.
func SourceOptions(namespace string) apply.ClusterOptions {
	return apply.ClusterOptions{Whole: []schema.GroupKind{managedResourceKind.GroupKind()}, Namespace: namespace}
}

// keys are upstream's keys with the managed-by value of this manager.
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
	// retryDeletion is the retry interval of a deletion that waits for finalizers; upstream's
	// value.
	retryDeletion = 5 * time.Second
	// retryRolling and lastRolling bound the interval of health checks during a rollout.
	retryRolling, lastRolling = 5 * time.Second, time.Minute
	// retryCluster is the pause after a cluster did not answer.
	retryCluster = 4 * time.Second
	// firstRetry and lastRetry bound the pauses after failures.
	firstRetry, lastRetry = 500 * time.Millisecond, 2 * time.Minute
	// settle is how long changes of objects are collected before a health check.
	settle = 200 * time.Millisecond
	// hold is how long terminating objects that left the set delay kinds later in the deletion
	// order; holdAll applies when the whole set is deleted.
	hold, holdAll = 3 * time.Second, 30 * time.Second
	// served is how long one run waits for a CustomResourceDefinition to be established.
	served = 10 * time.Second
	// idle is the minimum age of an unused watch before it ends.
	idle = 10 * time.Minute
	// retryStart is the pause between attempts to read the source.
	retryStart = 5 * time.Second
)

// Manager reconciles the ManagedResources of a class.
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
	// due is when to apply a ManagedResource, not only to check its health.
	due map[types.NamespacedName]time.Time
}

// New creates a Manager. It sends no request.
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

// Ready returns nil once all ManagedResources are read.
func (m *Manager) Ready() error {
	if !m.started.Load() {
		return errors.New("the ManagedResources are not read yet")
	}
	return nil
}

// Start runs until the context ends, and waits for running reconciliations.
func (m *Manager) Start(ctx context.Context) error {
	defer m.queue.ShutDown()
	m.engine.Settle(m.options.Pace.Settle)
	defer m.options.Source.OnChange(m.sourceChanged)()
	defer m.options.Target.OnChange(m.targetChanged)()
	if m.read(ctx) != nil {
		return nil // the context ended
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

// dropIdle ends watches of kinds that are in no inventory. Every kind in an inventory is used
// within Sync.
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

// read opens the caches of the source; their content arrives as changes. It fails only when the
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

// next reconciles one ManagedResource; it returns false on shutdown.
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

// pause returns the wait after a failure. It grows for errors of a ManagedResource. It is short if
// a cluster does not answer: retries are cheap, and work should resume soon.
func (m *Manager) pause(key types.NamespacedName, err error) time.Duration {
	if apply.IsPassing(err) {
		return wait.Jitter(retryCluster, 0.2)
	}
	return m.pauses.When(key)
}

// remember queues a ManagedResource for its due time: the queue holds one time per key, and a
// health check uses that up.
func (m *Manager) remember(key types.NamespacedName) {
	m.mu.Lock()
	due, ok := m.due[key]
	m.mu.Unlock()
	if ok {
		m.queue.AddAfter(key, due.Sub(m.options.Clock.Now()))
	}
}

// take reports whether a ManagedResource is due to be applied, and clears its due time.
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

// demand schedules the application of a ManagedResource after a while, unless it is due earlier.
// The zero time means at once: a clock that is set back would move a real time into the future.
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

// work reconciles a ManagedResource, or only judges its objects. It returns when to reconcile again
// (0: never) and the result.
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
		return 0, resultPending, nil // its removal changes the ManagedResource
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

// judge checks the health of the applied objects.
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

// lookAgain schedules the next health check of a rollout, less and less often: pods are not
// watched, and their events explain why it is stuck.
func (m *Manager) lookAgain(key types.NamespacedName, mr *resourcesv1alpha1.ManagedResource) {
	c := condition.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	if c != nil && c.Status == gardencorev1beta1.ConditionTrue {
		m.queue.AddAfter(key, min(max(retryRolling, m.options.Clock.Since(c.LastTransitionTime.Time)/4), lastRolling))
	}
}

// isApplied reports whether health can be judged: the known desired objects are applied.
func isApplied(mr *resourcesv1alpha1.ManagedResource) bool {
	for _, c := range mr.Status.Conditions {
		if c.Type == resourcesv1alpha1.ResourcesApplied {
			// Objects that left the set may still exist; the set itself is applied.
			return c.Status == gardencorev1beta1.ConditionTrue || c.Status == gardencorev1beta1.ConditionUnknown || c.Reason == resourcesv1alpha1.ConditionDeletionPending
		}
	}
	return false
}
