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
	// Outside reports whether the process runs outside the seed, where Service names do not
	// resolve.
	Outside bool
	// Catalogue holds the components, CatalogueVersion its version. Both default to this program's.
	Catalogue        fs.FS
	CatalogueVersion string
	// PolicyNamespaces selects further namespaces that get Gardener's network policies.
	PolicyNamespaces []labels.Selector
	Clock            clock.WithTicker
	// Holder identifies the process in the lease. Version is the program's, for status.gardener.
	Holder, Version string
	Log             *slog.Logger
	Pace            Pace
	// OnEvent and OnObject are called for every step and every object; they may be nil.
	OnEvent  func(owner.Event)
	OnObject func(owner, bundle string, r apply.ObjectResult)
}

// Pace configures intervals and timeouts.
type Pace struct {
	// SyncPeriod is how often an owner is reconciled without a known change; default 1 h.
	SyncPeriod time.Duration
	// CareInterval is how often health is checked; default 30 s.
	CareInterval time.Duration
	// HeartbeatInterval is how often the Lease in the virtual garden is renewed; default 2 s.
	HeartbeatInterval time.Duration
	// RetryInterval is the first wait after a failed reconciliation; it doubles up to ten minutes.
	// Default 10 s.
	RetryInterval time.Duration
	// StepTimeout shortens the timeouts of the flows' steps; zero keeps them.
	StepTimeout time.Duration
}

func (o *Options) defaults() {
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
		{&o.Pace.SyncPeriod, time.Hour}, {&o.Pace.CareInterval, 30 * time.Second}, {&o.Pace.HeartbeatInterval, 2 * time.Second}, {&o.Pace.RetryInterval, 10 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
}

// Gardenlet reconciles one Seed and its Shoots.
type Gardenlet struct {
	options  Options
	links    links
	services services

	objects *objects
	// wake requests an assessment.
	wake chan struct{}
	// joining passes the API servers of Shoots to the drift repair.
	joining chan fleet.AddedCluster
	// fleet reconciles the Seed and the Shoots.
	fleet *fleet.Fleet[*site]

	// mu guards the fields below that are not safe for concurrent use by themselves.
	mu        sync.Mutex
	published published
	events    events
	noted     noted
	// reporting is the last report that was written.
	reporting reporting
	heart     heart
	// isGarden reports whether the seed is also the Garden's runtime cluster.
	isGarden bool
}

// links are the connections to the clusters, and the engine that applies objects over them.
type links struct {
	garden, local *apply.Cluster
	// leases connects to the seed without a fence, for the lease alone.
	leases *apply.Cluster
	engine *apply.Engine
	force  atomic.Bool
}

// services run next to the owners for the lifetime of the gardenlet.
type services struct {
	metrics *metrics
	// tokens requests the access tokens of the Shoots.
	tokens *accesstokens.Keeper
	// policies maintains the network policies of namespaces.
	policies *namespacepolicies.Controller
	// renewal renews the access to the virtual garden.
	renewal  *renewal
	recorder record.EventRecorder
}

// published is the operator's publication for the seed.
type published struct {
	settings *settings
	// problem is why the latest publication is not in use; nil if it is.
	problem error
	// assessed is the digest of the publication that the fleet's owners come from.
	assessed string
}

// events records which Events were sent.
type events struct {
	// told is the last reported problem of the settings.
	told string
	// apart maps the owners of this seed that are left alone to the reason.
	apart map[string]string
	// said holds the last message by object and reason.
	said map[string]string
	// unrepaired holds the reported drift of objects on the seed.
	unrepaired unrepaired
	// handled holds the operation annotations that were handled, by UID and resource version.
	handled map[string]bool
}

// noted is the state that is stored on the seed and outlives the process.
type noted struct {
	// uses records what each approval was used for.
	uses *permit.UseLedger
	// records hold the last reconciliation of each owner. reviewSeen is the resource version of the
	// last handled review.
	records    *permit.ConfigMapStore[permit.ConvergenceRecord]
	reviewSeen string
	// elsewhere are records of Shoots on other seeds.
	elsewhere elsewhere
}

// heart is the lease of this process, and the state of its heartbeat.
type heart struct {
	lease *landscape.Lease
	// waits is the current holder while this process waits for the lease.
	waits string
	// beat is the time of the last successful heartbeat, silent the error of the latest one.
	beat   time.Time
	silent error
}

// New returns a Gardenlet; it sends no request.
func New(o Options) (*Gardenlet, error) {
	o.defaults()
	g := &Gardenlet{
		options: o, wake: make(chan struct{}, 1), events: events{apart: map[string]string{}, said: map[string]string{}, handled: map[string]bool{}},
		joining: make(chan fleet.AddedCluster), reporting: reporting{turn: make(chan struct{}, 1)},
	}
	g.fleet = fleet.New(fleet.Options[*site]{Clock: o.Clock, Slots: concurrentSyncs, RetryInterval: o.Pace.RetryInterval, LongestRetry: longestRetry, SyncPeriod: o.Pace.SyncPeriod, OnRunEnd: g.ended})
	var err error
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if o.GardenSecret.Name != "" {
		if err = g.ownAccess(); err != nil {
			return nil, err
		}
	}
	for _, c := range []struct {
		cluster **apply.Cluster
		name    string
		config  *rest.Config
	}{{&g.links.garden, landscape.Virtual, fenced(g.options.Garden, g.sure)}, {&g.links.local, o.Seed, fenced(o.Local, g.sure)}, {&g.links.leases, o.Seed, o.Local}} {
		if *c.cluster, err = conventions.NewCluster(c.name, c.config, apply.ClusterOptions{Clock: o.Clock}); err != nil {
			return nil, err
		}
	}
	g.noted.uses, g.noted.records = permit.NewUseLedger(g.links.local, onSeed(usesName), "gardenlet"), permit.NewConfigMapStore[permit.ConvergenceRecord](g.links.local, onSeed(recordsName), "gardenlet")
	g.links.engine = landscape.NewEngine(&landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}, landscape.Options{Clock: o.Clock, Take: landscape.Takeover{Force: func(apply.Ref) bool { return g.links.force.Load() }}})
	g.services.metrics = newMetrics()
	g.services.tokens = &accesstokens.Keeper{Clock: o.Clock, Log: o.Log}
	if g.services.policies, err = namespacepolicies.New(g.links.local.RESTConfig(), namespacepolicies.Options{MadeBy: namespacepolicies.ByGardenlet, Further: o.PolicyNamespaces, Clock: o.Clock, Log: o.Log}); err != nil {
		return nil, err
	}
	if g.objects, err = newObjects(g); err != nil {
		return nil, err
	}
	return g, nil
}

