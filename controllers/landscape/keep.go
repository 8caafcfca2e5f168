package landscape

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pergola-dev/pergola/apply"
)

// careInterval is how often conditions are judged while a landscape is kept (upstream: 30 s).
const careInterval = 30 * time.Second

// Drift is one repair.
type Drift struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// What was found: deleted, or the fields that differed and who changed them.
	What     string    `json:"what"`
	Repaired bool      `json:"repaired"`
	Error    string    `json:"error,omitempty"`
	At       time.Time `json:"at"`
}

// Keep repairs drift and judges conditions until the context ends. Apply has to have run before.
func (c *Converger) Keep(ctx context.Context) error {
	events := make(chan apply.DriftEvent, 256)
	var watchers sync.WaitGroup
	for _, cluster := range c.clusters {
		watchers.Add(1)
		go func() {
			defer watchers.Done()
			c.engine.Watch(ctx, cluster, func(e apply.DriftEvent) {
				select {
				case events <- e:
				case <-ctx.Done():
				}
			})
		}()
	}
	defer watchers.Wait()
	care := c.options.Clock.NewTicker(careInterval)
	defer care.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			c.repair(ctx, e)
		case <-care.C():
			for _, o := range c.all {
				// A failed judgement is a condition too; the next round tries again.
				_, _ = c.owners.Care(ctx, o)
			}
		}
	}
}

// repair applies the set that an object belongs to again: unchanged objects cost nothing.
func (c *Converger) repair(ctx context.Context, e apply.DriftEvent) {
	d := Drift{Cluster: e.Cluster, Object: e.Ref, What: describeDrift(e), At: c.options.Clock.Now()}
	found, err := c.repairSet(ctx, e)
	d.Repaired = found && err == nil
	if err != nil {
		d.Error = err.Error()
	}
	if ctx.Err() == nil && found && c.options.OnDrift != nil {
		c.options.OnDrift(d)
	}
}

func (c *Converger) repairSet(ctx context.Context, e apply.DriftEvent) (bool, error) {
	for _, name := range []string{Runtime, Virtual} {
		if e.Set == c.setID(name) && e.Cluster == name {
			return true, c.applyDeclarations(ctx, name, split(c.landscape)[name])
		}
	}
	for _, o := range c.all {
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
