package landscape

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/accesstokens"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/owner/coming"
	"github.com/pergola-dev/pergola/controllers/owner/renders"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Options of a Converger.
type Options struct {
	// Catalogue of components, normally components.FS.
	Catalogue fs.FS
	Connect   Connections
	Hear      Listeners
	// Checked means that render.CheckLandscape has found no error; the check is skipped.
	Checked bool
	Reuse   Reuse
	// OnlyGarden leaves Seeds and Shoots to gardenlets, and contacts no seed, as gardener-operator
	// does.
	OnlyGarden bool
	Clock      clock.WithTicker
	Self       Self
	Pace       Pace
	Permits    Permits
	// CurrentAt returns when the files of the landscape were known to be the newest; default: the
	// time of New. Another landscape waits for a run with files newer than its question before it
	// deletes objects that may have moved here.
	CurrentAt func() time.Time
	Take      Takeover
}

// Connections contains the access to the clusters, and existing connections.
type Connections struct {
	// Configs by cluster name. A missing cluster is reported when it is needed.
	Configs map[string]*rest.Config
	// Clusters are existing connections, by cluster name. They have precedence over Configs, and
	// Close leaves them open. With Engine, they preserve caches between the convergers of
	// successive revisions, so unchanged objects cost nothing.
	Clusters map[string]*apply.Cluster
	// Flags are the flags of kubectl or Pergola for a cluster of Configs, by cluster name, for
	// commands in hints.
	Flags map[string]string
	// Engine to apply with; nil makes one. NewEngine must have made it for a landscape with the
	// same spec.forceConflicts.
	Engine *apply.Engine
	// Leases that the process holds: this converger neither acquires nor releases them.
	Leases []*Lease
	// Outside means that the process does not run in the runtime cluster, so it cannot resolve
	// names of Services.
	Outside bool
}

// Listeners receive events; each may be nil.
type Listeners struct {
	// OnCare receives the conditions of an owner after each health check.
	OnCare   func(owner string, conditions []gardencorev1beta1.Condition)
	OnEvent  func(owner.Event)
	OnObject func(owner, bundle string, r apply.ObjectResult)
	// OnWaiting is called when a run waits for a lease, concurrently for several leases.
	OnWaiting func(Waiting)
	// OnDrift is called for repairs while a landscape is watched.
	OnDrift func(Drift)
}

// Reuse contains state that successive convergers of a landscape share.
type Reuse struct {
	// Charts pulls and caches the charts of Extensions; nil pulls none.
	Charts *charts.Puller
	// Renders caches rendered results between convergers; nil makes a converger render each owner.
	Renders *renders.Cache
	// Tokens requests the tokens of control planes across convergers; nil makes a converger do so
	// until Close.
	Tokens *accesstokens.Keeper
	// Memory of permissions that convergers share; nil gives each its own.
	Memory *permit.RunMemory
}

// Self describes this process.
type Self struct {
	// Holder is the identity in the leases.
	Holder string
	// Retries means that the process retries after a failure; lastOperation shows it.
	Retries bool
	// Version of this program, for status.gardener.
	Version string
}

// Pace contains timeouts and intervals.
type Pace struct {
	Thresholds condition.Thresholds
	// StepTimeout shortens the timeouts of flow steps; zero leaves them unchanged.
	StepTimeout time.Duration
	// CareInterval is the interval of health checks during and between runs; default 30 s
	// (upstream's).
	CareInterval time.Duration
}

// Permits contains the rules for deletions.
type Permits struct {
	Gate permit.Gate
	// Reviewed are the reviewed deletions and recreations; others are held. nil requires no review.
	// They are valid until everything was applied once.
	Reviewed *permit.Review
	// Shown maps the id that follows from the objects to the id that people approve; nil means that
	// they are equal.
	Shown func(id string) string
}

// Takeover contains the rules for fields that others own.
type Takeover struct {
	// Force reports whether the fields of an object are taken over from other owners; ForceHint
	// returns how a person requests that.
	Force     func(apply.Ref) bool
	ForceHint func(apply.Ref) string
}

// Converger reconciles one landscape. It contains the connections and the last rendered results.
type Converger struct {
	landscape *landscapes.Landscape
	options   Options
	links     links
	members   members
	// runs makes reviews and approvals count once.
	runs *permit.RunLedger
	role roleHeld

	mu    sync.Mutex
	now   runState
	drift driftState
	ahead foresight
	// reports of the gardenlets, by the name of the Seed, from the time when an owner was
	// identified.
	reports map[string]*seedpublication.Report
	// totals are the numbers of declared objects by cluster; nil before they are counted.
	totals    map[string]int
	admission admission
	// made is the creation time of this converger.
	made time.Time
}

