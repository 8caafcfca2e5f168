// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/panics"
)

// maxHealthAge is the maximum age of a health check at the end of a run: the health of an owner
// may have changed since.
const maxHealthAge = 5 * time.Second

// recheckHealth repeats the health check of owners whose last one in this run is old. If it fails,
// the previous result stays.
func (c *Converger) recheckHealth(ctx context.Context) {
	c.mu.Lock()
	reports := map[string]*owner.Report{}
	for _, report := range c.currentRun.report.Owners {
		if !report.JudgedAt.IsZero() && c.options.Clock.Since(report.JudgedAt) >= maxHealthAge {
			reports[report.Owner] = report
		}
	}
	c.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(8)
	for _, o := range c.members.all {
		report := reports[o.String()]
		if report == nil || ctx.Err() != nil {
			continue
		}
		group.Go(panics.AsError(func() error {
			now := c.options.Clock.Now()
			_, conditions, err := c.members.reconciler.Care(ctx, o.Owner, o.state())
			if err == nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				report.Conditions, report.JudgedAt = conditions, now
			}
			return nil
		}))
	}
	_ = group.Wait()
	c.recordHealthTimes()
}

// recordHealthTimes records in each lease the oldest health check of its owners, if this run has
// checked them all.
func (c *Converger) recordHealthTimes() {
	c.mu.Lock()
	at := map[string]time.Time{}
	for _, report := range c.currentRun.report.Owners {
		at[report.Owner] = report.JudgedAt
	}
	c.mu.Unlock()
	oldest := map[string]time.Time{}
	for _, o := range c.ownersWithLease() {
		cluster, name := leaseOf(o)
		key := cluster + " " + name
		if known, seen := oldest[key]; !seen || at[o.String()].Before(known) {
			oldest[key] = at[o.String()]
		}
	}
	for _, l := range c.ownLeases() {
		if judged := oldest[l.cluster+" "+l.name]; judged.After(l.healthCheckedAt()) {
			l.recordHealthCheck(judged)
		}
	}
}
