// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/schemas/resultcache"
	"github.com/pergola-dev/pergola/source/receiver"
)

// Role is the whole of `pergola operator`.
type Role struct {
	// Config is the access to the runtime cluster.
	Config *rest.Config
	// OutsideCluster means that the process runs outside the runtime cluster and cannot resolve its
	// Services.
	OutsideCluster bool
	// Namespace is the namespace of the Landscapes; it is empty for all.
	Namespace string
	// Catalogue is the catalogue of components, normally components.FS.
	Catalogue fs.FS
	// Evaluator evaluates CUE files, in separate processes if they are not trusted.
	Evaluator evaluation.Evaluator
	// CacheDir stores fetched sources and validation results across restarts.
	CacheDir string
	// FileSources allows repositories in local folders (file://). Anyone who may write a Landscape
	// can then read all of them.
	FileSources bool
	Serving     Serving
	// PolicyNamespaces select further namespaces, besides Gardener's, for the Garden's network
	// policies.
	PolicyNamespaces []labels.Selector
	// Holder is the holder identity in the lease.
	Holder string
	// Version is the version of this program.
	Version string
	Clock   clock.WithTicker
	Log     *slog.Logger
}

// Serving configures the servers of the role.
type Serving struct {
	// Address is the listen address; it is empty for all addresses of the host.
	Address string
	// HealthPort, MetricsPort and ReceiverPort are the ports: a negative one disables the server,
	// and 0 selects any free port.
	HealthPort, MetricsPort, ReceiverPort int
	// ReceiverProxies are the addresses of load balancers in front of the receivers. Their
	// X-Forwarded-For is trusted.
	ReceiverProxies []netip.Prefix
	// OnListen receives the addresses of the ports, for tests with free ones; may be nil.
	OnListen func(health, metrics, receivers string)
}

// runningOperator has the components of the running role.
type runningOperator struct {
	role           *Role
	mgr            manager.Manager
	client         client.Client
	cacheReader    client.Reader // reads Landscapes from the cache
	notifier       *notification.Notifier
	metrics        *metrics
	requestHandler *requestHandler
	// renderLock is locked during evaluation, validation and rendering.
	renderLock *sync.Mutex

	mu               sync.Mutex
	lease            *landscape.SharedLease
	notWorkingReason string // why this replica does not work
	validationCaches map[receiver.Key]*resultcache.Store
	reconcilers      map[receiver.Key]*runningReconciler
	// nameOwners maps a Landscape's name to the namespace that owns it.
	nameOwners map[string]string
}

// runningReconciler is a syncer with its stop function.
type runningReconciler struct {
	reconciler *landscapeReconciler
	stop       context.CancelFunc
	done       chan struct{}
}

// hasLease reports whether this replica surely holds the lease.
func (p *runningOperator) hasLease() bool {
	p.mu.Lock()
	lease := p.lease
	p.mu.Unlock()
	return lease != nil && lease.IsExclusive()
}

// Run works until ctx ends. It fails when the lease is lost.
func (r *Role) Run(ctx context.Context) error {
	p := &runningOperator{role: r, metrics: newMetrics(), renderLock: &sync.Mutex{}, validationCaches: map[receiver.Key]*resultcache.Store{}, reconcilers: map[receiver.Key]*runningReconciler{}, nameOwners: map[string]string{}}
	if err := p.setUpManager(); err != nil {
		return fmt.Errorf("preparing the operator: %w", err)
	}
	serve, err := p.listenOnPorts()
	if err != nil {
		return fmt.Errorf("preparing the operator: %w", err)
	}
	return p.serveAndLead(ctx, serve)
}

func (p *runningOperator) setUpManager() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), landscapev1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	options := manager.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(p.role.Log.Handler()), HealthProbeBindAddress: "0", Metrics: metricsserver.Options{BindAddress: "0"},
		// Secrets are read one by one, because the operator may not list them.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	if p.role.Namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{p.role.Namespace: {}}
	}
	config := rest.CopyConfig(p.role.Config)
	config.UserAgent = userAgent
	var err error
	if p.mgr, err = manager.New(config, options); err != nil {
		return err
	}
	p.client, p.cacheReader = p.mgr.GetClient(), p.mgr.GetCache()
	p.notifier = notification.New(notification.Options{Recorder: p.mgr.GetEventRecorder(userAgent), Log: logr.FromSlogHandler(p.role.Log.Handler()), Clock: clock.RealClock{}})
	p.requestHandler = newRequestHandler(p)
	return errors.Join(p.mgr.Add(p.notifier), p.mgr.Add(manager.RunnableFunc(p.runAsLeader)))
}