// links contains the connections of a converger, and the engine that uses them.
type links struct {
	clusters map[string]*apply.Cluster
	// opened are the connections that this converger must close.
	opened []*apply.Cluster
	// tokens ends with this converger; nil if it belongs to another one.
	tokens *accesstokens.Keeper
	engine *apply.Engine
}

// members contains the owners of a landscape.
type members struct {
	reconciler *owner.Reconciler
	all        []*member
	fleet      *fleet.Fleet[*member]
	unbound    []error
	// applied means that the owners come from the inventories, see NewApplied.
	applied bool
}

// roleHeld is the state of the leases of a converger.
type roleHeld struct {
	// alive ends when a lease is lost: another process may reconcile now.
	alive  context.Context
	die    context.CancelCauseFunc
	leases []*lease
	// sighted are leases of other processes, by cluster and name, see sightLeases.
	sighted map[string]sighting
	// keptBy is the other process that applies the landscape, as of the last plan; empty if there
	// is none.
	keptBy string
}

// runState is the result of the current or last run.
type runState struct {
	report Report
	// ending are Gardens whose deletion this run has started, ended those whose deletion is
	// complete.
	ending, ended map[apply.Ref]bool
	// refused are the declarations that could not be applied.
	refused map[apply.Ref]bool
	// declared are the clusters whose declarations were applied completely.
	declared map[string]bool
	// unapplied are the objects that the current repair has skipped.
	unapplied map[apply.Ref]bool
	// handed are the declared fields that controllers own.
	handed map[apply.Ref][]change.HandedOver
}

// driftState is the known drift.
type driftState struct {
	// drifts contains the failed repairs since the last apply; repairing means that a repair is
	// running.
	drifts    map[driftSet]standing
	repairing bool
}

// foresight contains the state for predicting Seeds and Shoots after an apply.
type foresight struct {
	// foreseen are the Seeds and Shoots as an apply would leave them, where they differ from the
	// live ones, see inforce.go.
	foreseen map[apply.Ref]*unstructured.Unstructured
	filler   *render.Filler
	// mutations choose the values that Shoots leave open.
	mutations *mutation.Surroundings
	// coming are the objects that a plan would create.
	coming *coming.PlannedPrerequisites
}

