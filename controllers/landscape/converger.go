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
	// Checked says that render.CheckLandscape has found no error in the landscape: it is not looked
	// for again.
	Checked bool
	Reuse   Reuse
	// OnlyGarden leaves Seeds and Shoots to gardenlets, and contacts no seed, as gardener-operator
	// does.
	OnlyGarden bool
	Clock      clock.WithTicker
	Self       Self
	Pace       Pace
	Permits    Permits
	// CurrentAt says when the files of the landscape were known to be the newest ones; default:
	// when New was called. Before another landscape deletes what may have moved to this one, it
	// waits for a run with files that are newer than its question.
	CurrentAt func() time.Time
	Take      Takeover
}

// Connections are how a converger reaches its clusters, and what of it is there already.
type Connections struct {
	// Configs by cluster name. A cluster that is missing is reported where it is needed.
	Configs map[string]*rest.Config
	// Clusters are connections that are there already, by cluster name; they go before Configs, and
	// Close leaves them open. With Engine, they let a process that applies one revision after
	// another keep what it knows: what did not change costs nothing.
	Clusters map[string]*apply.Cluster
	// Flags are those by which a person reaches a cluster of Configs with kubectl or Pergola, by
	// cluster name, for the commands of hints.
	Flags map[string]string
	// Engine to apply with; nil makes one. It has to be of NewEngine for a landscape with the same
	// spec.forceConflicts.
	Engine *apply.Engine
	// Leases are held by the process: this converger neither takes nor releases them.
	Leases []*Lease
	// Outside says that the process does not run in the runtime cluster, so that names of its
	// Services mean nothing here.
	Outside bool
}

// Listeners hear what goes on; each may be nil.
type Listeners struct {
	// OnCare hears the conditions of an owner whenever they were judged.
	OnCare   func(owner string, conditions []gardencorev1beta1.Condition)
	OnEvent  func(owner.Event)
	OnObject func(owner, bundle string, r apply.ObjectResult)
	// OnWaiting hears that a run waits for a lease; for several at a time it is called
	// concurrently.
	OnWaiting func(Waiting)
	// OnDrift hears about repairs while a landscape is kept.
	OnDrift func(Drift)
}

// Reuse passes from one converger of a landscape to the next.
type Reuse struct {
	// Charts pulls those that Extensions name, and keeps them; nil pulls none.
	Charts *charts.Puller
	// Renders are kept from one converger to the next; nil makes a converger render each owner
	// itself.
	Renders *renders.Kept
	// Tokens keeps requesting those of control planes from one converger to the next; nil makes a
	// converger do so while it is open.
	Tokens *accesstokens.Keeper
	// Memory passes from one converger to the next; nil makes a converger remember permissions by
	// itself.
	Memory *permit.Memory
}

// Self is who converges.
type Self struct {
	// Holder is written into the leases: who converges.
	Holder string
	// Retries says that the process tries again what has failed, which lastOperation tells then.
	Retries bool
	// Version of this program, for status.gardener.
	Version string
}

// Pace is how long things may take, and how often they are judged.
type Pace struct {
	Thresholds condition.Thresholds
	// StepTimeout shortens the timeouts of the flows' steps; zero leaves them as they are.
	StepTimeout time.Duration
	// CareInterval is how often conditions are judged, while converging and while keeping; default
	// 30 s (upstream's).
	CareInterval time.Duration
}

// Permits say which deletions may happen.
type Permits struct {
	Gate permit.Gate
	// Reviewed are the deletions and recreations that were reviewed; others are held. nil asks for
	// no review. They count until everything was applied once.
	Reviewed *permit.Review
	// Shown gives the id that people approve something by, of the one that follows from the
	// objects; nil: they are the same.
	Shown func(id string) string
}

// Takeover is of fields that others own.
type Takeover struct {
	// Force names objects whose fields are taken over from whoever owns them; ForceHint says how a
	// person does that.
	Force     func(apply.Ref) bool
	ForceHint func(apply.Ref) string
}

// Converger holds the connections and what was rendered last.
type Converger struct {
	landscape *landscapes.Landscape
	options   Options
	links     links
	members   members
	// runs makes reviews and approvals count once.
	runs *permit.Runs
	role roleHeld

	mu    sync.Mutex
	now   runState
	drift driftState
	ahead foresight
	// reports are those of the gardenlets on Seeds, by the name of the Seed, as they were when an
	// owner was identified.
	reports map[string]*seedpublication.Report
	// totals are the numbers of objects that are declared for each cluster; nil before they were
	// counted.
	totals    map[string]int
	admission admission
	// made is when this converger was made.
	made time.Time
}

// links are the connections of a converger, and what applies by them.
type links struct {
	clusters map[string]*apply.Cluster
	// opened are those of clusters that this converger has to close.
	opened []*apply.Cluster
	// tokens ends with this converger; nil where it is another one's.
	tokens *accesstokens.Keeper
	engine *apply.Engine
}

