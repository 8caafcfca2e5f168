// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// The operator never connects to a seed. An annotation of the Seed carries the sync state and the
// held deletions. It is updated by heartbeats when it differs, and before a status shows that a
// reconciliation finished (outcome.go).

// recordReconciled records that the owner was reconciled with the inputs of this key.
func (s *ownerWorker) recordReconciled(key string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconciledKey, s.hasFailed = key, failed
}

// recordHeld records the held deletions of the owner. An incomplete run has not seen all of them:
// earlier ones may still be held.
func (s *ownerWorker) recordHeld(held []permit.HeldObjects, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if complete {
		s.held, s.isHeldKnown = held, true
		return
	}
	s.held = permit.WithUnprocessed(held, s.held)
}

// restoreHoldReasons restores the first reason of a held deletion if the gate now only says that no
// review shows it.
func (g *Gardenlet) restoreHoldReasons(at *ownerWorker, o *unstructured.Unstructured, held []permit.HeldObjects) []permit.HeldObjects {
	before := map[string]change.Reason{}
	at.mu.Lock()
	known, judged := at.held, at.isHeldKnown
	at.mu.Unlock()
	if former := seedpublication.ReadSeedReport(g.objects.get(kindSeed, "", g.options.Seed)); former != nil && !judged {
		for _, h := range former.Held {
			if h.Owner == reportOwnerName(o) {
				before[h.Cluster+" "+h.Object] = h.Reason
			}
		}
	}
	for _, h := range known {
		for _, o := range h.Objects {
			before[h.Cluster+" "+o.Ref.String()] = o.Reason
		}
	}
	out := slices.Clone(held)
	for i := range out {
		out[i].Objects = slices.Clone(out[i].Objects)
		for k := range out[i].Objects {
			o := &out[i].Objects[k]
			o.Reason = permit.HeldReason(o.Reason, before[out[i].Cluster+" "+o.Ref.String()])
		}
	}
	return out
}

// reportOwnerName is the name of an owner in a report: the id of its site, with the kind as in the
// API.
func reportOwnerName(o *unstructured.Unstructured) string {
	if namespace := o.GetNamespace(); namespace != "" {
		return o.GetKind() + " " + namespace + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

// report returns the state of the seed. Holds that an earlier process reported count for owners
// that this process has not reconciled yet.
func (g *Gardenlet) report(former *seedpublication.SeedReport) seedpublication.SeedReport {
	g.mu.Lock()
	s, out := g.publication.settings, seedpublication.SeedReport{Digest: g.publication.syncedDigest}
	g.mu.Unlock()
	sites, names := g.fleet.Owners(), map[*ownerWorker]string{}
	for _, at := range sites {
		at.mu.Lock()
		names[at] = reportOwnerName(at.object)
		at.mu.Unlock()
	}
	if s == nil {
		return out
	}
	approvals := g.approvals(s)
	// The Seed comes first: the Shoots wait for it.
	slices.SortFunc(sites, func(a, b *ownerWorker) int { return cmp.Compare(names[a], names[b]) })
	for _, at := range sites {
		name := names[at]
		at.mu.Lock()
		switch {
		case at.reconciledKey != at.key:
			out.Converging = append(out.Converging, name)
		case at.hasFailed:
			out.Failing = append(out.Failing, name)
		}
		held, judged := at.held, at.isHeldKnown
		at.mu.Unlock()
		known := map[string]bool{}
		for _, h := range held {
			for _, o := range h.Objects {
				known[h.Cluster+" "+o.Ref.String()] = true
				held := seedpublication.HeldObject{Owner: name, Cluster: h.Cluster, Object: o.Ref.String(), Reason: o.Reason, Approval: approvals.NextID(o.ApprovalID)}
				if h.Approval != o.ApprovalID {
					held.GroupApproval = approvals.NextID(h.Approval)
				}
				out.Held = append(out.Held, held)
			}
		}
		if former == nil || judged {
			continue
		}
		for _, h := range former.Held {
			if h.Owner == name && !known[h.Cluster+" "+h.Object] {
				h.Approval, h.GroupApproval = approvals.NextID(permit.TrimSuffix(h.Approval)), approvals.NextID(permit.TrimSuffix(h.GroupApproval))
				out.Held = append(out.Held, h)
			}
		}
	}
	slices.SortStableFunc(out.Held, func(a, b seedpublication.HeldObject) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Object, b.Object))
	})
	return out
}

// reportWriter is the last report of this process. turn serializes reading and writing, so that
// reports are written in the order in which they were made.
type reportWriter struct {
	semaphore chan struct{}
	// lastPatch is the last patch, or nil before the first one. seedVersion is the resource version
	// of the cached Seed at that time; lastHeld are its held deletions.
	lastPatch   map[string]any
	seedVersion string
	lastHeld    []seedpublication.HeldObject
}

// finishedRun describes a finished reconciliation that the status does not show yet.
type finishedRun struct {
	worker           *ownerWorker
	kind, owner, key string
	hasFailed        bool
}

// writeReport updates the annotation of the Seed if it differs. Until the owners are known, the
// report of the earlier process stays. At the end of a reconciliation, it only writes changes that
// clients wait for, and waits for its turn until ctx ends. A heartbeat does not wait: the next one
// reports the same.
func (g *Gardenlet) writeReport(ctx context.Context, done *finishedRun) error {
	last := &g.reportWriter
	select {
	case last.semaphore <- struct{}{}:
	default:
		if done == nil {
			return nil
		}
		select {
		case last.semaphore <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("waiting for another report of the seed: %w", ctx.Err())
		}
	}
	defer func() { <-last.semaphore }()
	seed := g.objects.get(kindSeed, "", g.options.Seed)
	g.mu.Lock()
	assessed := g.publication.syncedDigest
	g.mu.Unlock()
	if seed == nil || assessed == "" {
		return nil
	}
	former := seedpublication.ReadSeedReport(seed)
	now := g.report(former)
	if done != nil {
		before := last.lastHeld
		if last.lastPatch == nil && former != nil {
			before = former.Held
		}
		if done.kind != owner.Seed && slices.Equal(heldByOwner(before, done.owner), heldByOwner(now.Held, done.owner)) {
			return nil
		}
		if !done.hasFailed { // one request reports both
			done.worker.recordReconciled(done.key, false)
			now = g.report(former)
		}
	}
	_, differs, err := seedpublication.ReportPatch(seed, now)
	if err != nil {
		return err
	}
	patch, _, err := seedpublication.ReportPatch(&unstructured.Unstructured{Object: map[string]any{}}, now)
	if err != nil {
		return err
	}
	// The cached Seed may be older than the last patch.
	if is := reflect.DeepEqual(patch, last.lastPatch); is && (!differs || last.seedVersion == seed.GetResourceVersion()) || last.lastPatch == nil && !differs {
		return nil
	}
	if _, err := g.connections.garden.MergePatch(ctx, apply.RefOf(seed), patch, "gardenlet", ""); err != nil {
		return g.connections.garden.Explain(apply.RefOf(seed), "write the report", err)
	}
	last.lastPatch, last.seedVersion, last.lastHeld = patch, seed.GetResourceVersion(), now.Held
	return nil
}

// heldByOwner returns the held deletions of one owner.
func heldByOwner(all []seedpublication.HeldObject, name string) []seedpublication.HeldObject {
	return slices.DeleteFunc(slices.Clone(all), func(h seedpublication.HeldObject) bool { return h.Owner != name })
}