// New prepares the clusters of a landscape without any request.
func New(l *landscapes.Landscape, options Options) (*Converger, error) {
	c, err := connect(l, options)
	if err != nil {
		return nil, err
	}
	if err := c.prepareOwners(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// connect returns a converger with clusters and without owners.
func connect(l *landscapes.Landscape, options Options) (*Converger, error) {
	if options.Pace.CareInterval <= 0 {
		options.Pace.CareInterval = careInterval
	}
	gate, runs := permit.NewRunLedger(options.Permits.Gate, options.Permits.Reviewed, options.Reuse.Memory)
	options.Permits.Gate = gate
	c := &Converger{landscape: l, options: options, runs: runs, links: links{clusters: map[string]*apply.Cluster{}, engine: options.Connect.Engine}, members: members{fleet: newFleet(options.Clock)}, ahead: foresight{coming: &coming.PlannedPrerequisites{}}, made: options.Clock.Now()}
	if c.links.engine == nil {
		own := options
		own.Take.ForceHint = c.forceHint
		c.links.engine = NewEngine(l, own)
	}
	c.role.alive, c.role.die = context.WithCancelCause(context.Background())
	maps.Copy(c.links.clusters, options.Connect.Clusters)
	for name, config := range options.Connect.Configs {
		if c.links.clusters[name] != nil {
			continue
		}
		cluster, err := conventions.NewCluster(name, config, apply.ClusterOptions{Clock: options.Clock, Kubectl: strings.TrimSpace("kubectl " + options.Connect.Flags[name])})
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		c.links.clusters[name] = cluster
		c.links.opened = append(c.links.opened, cluster)
	}
	return c, nil
}

// prepareOwners sets up the reconciler and the owners.
func (c *Converger) prepareOwners() error {
	options, l := c.options, c.landscape
	settings := []render.Setting{render.At(options.Clock.Now())}
	if options.Checked {
		settings = append(settings, render.Checked())
	}
	rendering, err := render.LandscapeOptions(options.Catalogue, l, settings...)
	if err != nil {
		return err
	}
	judging, err := l.Judging()
	if err != nil {
		return err
	}
	c.members.reconciler = &owner.Reconciler{
		Engine: c.links.engine, Render: rendering, RenderCache: options.Reuse.Renders, Clock: options.Clock, Gate: options.Permits.Gate,
		Gardener: gardencorev1beta1.Gardener{ID: options.Self.Holder, Name: options.Self.Holder, Version: options.Self.Version},
		Charts:   options.Reuse.Charts, Prerequisites: c.ahead.coming, Tokens: c.keeper(), RetriesFailures: options.Self.Retries, StepTimeout: options.Pace.StepTimeout,
		ConditionSettings: owner.ConditionSettings{
			Thresholds: options.Pace.Thresholds, HealthRules: judging.Rules, ExistenceOnly: judging.ExistenceOnly, ProgressingThreshold: progressingThreshold(l),
			PrometheusAccess: prometheis(l, options.Connect.Outside), CareInterval: options.Pace.CareInterval,
		},
		Hooks: owner.Hooks{OnEvent: options.Hear.OnEvent, OnObject: c.object},
	}
	if err := c.findOwners(); err != nil {
		return err
	}
	c.enlist()
	return nil
}

// keeper returns the Keeper for the tokens of control planes.
func (c *Converger) keeper() *accesstokens.Keeper {
	if c.options.Reuse.Tokens != nil {
		return c.options.Reuse.Tokens
	}
	c.links.tokens = &accesstokens.Keeper{Clock: c.options.Clock}
	return c.links.tokens
}

// Cluster returns the connection to one cluster, nil if there is none.
func (c *Converger) Cluster(name string) *apply.Cluster { return c.links.clusters[name] }

// Close closes all connections and releases the leases.
func (c *Converger) Close() {
	c.links.tokens.Close()
	c.mu.Lock()
	leases := c.role.leases
	c.role.leases = nil
	c.mu.Unlock()
	var group sync.WaitGroup
	for _, l := range leases {
		group.Go(l.release)
	}
	group.Wait()
	c.role.die(nil)
	for _, cluster := range c.links.opened {
		cluster.Close()
		c.links.engine.Forget(cluster)
	}
}

// findOwners adds every owner of the landscape with its clusters.
func (c *Converger) findOwners() error {
	var kinds []string // all kinds
	if c.options.OnlyGarden {
		kinds = []string{owner.Garden}
	}
	inputs, err := render.Owners(c.landscape, render.At(c.options.Clock.Now()), render.OwnersOf(kinds...))
	if err != nil {
		return err
	}
	var seedOf map[string]string
	if !c.options.OnlyGarden {
		if seedOf, err = render.SeedsOfShoots(c.landscape); err != nil {
			return err
		}
	}
	for _, in := range inputs {
		o := owner.Owner{Input: in, Ref: ownerRef(in.Owner)}
		local := Runtime
		switch in.Owner.Kind {
		case owner.Garden:
			o.Home, o.Target = c.links.clusters[Runtime], c.links.clusters[Virtual]
		case owner.Seed:
			o.Home, local = c.links.clusters[Virtual], in.Owner.Name
			o.Input.SeedIsGarden = in.SeedIsGarden || isSame(c.links.clusters[Runtime], c.links.clusters[local])
		case owner.Shoot:
			o.Home, local = c.links.clusters[Virtual], seedOf[in.Owner.Namespace+"/"+in.Owner.Name]
		}
		o.Local = c.links.clusters[local]
		if o.Home == nil || o.Local == nil {
			c.members.unbound = append(c.members.unbound, fmt.Errorf("%s: %w", in.Owner, c.noAccess(&o, local)))
			continue
		}
		m := c.add(o)
		if in.Owner.Kind == owner.Shoot {
			// The connection uses the Input of the member, which each run refines.
			if err := owner.ConnectShoot(&m.Owner, true, nil, apply.ClusterOptions{Clock: c.options.Clock}); err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			c.links.opened = append(c.links.opened, m.Target)
		}
	}
	return nil
}

// isSame reports whether two connections lead to one API server.
func isSame(a, b *apply.Cluster) bool {
	return a != nil && b != nil && a.RESTConfig().Host == b.RESTConfig().Host && a.RESTConfig().APIPath == b.RESTConfig().APIPath
}

// noAccess returns an error about the missing cluster of an owner. It lists declared clusters
// without a Seed, which may be misspelt names.
func (c *Converger) noAccess(o *owner.Owner, local string) error {
	missing := local
	if o.Local != nil {
		missing = Virtual
		if o.Input.Owner.Kind == owner.Garden {
			missing = Runtime
		}
	}
	err := fmt.Errorf("no access to cluster %s: set spec.clusters in landscape.yaml, or give --kubeconfig %s=PATH", missing, missing)
	names, nerr := ClusterNames(c.landscape)
	if declared := c.landscape.Config.Spec.Clusters; nerr == nil && declared != nil && missing == local {
		for _, name := range slices.Sorted(maps.Keys(declared.Seeds)) {
			if !slices.Contains(names, name) {
				err = fmt.Errorf("%w (spec.clusters.seeds has %s, but no Seed has that name)", err, name)
			}
		}
	}
	return err
}
