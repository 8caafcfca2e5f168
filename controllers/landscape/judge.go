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

// judge decides over the deletions and recreations of the declarations of one cluster, in one run.
type judge struct {
	gate    permit.Gate
	cluster string
	// commands makes the commands in a text reach the cluster.
	commands func(string) string
	// confirmed tells whether a Garden may go, referred what an object refers to.
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

// prune holds deletions that go beyond the gate or the review, what may have moved to another
// landscape, and each Seed, Shoot or Project, and a Garden whose deletion is not confirmed.
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
	// Each by itself: one may be sure before another, and whoever does not want to wait approves it
	// by its id.
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
		// the others have answered: once approved, nobody is asked again
		for _, o := range h.Objects {
			j.around.removals.keep(j.cluster, o.Ref)
			if o.Reason.Code != landscapev1alpha1.HeldNotReviewed {
				j.around.removals.held(j.cluster, o.Ref)
			}
		}
	}
	return append(out, held...)
}

// keepReferred holds what those refer to that are held: its file went with theirs.
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

// keptWith gives, of objects whose files are gone, those that held ones refer to, and by which each
// is kept: also what is kept so keeps what it refers to, as the binding of a Shoot does with the
// credentials.
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
	gate := j.gate.After(j.spent)
	gate.Before = apply.HeldBefore(entries)
	verdict := gate.Judge(j.cluster, refs, j.total)
	j.spent += len(refs) - len(verdict.Held)
	held := verdict.Of(j.cluster, refs)
	if len(held.Objects) == 0 {
		return nil
	}
	return []permit.HeldObjects{held}
}

// HoldsRemoval tells whether an object of a kind stays in the cluster, and is said to be held, when
// its file is gone: a Garden until its deletion is confirmed there, the others whether it was or
// not.
func HoldsRemoval(kind string) bool {
	return isOwner(operatorv1alpha1.SchemeGroupVersion.WithKind(kind).GroupKind()) || isOwner(gardencorev1beta1.SchemeGroupVersion.WithKind(kind).GroupKind())
}

// isOwner tells the kinds whose removal from Git does not delete them.
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
