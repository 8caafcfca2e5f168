// SPDX-License-Identifier: Apache-2.0

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

// Options are the options of a Manager.
type Options struct {
	// Source holds the ManagedResources and their Secrets; its live cache must hold all
	// ManagedResources (SourceOptions). Target receives the objects; both may be the same.
	Source, Target *apply.Cluster
	// Class is the spec.class to reconcile; empty is the default class, * are all.
	Class string
	// ClusterID prefixes the origin annotation if source and target differ.
	ClusterID string
	// Namespace is the namespace of the ManagedResources; empty means all.
	Namespace string
	Timing    Timing
	// Clock is the real one by default.
	Clock clock.WithTicker
	// Log is slog.Default by default.
	Log *slog.Logger
	// ManagedBy is the value of the label resources.gardener.cloud/managed-by; the default is
	// gardener. Source and Target select by it.
	ManagedBy string
	// LeaveToGarbageCollector leaves Secrets and ConfigMaps with its label to the garbage
	// collector: they are not deleted when they leave a ManagedResource.
	LeaveToGarbageCollector bool
	// HealthRules take precedence over those of the kinds; it is nil for none.
	HealthRules health.Rules
	// Version is the version of this program: another version may apply the same manifests
	// differently.
	Version string
	// Force takes fields over from other managers. By default they are conflicts; an object can
	// force with the annotation landscape.pergola.dev/force-conflicts.
	Force bool
	// ExistenceOnly does not judge kinds without a rule, as in upstream; by default they are judged
	// by kstatus conventions.
	ExistenceOnly bool
	// Event publishes an event about a ManagedResource; it may be nil.
	Event func(mr *resourcesv1alpha1.ManagedResource, reason, message string)
}

// Timing sets intervals and concurrency.
type Timing struct {
	// Workers is the number of ManagedResources reconciled concurrently; the default is 5.
	Workers int
	// SyncPeriod is the interval of reconciliations without a known change; the default is 1
	// minute.
	SyncPeriod time.Duration
	// StartupGrace is how long after the start requests of an earlier instance may still arrive;
	// the default is 30 seconds, the timeout of a request.
	StartupGrace time.Duration
}

// SourceOptions returns the options of a source cluster of a Manager.
func SourceOptions(namespace string) apply.ClusterOptions {
	return apply.ClusterOptions{WholeKinds: []schema.GroupKind{managedResourceKind.GroupKind()}, Namespace: namespace}
}

// applyKeys are upstream's keys with the managed-by value of this manager.
func applyKeys(managedBy string) apply.Keys {
	k := conventions.ManagedResourceKeys()
	if managedBy != "" {
		k.ManagedByValue = managedBy
	}
	return k
}

var managedResourceKind = resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource")

// forceHint ends the hint of a conflict.
const forceHint = "give the object the annotation landscape.pergola.dev/force-conflicts=true"

const (
	// deletionRetryInterval is the retry interval of a deletion that waits for finalizers;
	// upstream's value.
	deletionRetryInterval = 5 * time.Second
	// minRolloutInterval and maxRolloutInterval bound the interval of health checks during a
	// rollout.
	minRolloutInterval, maxRolloutInterval = 5 * time.Second, time.Minute
	// clusterRetryPause is the pause after a cluster did not answer.
	clusterRetryPause = 4 * time.Second
	// minRetryPause and maxRetryPause bound the pauses after failures.
	minRetryPause, maxRetryPause = 500 * time.Millisecond, 2 * time.Minute
	// healthCheckDelay is how long changes of objects are collected before a health check.
	healthCheckDelay = 200 * time.Millisecond
	// deleteTimeout is how long terminating objects that left the set delay kinds later in the
	// deletion order; deleteAllTimeout applies when the whole set is deleted.
	deleteTimeout, deleteAllTimeout = 3 * time.Second, 30 * time.Second
	// crdTimeout is how long one run waits for a CustomResourceDefinition to be established.
	crdTimeout = 10 * time.Second
	// idleWatchTimeout is the minimum age of an unused watch before it ends.
	idleWatchTimeout = 10 * time.Minute
	// sourceRetryPause is the pause between attempts to read the source.
	sourceRetryPause = 5 * time.Second
)

// Manager reconciles the ManagedResources of a class.
type Manager struct {
	options        Options
	engine         *apply.Engine
	reconciler     *managedresource.Reconciler
	secretCache    *secretCache
	declarations   *declarationIndex
	writeConflicts *writeConflicts
	metrics        *metrics
	queue          workqueue.TypedDelayingInterface[types.NamespacedName]
	retryLimiter   workqueue.TypedRateLimiter[types.NamespacedName]
	hasReadSource  atomic.Bool

	mu sync.Mutex
	// dueTimes is when to apply a ManagedResource, not only to check its health.
	dueTimes map[types.NamespacedName]time.Time
}

