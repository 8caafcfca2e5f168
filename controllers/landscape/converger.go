// SPDX-License-Identifier: Apache-2.0

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
	"github.com/pergola-dev/pergola/controllers/owner/prerequisites"
	"github.com/pergola-dev/pergola/controllers/owner/rendercache"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Options are the options of a Converger.
type Options struct {
	// Catalogue is the catalogue of components, normally components.FS.
	Catalogue   fs.FS
	Connections Connections
	Listeners   Listeners
	// SkipRenderCheck means that render.CheckLandscape has found no error; the check is skipped.
	SkipRenderCheck bool
	Shared          SharedState
	// OnlyGarden leaves Seeds and Shoots to gardenlets, and contacts no seed, as gardener-operator
	// does.
	OnlyGarden bool
	Clock      clock.WithTicker
	Process    ProcessIdentity
	Timing     Timing
	Permits    Permits
	// FilesConfirmedAt returns when the files of the landscape were known to be the newest; the
	// default is the time of New. Another landscape waits for a run with files newer than its
	// question before it deletes objects that may have moved here.
	FilesConfirmedAt func() time.Time
	Takeover         Takeover
}

// Connections contains the access to the clusters, and existing connections.
type Connections struct {
	// Configs by cluster name. A missing cluster is reported when it is needed.
	Configs map[string]*rest.Config
	// Clusters are existing connections, by cluster name. They have precedence over Configs, and
	// Close leaves them open. With Engine, they preserve caches between the convergers of
	// successive revisions, so unchanged objects cost nothing.
	Clusters map[string]*apply.Cluster
	// KubectlFlags are the flags of kubectl or Pergola for a cluster of Configs, by cluster name,
	// for commands in hints.
	KubectlFlags map[string]string
	// Engine to apply with; nil makes one. NewEngine must have made it for a landscape with the
	// same spec.forceConflicts.
	Engine *apply.Engine
	// Leases are the leases that the process holds: this converger neither acquires nor releases
	// them.
	Leases []*SharedLease
	// OutsideCluster means that the process does not run in the runtime cluster, so it cannot
	// resolve names of Services.
	OutsideCluster bool
}

// Listeners receive events; each may be nil.
type Listeners struct {
	// OnHealth receives the conditions of an owner after each health check.
	OnHealth func(owner string, conditions []gardencorev1beta1.Condition)
	OnEvent  func(owner.Event)
	OnObject func(owner, bundle string, r apply.ObjectResult)
	// OnLeaseWait is called when a run waits for a lease, concurrently for several leases.
	OnLeaseWait func(LeaseWait)
	// OnDrift is called for repairs while a landscape is watched.
	OnDrift func(Drift)
}

// SharedState contains state that successive convergers of a landscape share.
type SharedState struct {
	// Charts pulls and caches the charts of Extensions; nil pulls none.
	Charts *charts.Puller
	// RenderCache caches rendered results between convergers; nil makes a converger render each
	// owner.
	RenderCache *rendercache.Cache
	// TokenRequester requests the tokens of control planes across convergers; nil makes a converger
	// do so until Close.
	TokenRequester *accesstokens.Requester
	// PermitMemory is the memory of permissions that convergers share; nil gives each its own.
	PermitMemory *permit.RunMemory
}

// ProcessIdentity describes this process.
type ProcessIdentity struct {
	// Holder is the identity in the leases.
	Holder string
	// RetriesFailures means that the process retries after a failure; lastOperation shows it.
	RetriesFailures bool
	// Version is the version of this program, for status.gardener.
	Version string
}

// Timing contains timeouts and intervals.
type Timing struct {
	Thresholds condition.Thresholds
	// StepTimeout shortens the timeouts of flow steps; zero leaves them unchanged.
	StepTimeout time.Duration
	// CareInterval is the interval of health checks during and between runs; the default is 30 s
	// (upstream's).
	CareInterval time.Duration
}

// Permits contains the rules for deletions.
type Permits struct {
	Gate permit.Gate
	// Reviewed are the reviewed deletions and recreations; others are held. nil requires no review.
	// They are valid until everything was applied once.
	Reviewed *permit.Review
	// DisplayedID maps the id that follows from the objects to the id that people approve; nil
	// means that they are equal.
	DisplayedID func(id string) string
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
	landscape   *landscapes.Landscape
	options     Options
	connections clusterConnections
	members     ownerSet
	// runs makes reviews and approvals count once.
	runs       *permit.RunLedger
	leaseState roleLeaseState

	mu         sync.Mutex
	currentRun runState
	drift      driftState
	dryRun     dryRunState
	// seedReports of the gardenlets, by the name of the Seed, from the time when an owner was
	// identified.
	seedReports map[string]*seedpublication.SeedReport
	// declaredTotals are the numbers of declared objects by cluster; nil before they are counted.
	declaredTotals map[string]int
	admission      admissionChecker
	// createdAt is the creation time of this converger.
	createdAt time.Time
}

