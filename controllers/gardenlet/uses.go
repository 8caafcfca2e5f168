package gardenlet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// The use of an approval is written to the seed (permit.Uses), without the virtual garden.

// usesName is that ConfigMap.
const usesName = "pergola-gardenlet-approvals"

// noteTimeout bounds how long an approval waits until its use is noted.
const noteTimeout = 10 * time.Second

// onSeed refers to a ConfigMap of the gardenlet on the seed.
func onSeed(name string) apply.Ref {
	return apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.InventoryNamespace, Name: name}
}

// readUses reads what a former process has noted. Before that no approval counts.
func (g *Gardenlet) readUses(ctx context.Context) {
	if err := g.noted.uses.Read(ctx); err != nil {
		g.Log.Info("which approvals are used could not be read yet", "error", err)
	}
}

// take tells whether objects pass by an approval, and notes its use before. It is called by many goroutines.
func (g *Gardenlet) take(ctx context.Context, at *site, s *settings, of, id string, refs []change.Ref) bool {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	ok, err := g.noted.uses.Passes(ctx, id, refs)
	if !ok && err == nil {
		var objects []permit.Passing
		var shown string
		if objects, shown, err = g.spend(ctx, s, of, id, refs); err == nil && shown != "" {
			g.Log.Info("an approval is used", "approval", shown, "owner", of, "objects", len(objects))
			ok = true
		}
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if err != nil {
		at.approvals.notTaken = fmt.Errorf("approval %s: nothing passes by it, since it cannot be noted that it is used: %w", id, err)
		return false
	}
	if ok {
		if at.approvals.passed == nil {
			at.approvals.passed = map[string]bool{}
		}
		at.approvals.passed[id] = true
	}
	return ok
}

// spend notes that an approval is used, and gives it as people gave it; empty where there is none that counts.
func (g *Gardenlet) spend(ctx context.Context, s *settings, of, id string, refs []change.Ref) ([]permit.Passing, string, error) {
	return g.noted.uses.Spend(ctx, of, refs, func() (string, bool) {
		current := g.settingsInUse()
		if current == nil {
			current = s
		}
		shown, counts := g.approvals(s).Counts(id)
		// An approval that was withdrawn since the run began does not count any more.
		return shown, counts && slices.Contains(current.approved, shown)
	})
}

// settle ends the approvals of an owner, after a run that has seen everything.
func (g *Gardenlet) settle(ctx context.Context, of string, o *owner.Owner) {
	if err := g.noted.uses.Settle(ctx, of, func(ref change.Ref) bool { return wanted(o, ref) }); err != nil {
		g.Log.Info("it is not known yet whether something that was approved is gone", "owner", of, "error", err)
	}
}

// wanted tells whether an owner has an object now.
func wanted(o *owner.Owner, ref change.Ref) bool {
	for _, b := range o.Bundles() {
		for _, object := range b.Objects {
			is := apply.RefOf(object.Unstructured)
			if is.GroupKind() == ref.GroupKind() && is.Namespace == ref.Namespace && is.Name == ref.Name {
				return true
			}
		}
	}
	return false
}

// forgetApprovals drops what is not approved any more. While somebody else is at it, the next heartbeat does it.
func (g *Gardenlet) forgetApprovals(ctx context.Context) {
	s := g.settingsInUse()
	if s == nil {
		return
	}
	if err := g.noted.uses.Forget(ctx, s.approved); err != nil {
		g.Log.Info("approvals that are not given any more could not be forgotten yet", "error", err)
	}
}
