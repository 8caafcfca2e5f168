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

// The operator never reaches a seed. What it has to know of it, to tell those who wait for a sync
// or look for what is held, stands in an annotation of the Seed, which is brought up to date with
// each heartbeat that finds it different, and before a status says that something is done
// (outcome.go).

// reach notes that the owner was converged with all that this key stands for.
func (s *site) reach(key string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached, s.failed = key, failed
}

// holds notes what is held of the owner. A run that did not get to its end has not seen all that
// is: what was held before may be so still.
func (s *site) holds(held []permit.HeldObjects, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if complete {
		s.held, s.judged = held, true
		return
	}
	s.held = permit.Unseen(held, s.held)
}

// stillHeld gives what is held the reason that it was held for first, where the gate only says now
// that no review shows it any more.
func (g *Gardenlet) stillHeld(at *site, o *unstructured.Unstructured, held []permit.HeldObjects) []permit.HeldObjects {
	before := map[string]change.Reason{}
	at.mu.Lock()
	known, judged := at.held, at.judged
	at.mu.Unlock()
	if former := seedpublication.ReadReport(g.objects.get(kindSeed, "", g.options.Seed)); former != nil && !judged {
		for _, h := range former.Held {
			if h.Owner == reportedName(o) {
				before[h.Cluster+" "+h.Object] = h.Why
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
			o.Reason = permit.StillHeld(o.Reason, before[out[i].Cluster+" "+o.Ref.String()])
		}
	}
	return out
}

// reportedName is how an owner is named in a report, as in the id of its site but with its kind as
// the API has it.
func reportedName(o *unstructured.Unstructured) string {
	if namespace := o.GetNamespace(); namespace != "" {
		return o.GetKind() + " " + namespace + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

// report says how the seed stands. What a former process has reported as held counts for owners
// that this one has not converged yet.
func (g *Gardenlet) report(former *seedpublication.Report) seedpublication.Report {
	g.mu.Lock()
	s, out := g.published.settings, seedpublication.Report{Digest: g.published.assessed}
	g.mu.Unlock()
	sites, names := g.fleet.Owners(), map[*site]string{}
	for _, at := range sites {
		at.mu.Lock()
		names[at] = reportedName(at.object)
		at.mu.Unlock()
	}
	if s == nil {
		return out
	}
	approvals := g.approvals(s)
	// The Seed comes first: all others wait for it.
	slices.SortFunc(sites, func(a, b *site) int { return cmp.Compare(names[a], names[b]) })
	for _, at := range sites {
		name := names[at]
		at.mu.Lock()
		switch {
		case at.reached != at.key:
			out.Converging = append(out.Converging, name)
		case at.failed:
			out.Failing = append(out.Failing, name)
		}
		held, judged := at.held, at.judged
		at.mu.Unlock()
		known := map[string]bool{}
		for _, h := range held {
			for _, o := range h.Objects {
				known[h.Cluster+" "+o.Ref.String()] = true
				held := seedpublication.Held{Owner: name, Cluster: h.Cluster, Object: o.Ref.String(), Why: o.Reason, Approval: approvals.Shown(o.Approval)}
				if h.Approval != o.Approval {
					held.Together = approvals.Shown(h.Approval)
				}
				out.Held = append(out.Held, held)
			}
		}
		if former == nil || judged {
			continue
		}
		for _, h := range former.Held {
			if h.Owner == name && !known[h.Cluster+" "+h.Object] {
				h.Approval, h.Together = approvals.Shown(permit.Plain(h.Approval)), approvals.Shown(permit.Plain(h.Together))
				out.Held = append(out.Held, h)
			}
		}
	}
	slices.SortStableFunc(out.Held, func(a, b seedpublication.Held) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Object, b.Object))
	})
	return out
}

// reporting is what this process has written of the report last. turn is taken by whoever looks at
// it and writes: what was found first is written first.
type reporting struct {
	turn chan struct{}
	// patch is what was written, nil before; over is the version that the Seed was known to have
	// then. held is what it said.
	patch map[string]any
	over  string
	held  []seedpublication.Held
}

// end is that of a convergence, of which the status does not say it yet.
type end struct {
	at               *site
	kind, owner, key string
	failed           bool
}

// noteReport brings the annotation of the Seed up to date; it costs a request only when it is not.
// Before anything is known of the owners the one of a former process stays. At the end of a
// convergence it does so where those who wait for it have to know, and waits for its turn as long
// as ctx lasts. A heartbeat waits for nobody: what it would say the next one does.
func (g *Gardenlet) noteReport(ctx context.Context, done *end) error {
	last := &g.reporting
	select {
	case last.turn <- struct{}{}:
	default:
		if done == nil {
			return nil
		}
		select {
		case last.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("waiting for others who say how the seed stands: %w", ctx.Err())
		}
	}
	defer func() { <-last.turn }()
	seed := g.objects.get(kindSeed, "", g.options.Seed)
	g.mu.Lock()
	assessed := g.published.assessed
	g.mu.Unlock()
	if seed == nil || assessed == "" {
		return nil
	}
	former := seedpublication.ReadReport(seed)
	now := g.report(former)
	if done != nil {
		before := last.held
		if last.patch == nil && former != nil {
			before = former.Held
		}
		if done.kind != owner.Seed && slices.Equal(heldOf(before, done.owner), heldOf(now.Held, done.owner)) {
			return nil
		}
		if !done.failed { // one writing says both
			done.at.reach(done.key, false)
			now = g.report(former)
		}
	}
	_, differs, err := seedpublication.NoteReport(seed, now)
	if err != nil {
		return err
	}
	patch, _, err := seedpublication.NoteReport(&unstructured.Unstructured{Object: map[string]any{}}, now)
	if err != nil {
		return err
	}
	// What is known of the Seed may be older than what was written last.
	if is := reflect.DeepEqual(patch, last.patch); is && (!differs || last.over == seed.GetResourceVersion()) || last.patch == nil && !differs {
		return nil
	}
	if _, err := g.links.garden.MergePatch(ctx, apply.RefOf(seed), patch, "gardenlet", ""); err != nil {
		return g.links.garden.Explain(apply.RefOf(seed), "say how the seed stands", err)
	}
	last.patch, last.over, last.held = patch, seed.GetResourceVersion(), now.Held
	return nil
}

// heldOf is what is held of one owner.
func heldOf(all []seedpublication.Held, name string) []seedpublication.Held {
	return slices.DeleteFunc(slices.Clone(all), func(h seedpublication.Held) bool { return h.Owner != name })
}