// clusterConnections contains the connections of a converger, and the engine that uses them.
type clusterConnections struct {
	clusters map[string]*apply.Cluster
	// ownedClusters are the connections that this converger must close.
	ownedClusters []*apply.Cluster
	// ownedRequester ends with this converger; it is nil if it belongs to another one.
	ownedRequester *accesstokens.Requester
	engine         *apply.Engine
}

// ownerSet contains the owners of a landscape.
type ownerSet struct {
	reconciler   *owner.Reconciler
	all          []*convergedOwner
	fleet        *fleet.Fleet[*convergedOwner]
	accessErrors []error
	// fromInventories means that the owners come from the inventories; see NewFromInventories.
	fromInventories bool
}

// roleLeaseState is the state of the leases of a converger.
type roleLeaseState struct {
	// leaseContext ends when a lease is lost: another process may reconcile now.
	leaseContext context.Context
	cancelLeases context.CancelCauseFunc
	leases       []*heldLease
	// sightings are leases of other processes, by cluster and name; see observeLeases.
	sightings map[string]leaseObservation
	// otherHolder is the other process that applies the landscape, as of the last plan; it is empty
	// if there is none.
	otherHolder string
}

// runState is the result of the current or last run.
type runState struct {
	report RunReport
	// deletingGardens are Gardens whose deletion this run has started; deletedGardens are those
	// whose deletion is complete.
	deletingGardens, deletedGardens map[apply.Ref]bool
	// failedDeclarations are the declarations that could not be applied.
	failedDeclarations map[apply.Ref]bool
	// appliedClusters are the clusters whose declarations were applied completely.
	appliedClusters map[string]bool
	// skippedByRepair are the objects that the current repair has skipped.
	skippedByRepair map[apply.Ref]bool
	// handedOver are the declared fields that controllers own.
	handedOver map[apply.Ref][]change.HandedOver
}

// driftState is the known drift.
type driftState struct {
	// bySet contains the failed repairs since the last apply; repairing means that a repair is
	// running.
	bySet     map[driftSet]repairProblems
	repairing bool
}

// dryRunState contains the state for predicting Seeds and Shoots after an apply.
type dryRunState struct {
	// ownerResults are the Seeds and Shoots as an apply would leave them, where they differ from
	// the live ones; see effectiveobject.go.
	ownerResults map[apply.Ref]*unstructured.Unstructured
	defaulter    *render.Defaulter
	// shootMutations choose the values that Shoots leave open.
	shootMutations *mutation.Mutator
	// plannedObjects are the objects that a plan would create.
	plannedObjects *prerequisites.PlannedPrerequisites
}

