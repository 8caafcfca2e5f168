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

// Options of a Gardenlet. Durations that are not set are upstream's.
type Options struct {
	// Seed is its name.
	Seed string
	// Garden and Local are the access to the virtual garden and to the seed.
	Garden, Local *rest.Config
	// GardenSecret is the Secret of the seed with the access to the virtual garden, which the
	// gardenlet renews; Garden is not set then.
	GardenSecret types.NamespacedName
	// Outside says that the process does not run in the seed, so that names of its Services mean
	// nothing here.
	Outside bool
	// Catalogue of components, and its version; default: the one of this program.
	Catalogue        fs.FS
	CatalogueVersion string
	// PolicyNamespaces select namespaces that get the network policies of Gardener's, too.
	PolicyNamespaces []labels.Selector
	Clock            clock.WithTicker
	// Holder is written into the lease; Version of this program into status.gardener.
	Holder, Version string
	Log             *slog.Logger
	Pace            Pace
	// OnEvent and OnObject hear about every step and every object; they may be nil.
	OnEvent  func(owner.Event)
	OnObject func(owner, bundle string, r apply.ObjectResult)
}

// Pace is how often things are done, and how long they may take.
type Pace struct {
	// SyncPeriod is how often an owner is converged although nothing is known to have changed;
	// default 1 h.
	SyncPeriod time.Duration
	// CareInterval is how often health is judged; default 30 s.
	CareInterval time.Duration
	// HeartbeatInterval is how often the virtual garden is told that the seed is looked after;
	// default 2 s.
	HeartbeatInterval time.Duration
	// RetryInterval is how soon a failed convergence is repeated first; it doubles up to ten
	// minutes. Default 10 s.
	RetryInterval time.Duration
	// StepTimeout shortens the timeouts of the flows' steps; zero leaves them as they are.
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

// Gardenlet looks after one seed.
type Gardenlet struct {
	options  Options
	links    links
	services services

	objects *objects
	// wake asks for a look at what there is, soon.
	wake chan struct{}
	// joining are the API servers of Shoots, for whoever repairs drift.
	joining chan fleet.Joining
	// fleet keeps the Seed and the Shoots.
	fleet *fleet.Fleet[*site]

	// mu is held for what follows, as far as it is not safe by itself.
	mu        sync.Mutex
	published published
	events    events
	noted     noted
	// reporting is how the seed was said to stand last.
	reporting reporting
	heart     heart
	// isGarden says that the seed is the Garden's runtime cluster, too.
	isGarden bool
}

// links are the connections to the clusters, and what applies by them.
type links struct {
	garden, local *apply.Cluster
	// leases is the seed, too, for the lease alone: all else is written behind a fence.
	leases *apply.Cluster
	engine *apply.Engine
	force  atomic.Bool
}

// services work beside the owners as long as the gardenlet does.
type services struct {
	metrics *metrics
	// tokens are requested for the Shoots.
	tokens *accesstokens.Keeper
	// policies of namespaces are kept by it.
	policies *namespacepolicies.Controller
	// renewal is of the access to the virtual garden.
	renewal  *renewal
	recorder record.EventRecorder
}

// published is what the operator has published for the seed.
type published struct {
	settings *settings
	// problem says why the published settings are not those in use; nil when they are.
	problem error
	// assessed is the digest of the publication that all owners are of.
	assessed string
}

// events are what people were told.
type events struct {
	// told is the problem of the settings that was told last.
	told string
	// apart are owners of this seed that are left alone, and why.
	apart map[string]string
	// said is what was told of objects last, by object and reason.
	said map[string]string
	// unrepaired is what was told of objects on the seed.
	unrepaired unrepaired
	// handled are operation annotations that were acted upon, by UID and what they said.
	handled map[string]bool
}

// noted is what outlives the process, on the seed.
type noted struct {
	// uses are what approvals were used for.
	uses *permit.Uses
	// records are how owners were converged last, reviewSeen the version of the review that was
	// looked at last.
	records    *permit.Notes[permit.Converged]
	reviewSeen string
	// elsewhere are the records of Shoots that are there, but not on this seed.
	elsewhere elsewhere
}

// heart is the lease, and when the virtual garden last heard of this process.
type heart struct {
	lease *landscape.Lease
	// waits is the holder of the lease that is waited for.
	waits string
	// beat is when a heartbeat arrived last, silent why the last one did not.
	beat   time.Time
	silent error
}

// New prepares a gardenlet; no request is made yet.
func New(o Options) (*Gardenlet, error) {
	o.defaults()
	g := &Gardenlet{
		options: o, wake: make(chan struct{}, 1), events: events{apart: map[string]string{}, said: map[string]string{}, handled: map[string]bool{}},
		joining: make(chan fleet.Joining), reporting: reporting{turn: make(chan struct{}, 1)},
	}
	g.fleet = fleet.New(fleet.Options[*site]{Clock: o.Clock, Slots: concurrentSyncs, RetryInterval: o.Pace.RetryInterval, LongestRetry: longestRetry, SyncPeriod: o.Pace.SyncPeriod, Ended: g.ended})
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
	g.noted.uses, g.noted.records = permit.NewUses(g.links.local, onSeed(usesName), "gardenlet"), permit.NewNotes[permit.Converged](g.links.local, onSeed(recordsName), "gardenlet")
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

// close ends the connections.
func (g *Gardenlet) close() {
	for _, c := range []*apply.Cluster{g.links.garden, g.links.local, g.links.leases} {
		if c != nil {
			c.Close()
		}
	}
}

// fenced is a connection over which nothing is written once another gardenlet may be at work.
func fenced(config *rest.Config, sure func() bool) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(landscape.Fence(sure))
	return config
}

// sure tells whether no other gardenlet can be at work.
func (g *Gardenlet) sure() bool {
	g.mu.Lock()
	lease := g.heart.lease
	g.mu.Unlock()
	return lease != nil && lease.Sure()
}

// Run looks after the seed until ctx ends. It fails when the lease is lost: somebody else may be at
// work then.
func (g *Gardenlet) Run(ctx context.Context) error {
	defer g.close()
	// What clients say of their watches goes where everything else does.
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
	if cause := context.Cause(ctx); errors.As(cause, new(*owner.LostError)) {
		return cause
	}
	return nil
}

// recordEvents makes the recorder of Events in the virtual garden.
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

// poke asks for a look at what there is; several at a time are one.
func (g *Gardenlet) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}
