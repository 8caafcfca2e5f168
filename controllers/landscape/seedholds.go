// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// The holds of a gardenlet depend on its reviews, used approvals and earlier deletions, which a dry
// run here does not know. The gardenlet reports its holds on its Seed; the report counts while it
// runs.

// recordSeedReport stores the report of a Seed's gardenlet.
func (c *Converger) recordSeedReport(seed *unstructured.Unstructured) {
	report := seedpublication.ReadSeedReport(seed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seedReports == nil {
		c.seedReports = map[string]*seedpublication.SeedReport{}
	}
	c.seedReports[seed.GetName()] = report
}

// markSeedHolds marks the deletions and recreations of an owner that the gardenlet of its seed
// holds.
func (c *Converger) markSeedHolds(ctx context.Context, o *convergedOwner, items []change.Item) {
	cluster, lease := leaseOf(o)
	c.mu.Lock()
	report := c.seedReports[cluster]
	c.mu.Unlock()
	if o.Input.Owner.Kind == owner.Garden || report == nil || len(report.Held) == 0 {
		return
	}
	if k, err := c.readRoleHolder(ctx, o.Local, lease); err != nil || k.holder == "" || k.holder == c.options.Process.Holder {
		return // only a running gardenlet holds objects
	}
	held := map[string]seedpublication.HeldObject{}
	for _, h := range report.Held {
		held[h.Cluster+" "+h.Object] = h
	}
	for i := range items {
		item := &items[i]
		h, is := held[item.Cluster+" "+item.Object.String()]
		if !is || item.Action != change.Delete && item.Action != change.Recreate {
			continue
		}
		item.Reason = string(item.Action) + " is held: " + h.Reason.String()
		item.Action, item.Approval = change.Hold, h.Approval
	}
}