// New prepares the clusters of a landscape without any request.
func New(l *landscapes.Landscape, options Options) (*Converger, error) {
	c, err := newConverger(l, options)
	if err != nil {
		return nil, err
	}
	if err := c.prepareOwners(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// newConverger returns a converger with clusters and without owners.
func newConverger(l *landscapes.Landscape, options Options) (*Converger, error) {
	if options.Timing.CareInterval <= 0 {
		options.Timing.CareInterval = defaultCareInterval
	}
	gate, runs := permit.NewRunLedger(options.Permits.Gate, options.Permits.Reviewed, options.Shared.PermitMemory)
	options.Permits.Gate = gate
	c := &Converger{landscape: l, options: options, runs: runs, connections: clusterConnections{clusters: map[string]*apply.Cluster{}, engine: options.Connections.Engine}, members: ownerSet{fleet: newFleet(options.Clock)}, dryRun: dryRunState{plannedObjects: &prerequisites.PlannedPrerequisites{}}, createdAt: options.Clock.Now()}
	if c.connections.engine == nil {
		own := options
		own.Takeover.ForceHint = c.forceHint
		c.connections.engine = NewEngine(l, own)
	}
	c.leaseState.leaseContext, c.leaseState.cancelLeases = context.WithCancelCause(context.Background())
	maps.Copy(c.connections.clusters, options.Connections.Clusters)
	for name, config := range options.Connections.Configs {
		if c.connections.clusters[name] != nil {
			continue
		}
		cluster, err := conventions.NewCluster(name, config, apply.ClusterOptions{Clock: options.Clock, Kubectl: strings.TrimSpace("kubectl " + options.Connections.KubectlFlags[name])})
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		c.connections.clusters[name] = cluster
		c.connections.ownedClusters = append(c.connections.ownedClusters, cluster)
	}
	return c, nil
}

// prepareOwners sets up the reconciler and the owners.
func (c *Converger) prepareOwners() error {
	options, l := c.options, c.landscape
	settings := []render.Setting{render.WithTime(options.Clock.Now())}
	if options.SkipRenderCheck {
		settings = append(settings, render.WithPassedChecks())
	}
	rendering, err := render.LandscapeOptions(options.Catalogue, l, settings...)
	if err != nil {
		return err
	}
	judging, err := l.HealthConfig()
	if err != nil {
		return err
	}
	c.members.reconciler = &owner.Reconciler{
		Engine: c.connections.engine, Render: rendering, RenderCache: options.Shared.RenderCache, Clock: options.Clock, Gate: options.Permits.Gate,
		Gardener: gardencorev1beta1.Gardener{ID: options.Process.Holder, Name: options.Process.Holder, Version: options.Process.Version},
		Charts:   options.Shared.Charts, Prerequisites: c.dryRun.plannedObjects, Tokens: c.tokenRequester(), RetriesFailures: options.Process.RetriesFailures, StepTimeout: options.Timing.StepTimeout,
		ConditionSettings: owner.ConditionSettings{
			Thresholds: options.Timing.Thresholds, HealthRules: judging.Rules, ExistenceOnly: judging.ExistenceOnly, ProgressingThreshold: progressingThreshold(l),
			PrometheusAccess: prometheusAccess(l, options.Connections.OutsideCluster), CareInterval: options.Timing.CareInterval,
		},
		Hooks: owner.Hooks{OnEvent: options.Listeners.OnEvent, OnObject: c.reportObject},
	}
	if err := c.findOwners(); err != nil {
		return err
	}
	c.fillFleet()
	return nil
}

// tokenRequester returns the Keeper for the tokens of control planes.
func (c *Converger) tokenRequester() *accesstokens.Requester {
	if c.options.Shared.TokenRequester != nil {
		return c.options.Shared.TokenRequester
	}
	c.connections.ownedRequester = &accesstokens.Requester{Clock: c.options.Clock}
	return c.connections.ownedRequester
}

// Cluster returns the connection to one cluster, or nil if there is none.
func (c *Converger) Cluster(name string) *apply.Cluster { return c.connections.clusters[name] }

// Close closes all connections and releases the leases.
func (c *Converger) Close() {
	c.connections.ownedRequester.Close()
	c.mu.Lock()
	leases := c.leaseState.leases
	c.leaseState.leases = nil
	c.mu.Unlock()
	var group sync.WaitGroup
	for _, l := range leases {
		group.Go(l.release)
	}
	group.Wait()
	c.leaseState.cancelLeases(nil)
	for _, cluster := range c.connections.ownedClusters {
		cluster.Close()
		c.connections.engine.ForgetCluster(cluster)
	}
}

// findOwners adds every owner of the landscape with its clusters.
func (c *Converger) findOwners() error {
	var kinds []string // all kinds
	if c.options.OnlyGarden {
		kinds = []string{owner.Garden}
	}
	inputs, err := render.Owners(c.landscape, render.WithTime(c.options.Clock.Now()), render.WithOwnerKinds(kinds...))
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
			o.ObjectCluster, o.Target = c.connections.clusters[Runtime], c.connections.clusters[Virtual]
		case owner.Seed:
			o.ObjectCluster, local = c.connections.clusters[Virtual], in.Owner.Name
			o.Input.SeedIsGarden = in.SeedIsGarden || isSameCluster(c.connections.clusters[Runtime], c.connections.clusters[local])
		case owner.Shoot:
			o.ObjectCluster, local = c.connections.clusters[Virtual], seedOf[in.Owner.Namespace+"/"+in.Owner.Name]
		}
		o.Local = c.connections.clusters[local]
		if o.ObjectCluster == nil || o.Local == nil {
			c.members.accessErrors = append(c.members.accessErrors, fmt.Errorf("%s: %w", in.Owner, c.noAccessError(&o, local)))
			continue
		}
		m := c.addOwner(o)
		if in.Owner.Kind == owner.Shoot {
			// The connection uses the Input of the member, which each run refines.
			if err := owner.ConnectShoot(&m.Owner, true, nil, apply.ClusterOptions{Clock: c.options.Clock}); err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			c.connections.ownedClusters = append(c.connections.ownedClusters, m.Target)
		}
	}
	return nil
}

// isSameCluster reports whether two connections lead to one API server.
func isSameCluster(a, b *apply.Cluster) bool {
	return a != nil && b != nil && a.RESTConfig().Host == b.RESTConfig().Host && a.RESTConfig().APIPath == b.RESTConfig().APIPath
}

// noAccessError returns an error about the missing cluster of an owner. It lists declared clusters
// without a Seed, which may be misspelt names.
func (c *Converger) noAccessError(o *owner.Owner, local string) error {
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
