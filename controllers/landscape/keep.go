package landscape

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// careInterval is how often conditions are judged unless an option says otherwise (upstream: 30 s).
const careInterval = 30 * time.Second

// Drift is one repair.
type Drift struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// What was found: deleted, or the fields that differed and who changed them.
	What     string `json:"what"`
	Repaired bool   `json:"repaired"`
	// HandedOver says that nothing is repaired: what was changed is the task of whoever changed it.
	HandedOver bool      `json:"handedOver,omitempty"`
	Error      string    `json:"error,omitempty"`
	At         time.Time `json:"at"`
}

// judgeRepaired is how soon after a repair all is judged again: what was repaired rolls out first.
const judgeRepaired = 1500 * time.Millisecond

// Keep repairs drift and judges conditions until the context ends. Apply has to have run before: what it got no lease for
// is left alone. It returns an error when a lease was lost.
func (c *Converger) Keep(ctx context.Context) error {
	ctx, cancel := c.whileLeased(ctx)
	defer cancel()
	events := make(chan apply.DriftEvent, 256)
	var watchers sync.WaitGroup
	for _, cluster := range c.clusters {
		tell := func(e apply.DriftEvent) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		}
		watchers.Go(func() { c.engine.Watch(ctx, cluster, tell) })
		watchers.Go(func() { c.watchDeletions(ctx, cluster, tell) })
	}
	defer watchers.Wait()
	care := c.options.Clock.NewTicker(c.options.CareInterval)
	defer care.Stop()
	// failed are the sets that could not be repaired; they are tried again with every round of care.
	failed := map[string]apply.DriftEvent{}
	repair := func(e apply.DriftEvent) {
		delete(failed, e.Cluster+" "+e.Set)
		if !c.repair(ctx, e) {
			failed[e.Cluster+" "+e.Set] = e
		}
	}
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return c.lostLease()
		case e := <-events:
			repair(e)
			soon = c.options.Clock.After(judgeRepaired)
		case <-soon:
			soon = nil
			c.careForAll(ctx)
		case <-care.C():
			for _, e := range maps.Clone(failed) {
				repair(e)
			}
			c.careForAll(ctx)
		}
	}
}

// careForAll judges all owners side by side, so that an unreachable cluster delays no other, and notes in the leases
// which clusters were judged.
func (c *Converger) careForAll(ctx context.Context) {
	var group sync.WaitGroup
	owners := c.ours()
	problems := make([]error, len(owners))
	started := c.options.Clock.Now()
	for i, o := range owners {
		group.Go(func() {
			var conditions []gardencorev1beta1.Condition
			conditions, problems[i] = c.owners.Care(ctx, o)
			if problems[i] == nil && c.options.OnCare != nil {
				c.options.OnCare(o.String(), conditions)
			}
		})
	}
	group.Wait()
	// A judgement that could not be written is made again in the next round.
	missed := map[string]bool{}
	for i, o := range owners {
		cluster, name := leaseOf(o)
		missed[cluster+" "+name] = missed[cluster+" "+name] || problems[i] != nil
	}
	c.mu.Lock()
	held := slices.Clone(c.leases)
	c.mu.Unlock()
	for _, l := range c.options.Leases {
		held = append(held, l.lease)
	}
	for _, l := range held {
		if !missed[l.cluster+" "+l.name] {
			l.noteJudged(started)
		}
	}
}

// watchDeletions reports ManagedResources that somebody deletes: our finalizer keeps them, so they never go by
// themselves and are no drift to the engine.
func (c *Converger) watchDeletions(ctx context.Context, cluster *apply.Cluster, tell func(apply.DriftEvent)) {
	found := make(chan apply.Ref, 256)
	stop := cluster.OnChange(func(e apply.ChangeEvent) {
		if e.New == nil || e.Ref.Kind != "ManagedResource" || e.New.GetDeletionTimestamp() == nil ||
			e.Old != nil && e.Old.GetDeletionTimestamp() != nil {
			return
		}
		select {
		case found <- e.Ref:
		default: // so many at once are no slip of the hand; the next apply sees to them
		}
	})
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case ref := <-found:
			for _, o := range c.ours() {
				if set := c.owners.SetOfManaged(o, cluster.Name(), ref); set != "" {
					tell(apply.DriftEvent{Cluster: cluster.Name(), Set: set, Ref: ref, Deleted: true, At: c.options.Clock.Now()})
				}
			}
		}
	}
}

// repair applies the set that an object belongs to again: unchanged objects cost nothing. It says false when
// that failed.
func (c *Converger) repair(ctx context.Context, e apply.DriftEvent) bool {
	d := Drift{Cluster: e.Cluster, Object: e.Ref, What: describeDrift(e), At: c.options.Clock.Now()}
	found, err := c.repairSet(ctx, e)
	d.HandedOver = found && err == nil && c.isHandedOver(e)
	d.Repaired = found && err == nil && !d.HandedOver
	if err != nil {
		d.Error = strings.Join(owner.Problems(err), "; ")
	}
	if ctx.Err() == nil && found && c.options.OnDrift != nil {
		c.options.OnDrift(d)
	}
	return err == nil
}

func (c *Converger) repairSet(ctx context.Context, e apply.DriftEvent) (bool, error) {
	if c.holds(Runtime, leaseOperator) {
		if e.Set == bootstrapSet {
			return true, c.applyBootstrap(ctx)
		}
		for _, name := range []string{Runtime, Virtual} {
			if e.Set == c.setID(name) && e.Cluster == name {
				return true, c.applyDeclarations(ctx, name, split(c.landscape)[name])
			}
		}
	}
	for _, o := range c.ours() {
		if found, err := c.owners.Repair(ctx, o, e.Set); found {
			return true, err
		}
	}
	return false, nil
}

func describeDrift(e apply.DriftEvent) string {
	if e.Deleted {
		return "was deleted"
	}
	text := ""
	for _, f := range e.Fields {
		if text != "" {
			text += ", "
		}
		text += f.Path
		if f.Manager != "" {
			text += " (by " + f.Manager + ")"
		}
	}
	if text == "" {
		return "was changed"
	}
	return fmt.Sprintf("was changed: %s", text)
}
