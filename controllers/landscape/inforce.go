package landscape

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/render"
)

// The components of a Seed or Shoot are those of the object in the virtual garden, as the gardenlet
// of its seed sees it: with the fields that Git does not declare and somebody has set, those that
// are handed over, and what was chosen when it was made. After an apply that is the live object.
// Before one it is what the server says that the apply makes of it.

// foresees keeps what a dry run makes of a Seed or Shoot.
func (c *Converger) foresees(ref apply.Ref, next *unstructured.Unstructured) {
	if !isRenderedLive(ref) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead.foreseen == nil {
		c.ahead.foreseen = map[apply.Ref]*unstructured.Unstructured{}
	}
	c.ahead.foreseen[ref] = next
}

// forgetForeseen is for a run that applies: what lives afterwards is in force.
func (c *Converger) forgetForeseen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead.foreseen = nil
}

// isRenderedLive tells the owners in the virtual garden.
func isRenderedLive(ref apply.Ref) bool {
	return isOwner(ref.GroupKind()) && (ref.Kind == "Seed" || ref.Kind == "Shoot")
}

// foresee looks what an apply would make of the Seeds and Shoots, for those that do not plan or
// apply. Where that cannot be told, they are taken as they live.
func (c *Converger) foresee(ctx context.Context) {
	if c.links.clusters[Virtual] == nil || c.links.clusters[Runtime] == nil {
		return
	}
	s := c.declarationSet(Virtual, split(c.landscape)[Virtual])
	s.Objects = slices.DeleteFunc(s.Objects, func(o *unstructured.Unstructured) bool { return !isRenderedLive(apply.RefOf(o)) })
	s.RebuildFrom = nil
	if len(s.Objects) == 0 {
		return
	}
	_, _ = c.links.engine.Plan(ctx, c.links.clusters[Virtual], s, c.declarationInventory(Virtual), apply.ApplyOptions{NoPrune: true, Complete: c.complete, Foreseen: c.foresees})
}

// identify reads the UID of an owner, which names things outside of the clusters.
func (c *Converger) identify(ctx context.Context, o *member) error {
	live, err := o.Home.GetLive(ctx, o.Ref)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || access.IsMissing(err):
		return &owner.FollowsError{Err: fmt.Errorf("not reconciled, because it is not on cluster %s: what Git declares could not be applied there", o.Home.Name())}
	case err != nil:
		return o.Home.Explain(o.Ref, "read", err)
	}
	if err := unfinished(live); err != nil {
		return err
	}
	o.Input.Owner.UID = IdentityOf(live)
	if err := c.follow(o, live); err != nil {
		return err
	}
	if o.Input.Owner.Kind == owner.Seed {
		c.noteReport(live)
	}
	if o.Input.Owner.Kind != owner.Shoot {
		return nil
	}
	return c.onSeed(ctx, o)
}

// withUID gives one of the declarations the UID it has in the cluster. Declarations are shared
// between owners, so it works on copies.
func withUID(objects map[string]map[string]any, name, uid string) map[string]map[string]any {
	out := maps.Clone(objects)
	object := maps.Clone(out[name])
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["uid"] = uid
	object["metadata"] = metadata
	out[name] = object
	return out
}

// follow makes the components of an owner those of what is in force.
func (c *Converger) follow(o *member, live *unstructured.Unstructured) error {
	if seed, _, _ := unstructured.NestedString(live.Object, "spec", "seedName"); o.Input.Owner.Kind == owner.Shoot && seed != "" && seed != o.Local.Name() {
		return fmt.Errorf("it is bound to seed %s, and Git says %s: its components are not reconciled on %[2]s; put the seed it has into Git", seed, o.Local.Name())
	}
	if !isRenderedLive(o.Ref) || o.Input.Objects[o.Input.Owner.Kind] == nil {
		return nil
	}
	object, err := c.inForce(o.Ref, live)
	if err != nil {
		return err
	}
	// Declarations are shared between owners.
	o.Input.Objects = maps.Clone(o.Input.Objects)
	o.Input.Objects[o.Input.Owner.Kind] = object
	if version, _, _ := unstructured.NestedString(object, "spec", "kubernetes", "version"); o.Input.Owner.Kind == owner.Shoot && version != "" {
		o.Input.TargetVersion = version
	}
	return nil
}

// onSeed gives a Shoot its Seed as it is in force, and its UID: the backup bucket of a Shoot is
// named after that.
func (c *Converger) onSeed(ctx context.Context, o *member) error {
	ref := ownerRef(render.Owner{Kind: owner.Seed, Name: o.Local.Name()})
	live, err := o.Home.GetLive(ctx, ref)
	if err != nil {
		return o.Home.Explain(ref, "read", err)
	}
	c.noteReport(live)
	seed, err := c.inForce(ref, live)
	if err != nil {
		return err
	}
	o.Input.Objects = maps.Clone(o.Input.Objects)
	o.Input.Objects[owner.Seed] = seed
	o.Input.Objects = withUID(o.Input.Objects, owner.Seed, string(live.GetUID()))
	return nil
}

// inForce is what a Seed or Shoot is rendered from: what was foreseen of it, or what lives.
func (c *Converger) inForce(ref apply.Ref, live *unstructured.Unstructured) (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.ahead.foreseen[ref]
	// One that was deleted and made anew meanwhile is another one.
	if next == nil || next.GetUID() != live.GetUID() {
		next = live
	}
	if c.ahead.filler == nil {
		c.ahead.filler = render.NewFiller(c.landscape, render.At(c.options.Clock.Now()))
	}
	object, err := c.ahead.filler.Fill(DeclarationOf(next))
	if err != nil {
		return nil, fmt.Errorf("taking %s as it is on cluster %s: %w", ref, Virtual, err)
	}
	return object, nil
}
