// SPDX-License-Identifier: Apache-2.0

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
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// deletionJudge decides about deletions and recreations of the declarations of one cluster, in one
// run.
type deletionJudge struct {
	gate    permit.Gate
	cluster string
	// localizeCommands adds flags for the cluster to the commands in a text.
	localizeCommands func(string) string
	// isConfirmed reports whether the deletion of a Garden is confirmed; referred returns the
	// objects that an object refers to.
	isConfirmed     func(apply.Ref) bool
	referencesOf    func(apply.Ref) []crosscheck.ReferencedObject
	total           int
	otherLandscapes *otherLandscapes
	deletionCount   int
}

func (c *Converger) newDeletionJudge(ctx context.Context, cluster string, total int, around *otherLandscapes) *deletionJudge {
	return &deletionJudge{
		gate: c.options.Permits.Gate, cluster: cluster, localizeCommands: c.connections.clusters[cluster].RewriteKubectlOrNameCluster, total: total, otherLandscapes: around,
		isConfirmed:  func(ref apply.Ref) bool { return c.isDeletionConfirmed(ctx, ref) },
		referencesOf: func(ref apply.Ref) []crosscheck.ReferencedObject { return c.referencesOf(ctx, cluster, ref) },
	}
}

// prune holds deletions beyond the gate or the review, objects that may have moved to another
// landscape, Seeds, Shoots, Projects, and unconfirmed Gardens.
func (j *deletionJudge) prune(entries []apply.Entry) (out []permit.HeldObjects) {
	entries, out = j.holdReferenced(entries)
	var rest []apply.Entry
	for _, e := range entries {
		if !isOwnerKind(e.GroupKind()) {
			rest = append(rest, e)
			continue
		}
		if j.isConfirmed(e.Ref) {
			continue
		}
		out = append(out, permit.HeldObjects{Cluster: j.cluster, Objects: []apply.HeldObject{{Ref: e.Ref, Reason: change.Reason{Code: landscapev1alpha1.HeldUnconfirmedDeletion, Detail: j.localizeCommands(RemovalHoldText(e.Ref))}}}})
	}
	moving, rest := j.otherLandscapes.holdPossiblyMoved(rest)
	// One by one, because each may be decided at another time, and its own id approves it without
	// waiting.
	for _, m := range moving {
		out = append(out, permit.HeldObjects{Cluster: j.cluster, Objects: []apply.HeldObject{m}, Approval: m.ApprovalID})
	}
	gate := j.gate
	defer func() { j.gate = gate }()
	if shown := gate.Reviewed; shown != nil {
		j.gate.Reviewed = func(cluster string, ref change.Ref) bool {
			return shown(cluster, ref) || !j.otherLandscapes.converger.runs.IsMaintaining() && j.otherLandscapes.removals.isReviewed(cluster, ref)
		}
	}
	held := j.applyGate(rest)
	for _, h := range held {
		// The other landscapes have answered: after an approval, their answers still count.
		for _, o := range h.Objects {
			j.otherLandscapes.removals.preserve(j.cluster, o.Ref)
			if o.Reason.Code != landscapev1alpha1.HeldNotReviewed {
				j.otherLandscapes.removals.revokeReview(j.cluster, o.Ref)
			}
		}
	}
	return append(out, held...)
}

// holdReferenced holds objects that held ones refer to.
func (j *deletionJudge) holdReferenced(entries []apply.Entry) (rest []apply.Entry, out []permit.HeldObjects) {
	kept := heldReferences(entries, func(e apply.Entry) bool { return isOwnerKind(e.GroupKind()) && !j.isConfirmed(e.Ref) }, j.referencesOf)
	for _, e := range entries {
		holder, is := kept[e.Ref]
		if !is {
			rest = append(rest, e)
			continue
		}
		out = append(out, permit.HeldObjects{Cluster: j.cluster, Objects: []apply.HeldObject{{Ref: e.Ref, Reason: change.Reason{Code: landscapev1alpha1.HeldByReference, Detail: ReferenceHoldText(holder)}}}})
	}
	return rest, out
}

// heldReferences returns the removed objects that held ones refer to, each with its holder,
// transitively: the binding of a held Shoot also holds its credentials.
func heldReferences(entries []apply.Entry, held func(apply.Entry) bool, referred func(apply.Ref) []crosscheck.ReferencedObject) map[apply.Ref]apply.Ref {
	byName := map[crosscheck.ReferencedObject]apply.Ref{}
	var holders []apply.Ref
	for _, e := range entries {
		if held(e) {
			holders = append(holders, e.Ref)
		} else if !isOwnerKind(e.GroupKind()) {
			byName[crosscheck.ReferencedObject{Kind: e.GroupKind(), Namespace: e.Namespace, Name: e.Name}] = e.Ref
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

func (j *deletionJudge) recreate(e apply.Entry) []permit.HeldObjects {
	return j.applyGate([]apply.Entry{e})
}

func (j *deletionJudge) applyGate(entries []apply.Entry) []permit.HeldObjects {
	refs := make([]change.Ref, 0, len(entries))
	for _, e := range entries {
		refs = append(refs, e.Ref)
	}
	gate := j.gate.WithEarlierDeletions(j.deletionCount)
	gate.PreviouslyHeld = apply.HeldReasons(entries)
	verdict := gate.Judge(j.cluster, refs, j.total)
	j.deletionCount += len(refs) - len(verdict.Held)
	held := verdict.HeldAmong(j.cluster, refs)
	if len(held.Objects) == 0 {
		return nil
	}
	return []permit.HeldObjects{held}
}

// IsHeldOnRemoval reports whether objects of a kind stay, as held, when their file is removed: a
// Garden until its deletion is confirmed, other owners always.
func IsHeldOnRemoval(kind string) bool {
	return isOwnerKind(operatorv1alpha1.SchemeGroupVersion.WithKind(kind).GroupKind()) || isOwnerKind(gardencorev1beta1.SchemeGroupVersion.WithKind(kind).GroupKind())
}

// isOwnerKind reports whether objects of a kind are not deleted when they are removed from Git.
func isOwnerKind(gk schema.GroupKind) bool {
	switch gk {
	case operatorv1alpha1.SchemeGroupVersion.WithKind("Garden").GroupKind(),
		gardencorev1beta1.SchemeGroupVersion.WithKind("Seed").GroupKind(),
		gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot").GroupKind(),
		gardencorev1beta1.SchemeGroupVersion.WithKind("Project").GroupKind():
		return true
	}
	return false
}
