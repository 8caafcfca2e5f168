// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// ControllerName is upstream's name of the controller in logs and metrics.
const ControllerName = "garbage-collector"

// Defaults of Options.
const (
	// DefaultInterval is upstream's; its operator and gardenlet set 12 hours.
	DefaultInterval = time.Hour
	// DefaultMinimumAge is upstream's minimum lifetime of an object.
	DefaultMinimumAge = 10 * time.Minute
	// DefaultGrace is our own: upstream deletes at the first scan.
	DefaultGrace   = 10 * time.Minute
	defaultWorkers = 5
)

// minRetryPause and maxRetryPause bound the pauses after failed scans.
const minRetryPause, maxRetryPause = time.Second, 10 * time.Minute

// Options are the options of the collector.
type Options struct {
	// Target is the cluster to clean up; the default is that of the manager.
	Target *rest.Config
	// Namespaces are the namespaces to clean up; none means all.
	Namespaces []string
	// Referrers are the kinds whose objects may refer to others; default DefaultReferrers. Kinds
	// that are not served are ignored.
	Referrers []schema.GroupVersionKind
	// Interval is the time between two scans; the default is 1 hour. It is shorter if an object is
	// due earlier.
	Interval time.Duration
	// MinimumAge is the minimum age of an object; the default is 10 minutes.
	MinimumAge time.Duration
	// Grace is how long an object must be unreferenced, as seen by this process; the default is 10
	// minutes.
	Grace time.Duration
	// Workers is the number of concurrent deletions; the default is 5.
	Workers int
	// PageSize limits the objects of one response; the default is 500, and a fifth of it for full
	// objects.
	PageSize int64
	// Clock is the real one by default.
	Clock clock.WithTicker
	// Metrics registers the metrics of this package; the default is the registry of
	// controller-runtime.
	Metrics prometheus.Registerer
}

// DefaultReferrers are the kinds that carry reference annotations.
// Source: pkg/resourcemanager/controller/garbagecollector.
func DefaultReferrers() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "batch", Version: "v1", Kind: "CronJob"},
		{Version: "v1", Kind: "Pod"},
		resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"),
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"},
	}
}

func (o *Options) setDefaults(mgr manager.Manager) {
	if o.Target == nil {
		o.Target = mgr.GetConfig()
	}
	if o.Referrers == nil {
		o.Referrers = DefaultReferrers()
	}
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.MinimumAge <= 0 {
		o.MinimumAge = DefaultMinimumAge
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if o.PageSize <= 0 {
		o.PageSize = 500
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
}

// collector collects the garbage of a cluster. Only one worker uses it.
type collector struct {
	Options
	cluster *clusterClient
	metrics *collectorMetrics
	// unreferenced is when an object was first seen without a referrer.
	unreferenced map[objectID]time.Time
	// lastServed are the referrers that were served at the last scan.
	lastServed []servedKind
}

// Add adds the collector to a manager. It scans when it starts (or is elected), then at intervals.
func Add(mgr manager.Manager, o Options) error {
	o.setDefaults(mgr)
	c, err := newCollector(o)
	if err != nil {
		return err
	}
	ctrl, err := controller.New(ControllerName, mgr, controller.Options{
		Reconciler:              c,
		MaxConcurrentReconciles: 1,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryPause, maxRetryPause),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: o.Clock})
		},
	})
	if err != nil {
		return fmt.Errorf("adding the garbage collector: %w", err)
	}
	return ctrl.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	}))
}

func newCollector(o Options) (*collector, error) {
	cluster, err := newClusterClient(o.Target, o.PageSize)
	if err != nil {
		return nil, fmt.Errorf("creating the clients of the garbage collector: %w", err)
	}
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	return &collector{Options: o, cluster: cluster, metrics: m, unreferenced: map[objectID]time.Time{}}, nil
}

// Reconcile scans once.
func (c *collector) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	logger := log.FromContext(ctx)
	// With a verbose logger, clients would log responses, for example environments of pods.
	ctx, cancel := context.WithTimeout(logr.NewContext(ctx, logr.Discard()), max(c.Interval, time.Minute))
	defer cancel()
	next, err := c.scan(ctx, logger)
	if err != nil {
		c.metrics.failures.Inc()
		return reconcile.Result{}, err
	}
	c.metrics.lastSuccess.Set(float64(c.Clock.Now().UnixNano()) / float64(time.Second))
	return reconcile.Result{RequeueAfter: next}, nil
}

// scan finds garbage, deletes what is due and returns the time until the next scan.
func (c *collector) scan(ctx context.Context, logger logr.Logger) (time.Duration, error) {
	served, err := c.cluster.servedKinds(ctx, c.Referrers)
	if err != nil {
		return 0, err
	}
	// List objects before referrers, to see references that are added in between.
	objects, err := c.cluster.listCollectable(ctx, c.Namespaces)
	if err != nil {
		return 0, err
	}
	referred := references{}
	for _, k := range served {
		if err := c.cluster.addReferences(ctx, k, c.Namespaces, referred); err != nil {
			return 0, err
		}
	}
	due, next := c.recordUnreferenced(objects, referred, served)
	c.metrics.objects.Set(float64(len(objects)))
	c.metrics.unreferenced.Set(float64(len(c.unreferenced)))
	var failed []error
	for namespace, candidates := range due {
		kept, err := c.cluster.findUsed(ctx, c.Referrers, served, namespace, candidates)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for id, by := range kept {
			logger.Info("keeping an object that is named without an annotation", "kind", id.kind, "namespace", namespace, "name", id.name, "by", by)
			delete(candidates, id)
		}
		if err := c.deleteGarbage(ctx, logger, candidates); err != nil {
			failed = append(failed, err)
		}
	}
	logger.Info("scanned for garbage", "objects", len(objects), "unreferenced", len(c.unreferenced), "next", next.String())
	return next, errors.Join(failed...)
}

// recordUnreferenced records unreferenced objects. It returns those that are due, by namespace, and
// the time until the next ones are.
func (c *collector) recordUnreferenced(objects map[objectID]deletionCandidate, referred references, served []servedKind) (map[string]map[objectID]deletionCandidate, time.Duration) {
	now, next := c.Clock.Now(), c.Interval
	if hasMissingKind(c.lastServed, served) {
		// A kind is no longer served. If the API server has only not read its definition yet,
		// objects of that kind still have references.
		clear(c.unreferenced)
	}
	c.lastServed = served
	due := map[string]map[objectID]deletionCandidate{}
	for id := range c.unreferenced {
		if _, there := objects[id]; !there || referred.has(id) {
			delete(c.unreferenced, id)
		}
	}
	for id, o := range objects {
		if referred.has(id) {
			continue
		}
		since, known := c.unreferenced[id]
		if !known {
			since = now
			c.unreferenced[id] = now
		}
		wait := max(since.Add(c.Grace).Sub(now), o.created.Add(c.MinimumAge).Sub(now))
		if wait > 0 {
			next = min(next, wait)
			continue
		}
		if due[id.namespace] == nil {
			due[id.namespace] = map[objectID]deletionCandidate{}
		}
		due[id.namespace][id] = o
	}
	return due, next
}
