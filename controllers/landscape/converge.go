package landscape

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// Options of a Converger.
type Options struct {
	// Catalogue of components, normally components.FS.
	Catalogue fs.FS
	// Configs by cluster name. A cluster that is missing is reported where it is needed.
	Configs map[string]*rest.Config
	Clock   clock.WithTicker
	// Holder is written into the leases: who converges.
	Holder string
	// Version of this program, for status.gardener.
	Version    string
	Thresholds condition.Thresholds
	Gate       plan.Gate
	OnEvent    func(owner.Event)
	OnObject   func(owner, bundle string, r apply.ObjectResult)
	// OnDrift hears about repairs while a landscape is kept.
	OnDrift func(Drift)
}

// Converger holds the connections and what was rendered last.
type Converger struct {
	landscape *landscapes.Landscape
	options   Options
	clusters  map[string]*apply.Cluster
	engine    *apply.Engine
	owners    *owner.Reconciler
	all       []*owner.Owner
	unbound   []error

	mu     sync.Mutex
	report Report
	leases []*lease
}

// Report is what a run did.
type Report struct {
	Owners []*owner.Report `json:"owners"`
	// Held deletions by cluster, with the id that approves them.
	Held    []HeldDeletion `json:"held,omitempty"`
	Changed int            `json:"changed"`
}

// HeldDeletion is kept back by the gate.
type HeldDeletion struct {
	Cluster  string       `json:"cluster"`
	Objects  []apply.Held `json:"objects"`
	Approval string       `json:"approval"`
}