// New creates a Manager. It sends no request.
func New(o Options) (*Manager, error) {
	if o.Source == nil || o.Target == nil {
		return nil, errors.New("a resource manager needs a source and a target")
	}
	if o.Timing.Workers <= 0 {
		o.Timing.Workers = 5
	}
	if o.Timing.SyncPeriod <= 0 {
		o.Timing.SyncPeriod = time.Minute
	}
	if o.Timing.StartupGrace <= 0 {
		o.Timing.StartupGrace = 30 * time.Second
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
	m := &Manager{options: o, engine: conventions.NewEngine(apply.Options{Clock: o.Clock, Keys: applyKeys(o.ManagedBy), IsSibling: managedresource.IsFieldManager,
		IsForced: func(apply.Ref) bool { return o.Force }, ForceHint: func(apply.Ref) string { return forceHint }}), dueTimes: map[types.NamespacedName]time.Time{},
		retryLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minRetryPause, maxRetryPause),
		queue:        workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Name: "managedresource", Clock: o.Clock})}
	m.metrics = newMetrics()
	m.declarations = newDeclarationIndex(m)
	m.writeConflicts = &writeConflicts{clock: o.Clock, objects: map[types.NamespacedName]map[apply.Ref]*writeConflict{}}
	var err error
	if m.secretCache, err = newSecretCache(o.Source, o.Namespace, m.onSecretChange); err != nil {
		return nil, err
	}
	m.reconciler = &managedresource.Reconciler{
		Engine: m.engine, Source: o.Source, Target: o.Target, Class: o.Class, ClusterID: o.ClusterID, Clock: o.Clock,
		Data:         managedresource.DataSecrets{Read: m.secretCache.get, VersionsDigest: m.secretsDigest},
		Options:      apply.ApplyOptions{DeleteTimeout: deleteTimeout, NoWait: true, ReadyTimeout: crdTimeout},
		Deletion:     managedresource.DeletionOptions{DeleteTimeout: deleteAllTimeout, LeaveToGarbageCollector: o.LeaveToGarbageCollector, AllowByOwner: true},
		Declarations: m.declarations, WriteConflict: m.writeConflicts.describe,
		HealthOptions: managedresource.HealthOptions{Rules: o.HealthRules, ExistenceOnly: o.ExistenceOnly},
		ManagedBy:     o.ManagedBy,
	}
	return m, nil
}

// Ready returns nil once all ManagedResources are read.
func (m *Manager) Ready() error {
	if !m.hasReadSource.Load() {
		return errors.New("the ManagedResources are not read yet")
	}
	return nil
}

