package landscape

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/schemas/across"
)

// judge decides about deletions and recreations of the declarations of one cluster, in one run.
type judge struct {
	gate    permit.Gate
	cluster string
	// commands adds flags for the cluster to the commands in a text.
	commands func(string) string
	// confirmed reports whether the deletion of a Garden is confirmed; referred returns the objects
	// that an object refers to.
	confirmed func(apply.Ref) bool
	referred  func(apply.Ref) []across.Referred
	total     int
	around    *around
	spent     int
}

func (c *Converger) newJudge(ctx context.Context, cluster string, total int, around *around) *judge {
	return &judge{
		gate: c.options.Permits.Gate, cluster: cluster, commands: c.links.clusters[cluster].CommandsHere, total: total, around: around,
		confirmed: func(ref apply.Ref) bool { return c.confirmed(ctx, ref) },
		referred:  func(ref apply.Ref) []across.Referred { return c.referredToBy(ctx, cluster, ref) },
	}
}

// prune holds deletions beyond the gate or the review, objects that may have moved to another
// landscape, Seeds, Shoots, Projects, and unconfirmed Gardens.
func (j *judge) prune(entries []apply.Entry) (out []permit.HeldObjects) {
	entries, out = j.keepReferred(entries)
	var rest []apply.Entry
	for _, e := range entries {
		if !isOwner(e.GroupKind()) {
			rest = append(rest, e)
			continue
		}
		if j.confirmed(e.Ref) {
			continue
		}
		out = append(out, permit.HeldObjects{Cluster: j.cluster, Objects: []apply.Held{{Ref: e.Ref, Reason: change.Reason{Code: landscapev1alpha1.HeldUnconfirmed, Detail: j.commands(RemovalHeld(e.Ref))}}}})
	}
	moving, rest := j.around.holdMoving(rest)
	// One by one, because each may be decided at another time, and its own id approves it without
	// waiting.
	for _, m := range moving {
		out = append(out, permit.HeldObjects{Cluster: j.cluster, Objects: []apply.Held{m}, Approval: m.Approval})
	}
	gate := j.gate
	defer func() { j.gate = gate }()
	if shown := gate.Reviewed; shown != nil {
		j.gate.Reviewed = func(cluster string, ref change.Ref) bool {
			return shown(cluster, ref) || !j.around.c.runs.IsMaintaining() && j.around.removals.reviewed(cluster, ref)
		}
	}
	held := j.ask(rest)
	for _, h := range held {
		// The other landscapes have answered: after an approval, their answers still count.
		for _, o := range h.Objects {
			j.around.removals.keep(j.cluster, o.Ref)
			if o.Reason.Code != landscapev1alpha1.HeldNotReviewed {
				j.around.removals.held(j.cluster, o.Ref)
			}
		}
	}
	return append(out, held...)
}

// keepReferred holds objects that held ones refer to.
func (j *judge) keepReferred(entries []apply.Entry) (rest []apply.Entry, out []permit.HeldObjects) {
	kept := keptWith(entries, func(e apply.Entry) bool { return isOwner(e.GroupKind()) && !j.confirmed(e.Ref) }, j.referred)
	for _, e := range entries {
		holder, is := kept[e.Ref]
		if !is {
			rest = append(rest, e)
			continue
		}
		out = append(out, permit.HeldObjects{Cluster: j.cluster, Objects: []apply.Held{{Ref: e.Ref, Reason: change.Reason{Code: landscapev1alpha1.HeldReferred, Detail: ReferredHeld(holder)}}}})
	}
	return rest, out
}

// keptWith returns the removed objects that held ones refer to, each with its holder, transitively:
// the binding of a held Shoot also holds its credentials.
func keptWith(entries []apply.Entry, held func(apply.Entry) bool, referred func(apply.Ref) []across.Referred) map[apply.Ref]apply.Ref {
	byName := map[across.Referred]apply.Ref{}
	var holders []apply.Ref
	for _, e := range entries {
		if held(e) {
			holders = append(holders, e.Ref)
		} else if !isOwner(e.GroupKind()) {
			byName[across.Referred{Kind: e.GroupKind(), Namespace: e.Namespace, Name: e.Name}] = e.Ref
		}
	}
	kept := map[apply.Ref]apply.Ref{}
	for len(holders) > 0 {
		holder := holders[0]
		holders = holders[1:]
		for _, name := range referred(holder) {
			ref, gone := byName[name]
			if _, known := kept[ref]; gone && !known {
				kept[ref] = holder
				holders = append(holders, ref)
			}
		}
	}
	return kept
}

func (j *judge) recreate(e apply.Entry) []permit.HeldObjects { return j.ask([]apply.Entry{e}) }

func (j *judge) ask(entries []apply.Entry) []permit.HeldObjects {
	refs := make([]change.Ref, 0, len(entries))
	for _, e := range entries {
		refs = append(refs, e.Ref)
	}
	gate := j.gate.WithEarlierDeletions(j.spent)
	gate.HeldBefore = apply.HeldBefore(entries)
	verdict := gate.Judge(j.cluster, refs, j.total)
	j.spent += len(refs) - len(verdict.Held)
	held := verdict.HeldAmong(j.cluster, refs)
	if len(held.Objects) == 0 {
		return nil
	}
	return []permit.HeldObjects{held}
}

// HoldsRemoval reports whether objects of a kind stay, as held, when their file is removed: a
// Garden until its deletion is confirmed, other owners always.
func HoldsRemoval(kind string) bool {
	return isOwner(operatorv1alpha1.SchemeGroupVersion.WithKind(kind).GroupKind()) || isOwner(gardencorev1beta1.SchemeGroupVersion.WithKind(kind).GroupKind())
}

// isOwner reports whether objects of a kind are not deleted when they are removed from Git.
func isOwner(gk schema.GroupKind) bool {
	switch gk {
	case operatorv1alpha1.SchemeGroupVersion.WithKind("Garden").GroupKind(),
		gardencorev1beta1.SchemeGroupVersion.WithKind("Seed").GroupKind(),
		gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot").GroupKind(),
		gardencorev1beta1.SchemeGroupVersion.WithKind("Project").GroupKind():
		return true
	}
	return false
}
