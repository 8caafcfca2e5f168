// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/accesstokens"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/namespacepolicies"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
)

// Options configure a Gardenlet. Durations that are not set default to upstream's.
type Options struct {
	// Seed is the name of the Seed.
	Seed string
	// Garden and Local are the connections to the virtual garden and to the seed.
	Garden, Local *rest.Config
	// GardenSecret is the Secret of the seed with the access to the virtual garden. The gardenlet
	// renews it. Garden is not set then.
	GardenSecret types.NamespacedName
	// OutsideCluster reports whether the process runs outside the seed, where Service names do not
	// resolve.
	OutsideCluster bool
	// Catalogue holds the components; CatalogueVersion holds its version. Both default to this
	// program's.
	Catalogue        fs.FS
	CatalogueVersion string
	// PolicyNamespaces selects further namespaces that get Gardener's network policies.
	PolicyNamespaces []labels.Selector
	Clock            clock.WithTicker
	// Holder identifies the process in the lease. Version is the program's, for status.gardener.
	Holder, Version string
	Log             *slog.Logger
	Timing          Timing
	// OnEvent and OnObject are called for every step and every object; they may be nil.
	OnEvent  func(owner.Event)
	OnObject func(owner, bundle string, r apply.ObjectResult)
}

// Timing configures intervals and timeouts.
type Timing struct {
	// SyncPeriod is how often an owner is reconciled without a known change; the default is 1 h.
	SyncPeriod time.Duration
	// CareInterval is how often health is checked; the default is 30 s.
	CareInterval time.Duration
	// HeartbeatInterval is how often the Lease in the virtual garden is renewed; the default is 2
	// s.
	HeartbeatInterval time.Duration
	// RetryInterval is the first wait after a failed reconciliation; it doubles up to ten minutes.
	// The default is 10 s.
	RetryInterval time.Duration
	// StepTimeout shortens the timeouts of the flows' steps; zero keeps them.
	StepTimeout time.Duration
}

func (o *Options) setDefaults() {
	if o.Catalogue == nil {
		o.Catalogue = components.FS
	}
	if o.CatalogueVersion == "" {
		o.CatalogueVersion = components.Version
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.Timing.SyncPeriod, time.Hour}, {&o.Timing.CareInterval, 30 * time.Second}, {&o.Timing.HeartbeatInterval, 2 * time.Second}, {&o.Timing.RetryInterval, 10 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
}

// Gardenlet reconciles one Seed and its Shoots.
type Gardenlet struct {
	options     Options
	connections connections
	services    services

	objects *gardenObjects
	// syncRequests requests an assessment.
	syncRequests chan struct{}
	// newShootClusters passes the API servers of Shoots to the drift repair.
	newShootClusters chan fleet.AddedCluster
	// fleet reconciles the Seed and the Shoots.
	fleet *fleet.Fleet[*ownerWorker]

	// mu guards the fields below that are not safe for concurrent use.
	mu           sync.Mutex
	publication  publicationState
	eventHistory eventHistory
	seedRecords  seedRecords
	// reportWriter is the last report that was written.
	reportWriter   reportWriter
	heartbeatState heartbeatState
	// isGarden reports whether the seed is also the Garden's runtime cluster.
	isGarden bool
}

// connections are the connections to the clusters, and the engine that applies objects over them.
type connections struct {
	garden, local *apply.Cluster
	// leases connects to the seed without a fence, for the lease alone.
	leases         *apply.Cluster
	engine         *apply.Engine
	forceConflicts atomic.Bool
}

// services run next to the owners for the lifetime of the gardenlet.
type services struct {
	metrics *metrics
	// tokens requests the access tokens of the Shoots.
	tokens *accesstokens.Requester
	// policies maintains the network policies of namespaces.
	policies *namespacepolicies.Controller
	// accessRenewal renews the access to the virtual garden.
	accessRenewal *accessRenewal
	recorder      record.EventRecorder
}

// publicationState is the operator's publication for the seed.
type publicationState struct {
	settings *settings
	// problem is why the latest publication is not in use; it is nil if it is.
	problem error
	// syncedDigest is the digest of the publication that the fleet's owners come from.
	syncedDigest string
}

// eventHistory records which Events were sent.
type eventHistory struct {
	// settingsProblem is the last reported problem of the settings.
	settingsProblem string
	// unmanagedOwners maps the owners of this seed that are left alone to the reason.
	unmanagedOwners map[string]string
	// messages holds the last message by object and reason.
	messages map[string]string
	// driftReports holds the reported drift of objects on the seed.
	driftReports driftReports
	// handledOperations holds the operation annotations that were handled, by UID and resource
	// version.
	handledOperations map[string]bool
}

// seedRecords is the state that is stored on the seed and outlives the process.
type seedRecords struct {
	// approvalUses records what each approval was used for.
	approvalUses *permit.UseLedger
	// records hold the last reconciliation of each owner. handledReview is the resource version of
	// the last handled review.
	records       *permit.ConfigMapStore[permit.ConvergenceRecord]
	handledReview string
	// otherSeedShoots are records of Shoots on other seeds.
	otherSeedShoots otherSeedShoots
}

// heartbeatState is the lease of this process, and the state of its heartbeat.
type heartbeatState struct {
	lease *landscape.SharedLease
	// leaseHolder is the current holder while this process waits for the lease.
	leaseHolder string
	// lastSuccess is the time of the last successful heartbeat; lastError is the error of the
	// latest one.
	lastSuccess time.Time
	lastError   error
}

// New returns a Gardenlet; it sends no request.
func New(o Options) (*Gardenlet, error) {
	o.setDefaults()
	g := &Gardenlet{
		options: o, syncRequests: make(chan struct{}, 1), eventHistory: eventHistory{unmanagedOwners: map[string]string{}, messages: map[string]string{}, handledOperations: map[string]bool{}},
		newShootClusters: make(chan fleet.AddedCluster), reportWriter: reportWriter{semaphore: make(chan struct{}, 1)},
	}
	g.fleet = fleet.New(fleet.Options[*ownerWorker]{Clock: o.Clock, Slots: concurrentSyncs, RetryInterval: o.Timing.RetryInterval, MaxRetryInterval: maxRetryInterval, SyncPeriod: o.Timing.SyncPeriod, OnRunEnd: g.recordRunResult})
	var err error
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if o.GardenSecret.Name != "" {
		if err = g.prepareGardenAccess(); err != nil {
			return nil, err
		}
	}
	for _, c := range []struct {
		cluster **apply.Cluster
		name    string
		config  *rest.Config
	}{{&g.connections.garden, landscape.Virtual, withWriteFence(g.options.Garden, g.isSoleWriter)}, {&g.connections.local, o.Seed, withWriteFence(o.Local, g.isSoleWriter)}, {&g.connections.leases, o.Seed, o.Local}} {
		if *c.cluster, err = conventions.NewCluster(c.name, c.config, apply.ClusterOptions{Clock: o.Clock}); err != nil {
			return nil, err
		}
	}
	g.seedRecords.approvalUses, g.seedRecords.records = permit.NewUseLedger(g.connections.local, seedConfigMapRef(approvalUsesConfigMap), "gardenlet"), permit.NewConfigMapStore[permit.ConvergenceRecord](g.connections.local, seedConfigMapRef(recordsConfigMap), "gardenlet")
	g.connections.engine = landscape.NewEngine(&landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}, landscape.Options{Clock: o.Clock, Takeover: landscape.Takeover{Force: func(apply.Ref) bool { return g.connections.forceConflicts.Load() }}})
	g.services.metrics = newMetrics()
	g.services.tokens = &accesstokens.Requester{Clock: o.Clock, Log: o.Log}
	if g.services.policies, err = namespacepolicies.New(g.connections.local.RESTConfig(), namespacepolicies.Options{Role: namespacepolicies.RoleGardenlet, ExtraNamespaces: o.PolicyNamespaces, Clock: o.Clock, Log: o.Log}); err != nil {
		return nil, err
	}
	if g.objects, err = newGardenObjects(g); err != nil {
		return nil, err
	}
	return g, nil
}