// close closes the connections.
func (g *Gardenlet) close() {
	for _, c := range []*apply.Cluster{g.links.garden, g.links.local, g.links.leases} {
		if c != nil {
			c.Close()
		}
	}
}

// fenced returns a configuration that sends no writes once another gardenlet may be active.
func fenced(config *rest.Config, sure func() bool) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(landscape.Fence(sure))
	return config
}

// sure reports whether no other gardenlet can be active.
func (g *Gardenlet) sure() bool {
	g.mu.Lock()
	lease := g.heart.lease
	g.mu.Unlock()
	return lease != nil && lease.Sure()
}

// Run reconciles the seed until ctx ends. It fails when the lease is lost, because another
// gardenlet may be active then.
func (g *Gardenlet) Run(ctx context.Context) error {
	defer g.close()
	// client-go's watches log to the same handler.
	ctx, stop := context.WithCancelCause(logr.NewContext(ctx, logr.FromSlogHandler(g.options.Log.Handler())))
	defer stop(nil)
	lease, err := landscape.AcquireGardenletLease(ctx, g.links.leases, g.options.Holder, g.options.Clock, func(err error) { stop(err) }, func(held *landscape.HeldError) {
		g.options.Log.Info("another gardenlet looks after the seed, waiting for its lease", "holder", held.Holder)
		g.mu.Lock()
		g.heart.waits = held.Holder
		g.mu.Unlock()
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("the lease of the seed: %w", err)
	}
	defer lease.Release()
	g.mu.Lock()
	g.heart.lease = lease
	g.mu.Unlock()
	g.options.Log.Info("looking after the seed", "seed", g.options.Seed, "catalogue", g.options.CatalogueVersion)
	endEvents, err := g.recordEvents()
	if err != nil {
		return err
	}
	defer endEvents()
	var group sync.WaitGroup
	group.Go(func() { g.heartbeats(ctx) })
	group.Go(func() { g.keep(ctx) })
	group.Go(func() { g.assessments(ctx) })
	group.Go(func() { g.renewals(ctx) })
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
	client, err := kubernetes.NewForConfig(g.links.garden.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", g.links.garden.Name(), err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	g.services.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "gardenlet"})
	return broadcaster.Shutdown, nil
}

// poke requests an assessment; concurrent requests are merged.
func (g *Gardenlet) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}