// Start runs until the context ends, and waits for running reconciliations.
func (m *Manager) Start(ctx context.Context) error {
	defer m.queue.ShutDown()
	m.engine.ExpectLateRequests(m.options.Timing.StartupGrace)
	defer m.options.Source.OnChange(m.onSourceChange)()
	defer m.options.Target.OnChange(m.onTargetChange)()
	if m.openCaches(ctx) != nil {
		return nil // the context ended
	}
	m.hasReadSource.Store(true)
	var group sync.WaitGroup
	group.Go(func() {
		m.engine.WatchDrift(ctx, m.options.Target, m.repairDrift)
	})
	group.Go(func() { m.dropIdleWatches(ctx) })
	for range m.options.Timing.Workers {
		group.Go(func() {
			for m.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	m.queue.ShutDown()
	group.Wait()
	return nil
}

// dropIdleWatches ends watches of kinds that are in no inventory. Every kind in an inventory is
// used within Sync.
func (m *Manager) dropIdleWatches(ctx context.Context) {
	after := max(idleWatchTimeout, 2*m.options.Timing.SyncPeriod)
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

// openCaches opens the caches of the source; their content arrives as changes. It fails only when
// the context ends.
func (m *Manager) openCaches(ctx context.Context) error {
	for {
		err := m.secretCache.start(ctx)
		if err == nil {
			_, err = m.options.Source.List(ctx, managedResourceKind, m.options.Namespace, nil)
		}
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		m.options.Log.Error("cannot read the ManagedResources; retrying", "cluster", m.options.Source.Name(), "error", err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.options.Clock.After(sourceRetryPause):
		}
	}
}

// processNext reconciles one ManagedResource; it returns false on shutdown.
func (m *Manager) processNext(ctx context.Context) bool {
	key, shutdown := m.queue.Get()
	if shutdown {
		return false
	}
	defer m.queue.Done(key)
	full := m.takeDue(key)
	began := m.options.Clock.Now()
	again, result, err := m.process(ctx, key, full)
	if err != nil {
		result = resultFailed
	}
	m.metrics.observeDuration(result, m.options.Clock.Since(began))
	m.options.Log.Debug("looked", "managedResource", key.String(), "applied", full, "again", again)
	defer m.requeueDue(key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		m.options.Log.Error("reconciling", "managedResource", key.String(), "error", err.Error())
		m.scheduleApply(key, m.retryPause(key, err))
	default:
		m.retryLimiter.Forget(key)
		if again > 0 {
			m.scheduleApply(key, again)
		}
	}
	return true
}

// retryPause returns the wait after a failure. It grows for errors of a ManagedResource. It is
// short if a cluster does not answer: retries are cheap, and work should resume soon.
func (m *Manager) retryPause(key types.NamespacedName, err error) time.Duration {
	if apply.IsTransient(err) {
		return wait.Jitter(clusterRetryPause, 0.2)
	}
	return m.retryLimiter.When(key)
}

// requeueDue queues a ManagedResource for its due time: the queue holds one time per key, and a
// health check uses that up.
func (m *Manager) requeueDue(key types.NamespacedName) {
	m.mu.Lock()
	due, ok := m.dueTimes[key]
	m.mu.Unlock()
	if ok {
		m.queue.AddAfter(key, due.Sub(m.options.Clock.Now()))
	}
}

// takeDue reports whether a ManagedResource is due to be applied, and clears its due time.
func (m *Manager) takeDue(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	due, ok := m.dueTimes[key]
	if !ok || m.options.Clock.Now().Before(due) {
		return false
	}
	delete(m.dueTimes, key)
	return true
}

// scheduleApply schedules the application of a ManagedResource after a while, unless it is due
// earlier. The zero time means at once: a clock that is set back would move a real time into the
// future.
func (m *Manager) scheduleApply(key types.NamespacedName, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var due time.Time
	if after > 0 {
		due = m.options.Clock.Now().Add(after)
	}
	if before, ok := m.dueTimes[key]; !ok || due.Before(before) {
		m.dueTimes[key] = due
	}
}

// process reconciles a ManagedResource, or only judges its objects. It returns when to reconcile
// again (0: never) and the result.
func (m *Manager) process(ctx context.Context, key types.NamespacedName, full bool) (time.Duration, string, error) {
	if !full {
		return 0, resultJudged, m.checkHealth(ctx, key)
	}
	out, err := m.reconciler.Reconcile(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) && out == nil {
		return 0, resultApplied, nil
	}
	if out != nil {
		m.metrics.countActions(out.ApplyResult)
	}
	if err != nil {
		if out != nil && m.options.Event != nil && ctx.Err() == nil {
			m.options.Event(out.ManagedResource, resourcesv1alpha1.ConditionApplyFailed, err.Error())
		}
		return 0, resultFailed, err
	}
	switch {
	case out.OtherFinalizer != "":
		m.options.Log.Info("another class still has its objects", "managedResource", key.String(), "finalizer", out.OtherFinalizer)
		return 0, resultPending, nil // its removal changes the ManagedResource
	case out.ApplyResult == nil:
		return 0, resultApplied, nil
	case !out.ApplyResult.Complete:
		return deletionRetryInterval, resultPending, nil
	case out.ManagedResource.DeletionTimestamp != nil:
		return 0, resultApplied, nil
	}
	m.scheduleRolloutCheck(key, out.ManagedResource)
	return m.options.Timing.SyncPeriod, resultApplied, nil
}

// checkHealth checks the health of the applied objects.
func (m *Manager) checkHealth(ctx context.Context, key types.NamespacedName) error {
	mr, err := m.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !m.reconciler.IsResponsible(mr) || mr.DeletionTimestamp != nil || managedresource.IsIgnored(mr) || !canJudgeHealth(mr) {
		return nil
	}
	if _, err := m.reconciler.CheckHealth(ctx, mr); err != nil {
		return fmt.Errorf("judging the health of ManagedResource %s: %w", key, err)
	}
	m.scheduleRolloutCheck(key, mr)
	return nil
}

// scheduleRolloutCheck schedules the next health check of a rollout, less and less often: pods are
// not watched, and their events explain why it is stuck.
func (m *Manager) scheduleRolloutCheck(key types.NamespacedName, mr *resourcesv1alpha1.ManagedResource) {
	c := condition.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	if c != nil && c.Status == gardencorev1beta1.ConditionTrue {
		m.queue.AddAfter(key, min(max(minRolloutInterval, m.options.Clock.Since(c.LastTransitionTime.Time)/4), maxRolloutInterval))
	}
}

// canJudgeHealth reports whether health can be judged: the known desired objects are applied.
func canJudgeHealth(mr *resourcesv1alpha1.ManagedResource) bool {
	for _, c := range mr.Status.Conditions {
		if c.Type == resourcesv1alpha1.ResourcesApplied {
			// Objects that left the set may still exist; the set itself is applied.
			return c.Status == gardencorev1beta1.ConditionTrue || c.Status == gardencorev1beta1.ConditionUnknown || c.Reason == resourcesv1alpha1.ConditionDeletionPending
		}
	}
	return false
}
