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
	"github.com/pergola-dev/pergola/controllers/drift"
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

// Keep repairs drift and judges conditions until the context ends. Apply has to have run before: what it got no lease for
// is left alone. It returns an error when a lease was lost.
func (c *Converger) Keep(ctx context.Context) error {
	ctx, cancel := c.whileLeased(ctx)
	defer cancel()
	drift.Keeper{
		Engine: c.engine, Clusters: slices.Collect(maps.Values(c.clusters)), Clock: c.options.Clock, CareInterval: c.options.CareInterval,
		Repair: c.repair, Care: c.careForAll, SetsOf: c.setsOf,
	}.Keep(ctx)
	return c.lostLease()
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

// setsOf gives the sets that write a ManagedResource.
func (c *Converger) setsOf(cluster string, ref apply.Ref) []string {
	var out []string
	for _, o := range c.ours() {
		if set := c.owners.SetOfManaged(o, cluster, ref); set != "" {
			out = append(out, set)
		}
	}
	return out
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