// close closes the connections.
func (g *Gardenlet) close() {
	for _, c := range []*apply.Cluster{g.connections.garden, g.connections.local, g.connections.leases} {
		if c != nil {
			c.Close()
		}
	}
}

// withWriteFence returns a configuration that sends no writes once another gardenlet may be active.
func withWriteFence(config *rest.Config, sure func() bool) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(landscape.NewWriteFence(sure))
	return config
}

// isSoleWriter reports whether no other gardenlet can be active.
func (g *Gardenlet) isSoleWriter() bool {
	g.mu.Lock()
	lease := g.heartbeatState.lease
	g.mu.Unlock()
	return lease != nil && lease.IsExclusive()
}

// Run reconciles the seed until ctx ends. It fails when the lease is lost, because another
// gardenlet may be active then.
func (g *Gardenlet) Run(ctx context.Context) error {
	defer g.close()
	// client-go's watches log to the same handler.
	ctx, stop := context.WithCancelCause(logr.NewContext(ctx, logr.FromSlogHandler(g.options.Log.Handler())))
	defer stop(nil)
	lease, err := landscape.AcquireGardenletLease(ctx, g.connections.leases, g.options.Holder, g.options.Clock, func(err error) { stop(err) }, func(held *landscape.LeaseHeldError) {
		g.options.Log.Info("waiting for the lease of the seed, which another gardenlet holds", "holder", held.Holder)
		g.mu.Lock()
		g.heartbeatState.leaseHolder = held.Holder
		g.mu.Unlock()
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("acquiring the lease of the seed: %w", err)
	}
	defer lease.Release()
	g.mu.Lock()
	g.heartbeatState.lease = lease
	g.mu.Unlock()
	g.options.Log.Info("reconciling the seed", "seed", g.options.Seed, "catalogue", g.options.CatalogueVersion)
	endEvents, err := g.recordEvents()
	if err != nil {
		return err
	}
	defer endEvents()
	var group sync.WaitGroup
	group.Go(func() { g.runHeartbeats(ctx) })
	group.Go(func() { g.maintainOwners(ctx) })
	group.Go(func() { g.runOwnerSync(ctx) })
	group.Go(func() { g.runAccessRenewal(ctx) })
	group.Go(func() { g.services.policies.Run(ctx) })
	<-ctx.Done()
	group.Wait()
	for _, at := range g.fleet.Stop(context.Cause(ctx)) {
		g.disconnect(at)
	}
	g.services.tokens.Close()
	if cause := context.Cause(ctx); errors.As(cause, new(*owner.LeaseLostError)) {
		return cause
	}
	return nil
}

// recordEvents starts the recorder of Events in the virtual garden.
func (g *Gardenlet) recordEvents() (end func(), err error) {
	client, err := kubernetes.NewForConfig(g.connections.garden.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", g.connections.garden.Name(), err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	g.services.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "gardenlet"})
	return broadcaster.Shutdown, nil
}

// requestSync requests an assessment; concurrent requests are merged.
func (g *Gardenlet) requestSync() {
	select {
	case g.syncRequests <- struct{}{}:
	default:
	}
}