// newMetricsRegistry registers all metrics of this role.
func (p *runningOperator) newMetricsRegistry() (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	var problems []error
	for _, c := range processCollectors() {
		problems = append(problems, registry.Register(c))
	}
	problems = append(problems, registry.Register(p.metrics), registry.Register(p.notifier), registry.Register(p.requestHandler.receiver))
	return registry, errors.Join(problems...)
}

// serveAndLead starts the servers first, so that probes can report missing prerequisites.
func (p *runningOperator) serveAndLead(ctx context.Context, serve func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, 1)
	go func() {
		err := serve(ctx)
		if err != nil {
			cancel(err)
		}
		served <- err
	}()
	err := p.waitForLandscapeKind(ctx)
	if err == nil {
		err = p.mgr.Start(ctx)
	}
	cause := context.Cause(ctx)
	cancel(nil)
	<-served
	switch {
	case errors.Is(cause, context.Canceled), cause == nil:
		return ignoreCanceled(err)
	default:
		return cause
	}
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// runAsLeader waits for the lease, and works while it holds the lease.
func (p *runningOperator) runAsLeader(ctx context.Context) error {
	cluster, err := conventions.NewCluster(landscape.Runtime, p.role.Config, apply.ClusterOptions{Clock: p.role.Clock})
	if err != nil {
		return err
	}
	defer cluster.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var lease *landscape.SharedLease
	for lease == nil {
		lease, err = landscape.AcquireOperatorLease(ctx, cluster, p.role.Holder, p.role.Clock, func(err error) { cancel(err) }, p.reportLeaseHolder)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			p.setNotWorkingReason(fmt.Sprintf("cannot acquire the lease: %v", err))
			p.role.Log.Error("cannot acquire the lease; retrying", "error", err)
			if !p.sleep(ctx, leaseRetryInterval) {
				return nil
			}
		}
	}
	p.mu.Lock()
	p.lease, p.notWorkingReason = lease, ""
	p.mu.Unlock()
	p.role.Log.Info("working", "holder", p.role.Holder, "namespace", p.role.Namespace, "version", p.role.Version)
	keeping, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { p.maintainNetworkPolicies(keeping) })
	beside.Go(func() { p.deployGardenlets(keeping) })
	err = p.runReconcilers(ctx)
	stop()
	beside.Wait()
	p.mu.Lock()
	p.lease = nil
	p.mu.Unlock()
	lease.Release()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("stopped, so that only one instance works: %w", cause)
	}
	return err
}

// leaseRetryInterval is the retry interval for the lease and for the CustomResourceDefinition of
// Landscapes.
const leaseRetryInterval = 2 * time.Second

func (p *runningOperator) sleep(ctx context.Context, d time.Duration) bool {
	timer := p.role.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

func (p *runningOperator) reportLeaseHolder(held *landscape.LeaseHeldError) {
	p.setNotWorkingReason("another instance is active: " + held.Error())
	p.role.Log.Info("waiting for the lease, which another instance holds", "holder", held.Holder, "lease", held.Lease)
}

func (p *runningOperator) setNotWorkingReason(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notWorkingReason = why
}

// ownLeases returns the leases that this process holds for its convergers.
func (p *runningOperator) ownLeases() []*landscape.SharedLease {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease == nil {
		return nil
	}
	return []*landscape.SharedLease{p.lease}
}

// validationCacheOf returns the store of a Landscape's validation results, which survives syncs and
// restarts.
func (p *runningOperator) validationCacheOf(key receiver.Key) *resultcache.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	store := p.validationCaches[key]
	if store == nil {
		if p.role.CacheDir != "" {
			store = resultcache.Open(filepath.Join(p.role.CacheDir, "validation"), key.String())
		}
		if store == nil {
			store = resultcache.InMemory()
		}
		p.validationCaches[key] = store
	}
	return store
}

func (p *runningOperator) secretReaderOf(l *landscapev1alpha1.Landscape) secretReader {
	out := secretReader{client: p.client, namespace: l.Namespace}
	if p.role.OutsideCluster {
		out.virtualAddress = func(ctx context.Context) (string, error) { return landscape.GardenAddress(ctx, p.role.Config) }
	}
	return out
}

// landscapeOf reads a Landscape from the cache, or nil if it does not exist.
func (p *runningOperator) landscapeOf(key receiver.Key) (*landscapev1alpha1.Landscape, error) {
	l := &landscapev1alpha1.Landscape{}
	err := p.cacheReader.Get(context.Background(), key, l) // the cache does not block
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return l, nil
}
