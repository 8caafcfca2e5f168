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

// Components of a Seed or Shoot are rendered from the object in the virtual garden, like the
// gardenlet of its seed does. It includes undeclared fields that others have set, handed-over
// fields, and values chosen at creation. After an apply that is the live object; before, it is the
// result of a server-side dry run.

// foresees records the dry-run result of a Seed or Shoot.
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

// forgetForeseen drops the dry-run results at the start of an apply, which uses live objects.
func (c *Converger) forgetForeseen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead.foreseen = nil
}

// isRenderedLive reports whether an object is an owner in the virtual garden.
func isRenderedLive(ref apply.Ref) bool {
	return isOwner(ref.GroupKind()) && (ref.Kind == "Seed" || ref.Kind == "Shoot")
}

// foresee runs a dry run for the Seeds and Shoots, for callers that neither plan nor apply. If it
// fails, the live objects are used.
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

// identify reads the live owner: its UID, which names things outside of the clusters, and its
// effective fields.
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

// withUID sets the UID in a copy of one declaration: owners share declarations.
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

// follow sets the inputs of an owner's components from its effective object.
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
	// Owners share declarations.
	o.Input.Objects = maps.Clone(o.Input.Objects)
	o.Input.Objects[o.Input.Owner.Kind] = object
	if version, _, _ := unstructured.NestedString(object, "spec", "kubernetes", "version"); o.Input.Owner.Kind == owner.Shoot && version != "" {
		o.Input.TargetVersion = version
	}
	return nil
}

// onSeed gives a Shoot its effective Seed with its UID, which names the backup bucket of a Shoot.
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

// inForce returns the object to render a Seed or Shoot from: the dry-run result, or the live
// object.
func (c *Converger) inForce(ref apply.Ref, live *unstructured.Unstructured) (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.ahead.foreseen[ref]
	// Another UID means that the object was recreated meanwhile.
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