// members are the owners of a landscape.
type members struct {
	reconciler *owner.Reconciler
	all        []*member
	fleet      *fleet.Fleet[*member]
	unbound    []error
	// applied says that the owners are those that were applied before, see NewApplied.
	applied bool
}

// roleHeld is what a converger knows of the leases of its roles.
type roleHeld struct {
	// alive ends when a lease is lost: somebody else may converge now.
	alive  context.Context
	die    context.CancelCauseFunc
	leases []*lease
	// sighted are leases of others, by cluster and name, see sightLeases.
	sighted map[string]sighting
	// keptBy is who else applies the landscape, as the last plan saw it; empty for nobody.
	keptBy string
}

// runState is what the run that goes on, or the last one, came to.
type runState struct {
	report Report
	// ending is the Garden that this run has begun to take down, and ended the one that it has.
	ending, ended map[apply.Ref]bool
	// refused are the declarations that could not become what Git says.
	refused map[apply.Ref]bool
	// declared are the clusters whose declarations were applied as they are.
	declared map[string]bool
	// unapplied are the objects that the repair at work left as they are.
	unapplied map[apply.Ref]bool
	// handed are the declared fields that are left to controllers.
	handed map[apply.Ref][]change.HandedOver
}

// driftState is what is known of drift.
type driftState struct {
	// drifts are what could not be repaired since the last apply; repairing says that one is tried
	// now.
	drifts    map[driftSet]standing
	repairing bool
}

// foresight is what is needed to say how Seeds and Shoots would be after an apply.
type foresight struct {
	// foreseen are the Seeds and Shoots as an apply would leave them, where that is not how they
	// live, see inforce.go.
	foreseen map[apply.Ref]*unstructured.Unstructured
	filler   *render.Filler
	// mutations choose what Shoots leave open.
	mutations *mutation.Surroundings
	// coming is what a plan has seen to be made.
	coming *coming.Objects
}

// New prepares the clusters of a landscape; no request is made yet.
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

// connect makes a converger that knows its clusters, and no owners yet.
func connect(l *landscapes.Landscape, options Options) (*Converger, error) {
	if options.Pace.CareInterval <= 0 {
		options.Pace.CareInterval = careInterval
	}
	gate, runs := permit.NewRuns(options.Permits.Gate, options.Permits.Reviewed, options.Reuse.Memory)
	options.Permits.Gate = gate
	c := &Converger{landscape: l, options: options, runs: runs, links: links{clusters: map[string]*apply.Cluster{}, engine: options.Connect.Engine}, members: members{fleet: newFleet(options.Clock)}, ahead: foresight{coming: &coming.Objects{}}, made: options.Clock.Now()}
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

// prepareOwners makes what reconciles the owners, and places them.
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
		Engine: c.links.engine, Render: rendering, Renders: options.Reuse.Renders, Clock: options.Clock, Gate: options.Permits.Gate,
		Gardener: gardencorev1beta1.Gardener{ID: options.Self.Holder, Name: options.Self.Holder, Version: options.Self.Version},
		Charts:   options.Reuse.Charts, Coming: c.ahead.coming, Tokens: c.keeper(), Retries: options.Self.Retries, StepTimeout: options.Pace.StepTimeout,
		Judging: owner.Judging{
			Thresholds: options.Pace.Thresholds, HealthRules: judging.Rules, ExistenceOnly: judging.ExistenceOnly, ProgressingThreshold: progressingThreshold(l),
			Prometheis: prometheis(l, options.Connect.Outside), CareInterval: options.Pace.CareInterval,
		},
		Hooks: owner.Hooks{OnEvent: options.Hear.OnEvent, OnObject: c.object},
	}
	if err := c.findOwners(); err != nil {
		return err
	}
	c.enlist()
	return nil
}

// keeper requests the tokens of control planes.
func (c *Converger) keeper() *accesstokens.Keeper {
	if c.options.Reuse.Tokens != nil {
		return c.options.Reuse.Tokens
	}
	c.links.tokens = &accesstokens.Keeper{Clock: c.options.Clock}
	return c.links.tokens
}

// Cluster gives the connection to one cluster, nil when there is none.
func (c *Converger) Cluster(name string) *apply.Cluster { return c.links.clusters[name] }

// Close ends all connections and gives the leases back.
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

// findOwners places every owner of the landscape on its clusters.
func (c *Converger) findOwners() error {
	var kinds []string // all
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
			// The connection follows the Input of the member, which is known better with each run.
			if err := owner.ConnectShoot(&m.Owner, true, nil, apply.ClusterOptions{Clock: c.options.Clock}); err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			c.links.opened = append(c.links.opened, m.Target)
		}
	}
	return nil
}

// isSame tells whether two connections lead to one API server.
func isSame(a, b *apply.Cluster) bool {
	return a != nil && b != nil && a.RESTConfig().Host == b.RESTConfig().Host && a.RESTConfig().APIPath == b.RESTConfig().APIPath
}

// noAccess says which cluster of an owner cannot be reached. The name of a seed is that of its
// Seed; a cluster that is declared for no Seed may be a misspelt one.
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
