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

// noteReport stores the report of a Seed's gardenlet.
func (c *Converger) noteReport(seed *unstructured.Unstructured) {
	report := seedpublication.ReadReport(seed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reports == nil {
		c.reports = map[string]*seedpublication.Report{}
	}
	c.reports[seed.GetName()] = report
}

// holdAsSeed marks the deletions and recreations of an owner that the gardenlet of its seed holds.
func (c *Converger) holdAsSeed(ctx context.Context, o *member, items []change.Item) {
	cluster, lease := leaseOf(o)
	c.mu.Lock()
	report := c.reports[cluster]
	c.mu.Unlock()
	if o.Input.Owner.Kind == owner.Garden || report == nil || len(report.Held) == 0 {
		return
	}
	if k, err := c.keeperOf(ctx, o.Local, lease); err != nil || k.holder == "" || k.holder == c.options.Self.Holder {
		return // only a running gardenlet holds objects
	}
	held := map[string]seedpublication.Held{}
	for _, h := range report.Held {
		held[h.Cluster+" "+h.Object] = h
	}
	for i := range items {
		item := &items[i]
		h, is := held[item.Cluster+" "+item.Object.String()]
		if !is || item.Action != change.Delete && item.Action != change.Recreate {
			continue
		}
		item.Reason = string(item.Action) + " is held: " + h.Why.String()
		item.Action, item.Approval = change.Hold, h.Approval
	}
}