// New prepares the clusters of a landscape; no request is made yet.
func New(l *landscapes.Landscape, options Options) (*Converger, error) {
	c := &Converger{landscape: l, options: options, clusters: map[string]*apply.Cluster{}, engine: apply.NewEngine(apply.Options{Clock: options.Clock})}
	for name, config := range options.Configs {
		cluster, err := apply.NewCluster(name, config, apply.ClusterOptions{Clock: options.Clock})
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		c.clusters[name] = cluster
	}
	rendering, err := render.LandscapeOptions(options.Catalogue, l)
	if err != nil {
		c.Close()
		return nil, err
	}
	c.owners = &owner.Reconciler{
		Engine: c.engine, Render: rendering, Clock: options.Clock, Thresholds: options.Thresholds, Gate: options.Gate,
		Gardener: gardencorev1beta1.Gardener{ID: options.Holder, Name: options.Holder, Version: options.Version},
		OnEvent:  options.OnEvent, OnObject: c.object,
	}
	if err := c.findOwners(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Cluster gives the connection to one cluster, nil when there is none.
func (c *Converger) Cluster(name string) *apply.Cluster { return c.clusters[name] }

// Close ends all connections and gives the leases back.
func (c *Converger) Close() {
	for _, l := range c.leases {
		l.release()
	}
	c.leases = nil
	for _, cluster := range c.clusters {
		cluster.Close()
	}
}

// findOwners places every owner of the landscape on its clusters.
func (c *Converger) findOwners() error {
	inputs, err := render.Owners(c.landscape)
	if err != nil {
		return err
	}
	seedOf, err := render.SeedsOfShoots(c.landscape)
	if err != nil {
		return err
	}
	for _, in := range inputs {
		o := &owner.Owner{Input: in, Ref: ownerRef(in.Owner)}
		local := Runtime
		switch in.Owner.Kind {
		case owner.Garden:
			o.Home, o.Target = c.clusters[Runtime], c.clusters[Virtual]
		case owner.Seed:
			o.Home, local = c.clusters[Virtual], in.Owner.Name
		case owner.Shoot:
			o.Home, local = c.clusters[Virtual], seedOf[in.Owner.Namespace+"/"+in.Owner.Name]
		}
		o.Local = c.clusters[local]
		if o.Home == nil || o.Local == nil {
			c.unbound = append(c.unbound, fmt.Errorf("%s: no access to cluster %s: set spec.clusters in landscape.yaml, or give --kubeconfig %s=PATH", in.Owner, local, local))
			continue
		}
		c.all = append(c.all, o)
	}
	return nil
}

// Apply converges the landscape once: leases, bootstrap, the Garden, what Git declares for the virtual
// garden, the Seeds, the Shoots. A part that fails stops only what depends on it.
func (c *Converger) Apply(ctx context.Context) (*Report, error) {
	c.report = Report{}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	problems := append([]error{}, c.unbound...)
	fail := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	if c.clusters[Runtime] == nil {
		return &c.report, errors.Join(problems...)
	}
	if err := c.lock(ctx, Runtime, leaseOperator, cancel); err != nil {
		return &c.report, errors.Join(append(problems, err)...)
	}
	parts := split(c.landscape)
	if err := c.bootstrap(ctx, parts[Runtime]); err != nil {
		return &c.report, errors.Join(append(problems, err)...)
	}
	fail(c.converge(ctx, owner.Garden, nil))

	if c.clusters[Virtual] != nil && ctx.Err() == nil {
		if err := c.applyDeclarations(ctx, Virtual, parts[Virtual]); err != nil {
			fail(fmt.Errorf("declarations of the virtual garden: %w", err))
		}
	}
	if ctx.Err() == nil {
		fail(c.convergeSeeds(ctx, cancel))
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		fail(cause)
	}
	return &c.report, errors.Join(problems...)
}

// bootstrap brings the Garden and what it refers to into the runtime cluster.
func (c *Converger) bootstrap(ctx context.Context, d *declarations) error {
	objects, err := bootstrapObjects()
	if err != nil {
		return err
	}
	s := apply.Set{Name: c.setID("bootstrap"), Objects: objects, FieldManager: FieldManager}
	if err := c.applySet(ctx, Runtime, "bootstrap", s, c.declarationInventory("bootstrap")); err != nil {
		return fmt.Errorf("bootstrap of the runtime cluster: %w", err)
	}
	if err := c.applyDeclarations(ctx, Runtime, d); err != nil {
		return fmt.Errorf("declarations of the runtime cluster: %w", err)
	}
	return nil
}

// convergeSeeds runs all seeds side by side, each followed by its own shoots: one unreachable seed
// slows no other.
func (c *Converger) convergeSeeds(ctx context.Context, cancel context.CancelCauseFunc) error {
	var group errgroup.Group
	var mu sync.Mutex
	var problems []error
	for _, o := range c.all {
		if o.Input.Owner.Kind != owner.Seed {
			continue
		}
		group.Go(func() error {
			err := c.lock(ctx, o.Local.Name(), leaseGardenlet, cancel)
			if err == nil {
				err = c.convergeOne(ctx, o)
			}
			if err == nil {
				err = c.converge(ctx, owner.Shoot, o.Local)
			} else if names := c.shootsOf(o.Local); len(names) > 0 {
				err = errors.Join(err, fmt.Errorf("%s: not reconciled, because %s is not", names, o))
			}
			mu.Lock()
			defer mu.Unlock()
			problems = append(problems, err)
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(problems...)
}

func (c *Converger) shootsOf(seed *apply.Cluster) string {
	names := ""
	for _, o := range c.all {
		if o.Input.Owner.Kind == owner.Shoot && o.Local == seed {
			if names != "" {
				names += ", "
			}
			names += o.String()
		}
	}
	return names
}

// converge runs all owners of a kind (on one cluster), side by side.
func (c *Converger) converge(ctx context.Context, kind string, on *apply.Cluster) error {
	var group errgroup.Group
	group.SetLimit(8)
	var mu sync.Mutex
	var problems []error
	for _, o := range c.all {
		if o.Input.Owner.Kind != kind || on != nil && o.Local != on {
			continue
		}
		group.Go(func() error {
			if err := c.convergeOne(ctx, o); err != nil {
				mu.Lock()
				defer mu.Unlock()
				problems = append(problems, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(problems...)
}

func (c *Converger) convergeOne(ctx context.Context, o *owner.Owner) error {
	live, err := o.Home.GetLive(ctx, o.Ref)
	if err != nil {
		return fmt.Errorf("%s: %w", o, o.Home.Explain(o.Ref, "read", err))
	}
	o.Input.Owner.UID = string(live.GetUID())
	report, err := c.owners.Reconcile(ctx, o)
	if report != nil {
		c.mu.Lock()
		c.report.Owners = append(c.report.Owners, report)
		c.report.Changed += report.Changed
		if len(report.Held) > 0 {
			c.report.Held = append(c.report.Held, HeldDeletion{Cluster: o.Local.Name(), Objects: report.Held, Approval: report.Approval})
		}
		c.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	return nil
}

// lock takes the lease of a role on a cluster, once.
func (c *Converger) lock(ctx context.Context, cluster, name string, lost context.CancelCauseFunc) error {
	c.mu.Lock()
	for _, l := range c.leases {
		if l.cluster == cluster && l.name == name {
			c.mu.Unlock()
			return nil
		}
	}
	c.mu.Unlock()
	l, err := acquireLease(ctx, c.clusters[cluster], name, c.options.Holder, c.options.Clock, func(err error) { lost(err) })
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases = append(c.leases, l)
	return nil
}

func (c *Converger) object(owner, bundle string, r apply.ObjectResult) {
	if c.options.OnObject != nil {
		c.options.OnObject(owner, bundle, r)
	}
}

func (c *Converger) count(result *apply.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range result.Objects {
		switch o.Action {
		case "created", "configured", "adopted", "recreated", "deleted":
			c.report.Changed++
		}
	}
}

func (c *Converger) hold(cluster string, held []apply.Held, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Held = append(c.report.Held, HeldDeletion{Cluster: cluster, Objects: held, Approval: id})
}
