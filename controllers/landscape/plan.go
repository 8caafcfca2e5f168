// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/plan"
)

// noteIncomplete starts the note about the problems of an incomplete plan.
const noteIncomplete = "incomplete: "

// noteVirtualPending is the note of a plan for a virtual garden without access.
const noteVirtualPending = "the virtual garden does not exist yet: everything in it is created, if its API server admits it"

// NotesWithoutProblems returns the notes of a plan, without the note that repeats its error.
func NotesWithoutProblems(p change.Plan) []string {
	return slices.DeleteFunc(slices.Clone(p.Notes), func(note string) bool { return strings.HasPrefix(note, noteIncomplete) })
}

// Plan returns the changes that Apply would make on every cluster, by server-side dry run. Secrets
// that no key decrypts are omitted, with a note for each. With an error the plan is incomplete, and
// a note says so.
func (c *Converger) Plan(ctx context.Context) (change.Plan, error) {
	p := change.Plan{From: "live", To: "landscape " + c.landscape.Config.Name}
	problems := append([]error{}, c.members.accessErrors...)
	totals := map[string]int{}
	add := func(items []change.Item, unchanged int, err error) {
		p.Items = append(p.Items, items...)
		p.Unchanged += unchanged
		if err != nil {
			problems = append(problems, err)
		}
	}
	c.recordOtherHolder(ctx)
	c.resetDryRun()
	parts := splitByCluster(c.landscape)
	for _, name := range []string{Runtime, Virtual} {
		p.Notes, p.UnreadableSecrets = append(p.Notes, undecryptableNotes(parts[name].undecryptable)...), p.UnreadableSecrets+len(parts[name].undecryptable)
		if c.isVirtualPending(ctx, name) {
			found := plan.CompareBundles(nil, slices.DeleteFunc(DeclarationBundles(c.landscape, nil), func(p plan.ClusterBundle) bool { return p.Cluster != name }))
			for i := range found.Items {
				found.Items[i].Owner = "landscape " + c.landscape.Config.Name
			}
			add(withoutUndecryptable(found.Items, parts[name].undecryptable), 0, nil)
			if len(found.Items) > 0 {
				p.Notes = append(p.Notes, noteVirtualPending)
			}
		} else if c.connections.clusters[name] != nil {
			found, err := c.planDeclarations(ctx, name, parts[name])
			add(found.Items, found.Unchanged, err)
			p.HandedOver = append(p.HandedOver, found.HandedOver...)
			for _, h := range found.HandedOver {
				c.recordHandedOver(name, h.Object, append(c.currentRun.handedOver[h.Object], h))
			}
		} else {
			problems = append(problems, fmt.Errorf("declarations of the %s cluster: no access to it: set spec.clusters.%s in landscape.yaml, or give --kubeconfig %s=PATH", name, name, name))
		}
	}
	for _, o := range c.members.all {
		if err := c.checkDeclarationApplied(o); err != nil {
			problems = append(problems, err)
			continue
		}
		if err := c.loadLiveOwner(ctx, o); err != nil && !errors.As(err, new(*apply.FollowsError)) {
			problems = append(problems, fmt.Errorf("%s: %w", o, err))
			continue
		}
		_, items, unchanged, err := c.members.reconciler.Plan(ctx, o.Owner, o.state())
		c.markSeedHolds(ctx, o, items)
		if err != nil {
			err = fmt.Errorf("%s: %w", o, err)
		}
		add(items, unchanged, err)
		for _, b := range o.state().Bundles() {
			totals[o.ClusterName(b)] += len(b.Objects)
		}
	}
	p.SortAndCount()
	c.gateForPlan(&p).MarkHeld(&p, totals)
	err := errors.Join(problems...)
	if found := apply.Problems(err); len(found) > 0 {
		p.Notes = append(p.Notes, noteIncomplete+"the comparison has problems: "+strings.Join(found, "; "))
	}
	return p, err
}

func (c *Converger) planDeclarations(ctx context.Context, cluster string, d *declarations) (change.Plan, error) {
	around, err := c.readOtherLandscapes(ctx, cluster)
	if err != nil {
		return change.Plan{}, err
	}
	if cluster == Runtime {
		brought, err := bootstrapObjects()
		if err != nil {
			return change.Plan{}, err
		}
		c.dryRun.plannedObjects.Add(cluster, brought...)
		// created with the lease
		c.dryRun.plannedObjects.AddNamespaces(cluster, owner.InventoryNamespace)
	}
	s := c.declarationSet(cluster, d)
	ids, stays := map[apply.Ref]string{}, map[apply.Ref]bool{}
	_, removed, err := c.withoutDeletingGardens(ctx, cluster, d)
	if err != nil {
		return change.Plan{}, err
	}
	s.Objects = d.objects
	judged := c.newDeletionJudge(ctx, cluster, len(s.Objects)+len(d.undecryptable), around)
	found, err := c.connections.engine.Plan(ctx, c.connections.clusters[cluster], s, c.declarationInventory(cluster), apply.ApplyOptions{
		AllowEmpty: len(d.undecryptable) > 0 || removed, // not empty with their key
		Admit:      c.admitChange, CompleteDeclaration: c.completeDeclaration, OnDryRun: c.recordDryRun, IsDeclaredElsewhere: around.isDeclaredElsewhere, IsDeclaredBy: around.isDeclaredBy, IsReleasedBy: around.hasReleased,
		ApprovePrune: func(entries []apply.Entry) []apply.HeldObject {
			var held []apply.HeldObject
			for _, v := range judged.prune(slices.DeleteFunc(slices.Clone(entries), func(e apply.Entry) bool { return isUndecryptable(d.undecryptable, e.Ref) })) {
				held = append(held, v.Objects...)
				for _, o := range v.Objects {
					ids[o.Ref], stays[o.Ref] = v.Approval, v.Approval == ""
				}
			}
			return held
		},
	})
	err = c.dryRun.plannedObjects.ResolveErrors(found.Items, around.explainConflicts(err))
	found.Items = withoutUndecryptable(found.Items, d.undecryptable)
	for i := range found.Items {
		c.recordApplyResult(found.Items[i].Object, found.Items[i].Action == change.Fail)
		found.Items[i].Owner, found.Items[i].Bundle = "landscape "+c.landscape.Config.Name, "declarations"
		if ref := found.Items[i].Object; found.Items[i].Action == change.Hold && !stays[ref] {
			found.Items[i].Approval = permit.ApprovalID(cluster, ref)
		} else if found.Items[i].Action == change.Hold {
			// No approval exists, so effects of a deletion are not shown, as in a diff of
			// revisions.
			found.Items[i].Consequences, found.Items[i].Pools = nil, nil
		}
	}
	return found, err
}
