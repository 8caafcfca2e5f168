// SPDX-License-Identifier: Apache-2.0

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

// recordDryRun records the dry-run result of a Seed or Shoot.
func (c *Converger) recordDryRun(ref apply.Ref, next *unstructured.Unstructured) {
	if !isVirtualOwner(ref) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dryRun.ownerResults == nil {
		c.dryRun.ownerResults = map[apply.Ref]*unstructured.Unstructured{}
	}
	c.dryRun.ownerResults[ref] = next
}

// resetDryRun drops the dry-run results at the start of an apply, which uses live objects.
func (c *Converger) resetDryRun() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dryRun.ownerResults = nil
}

// isVirtualOwner reports whether an object is an owner in the virtual garden.
func isVirtualOwner(ref apply.Ref) bool {
	return isOwnerKind(ref.GroupKind()) && (ref.Kind == "Seed" || ref.Kind == "Shoot")
}

// dryRunVirtualOwners runs a dry run for the Seeds and Shoots, for callers that neither plan nor
// apply. If it fails, the live objects are used.
func (c *Converger) dryRunVirtualOwners(ctx context.Context) {
	if c.connections.clusters[Virtual] == nil || c.connections.clusters[Runtime] == nil {
		return
	}
	s := c.declarationSet(Virtual, splitByCluster(c.landscape)[Virtual])
	s.Objects = slices.DeleteFunc(s.Objects, func(o *unstructured.Unstructured) bool { return !isVirtualOwner(apply.RefOf(o)) })
	s.RebuildFrom = nil
	if len(s.Objects) == 0 {
		return
	}
	_, _ = c.connections.engine.Plan(ctx, c.connections.clusters[Virtual], s, c.declarationInventory(Virtual), apply.ApplyOptions{NoPrune: true, CompleteDeclaration: c.completeDeclaration, OnDryRun: c.recordDryRun})
}

// loadLiveOwner reads the live owner: its UID, which names things outside of the clusters, and its
// effective fields.
func (c *Converger) loadLiveOwner(ctx context.Context, o *convergedOwner) error {
	live, err := o.ObjectCluster.GetLive(ctx, o.Ref)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || access.IsMissing(err):
		return &apply.FollowsError{Err: fmt.Errorf("not reconciled, because it does not exist on cluster %s: its declaration could not be applied there", o.ObjectCluster.Name())}
	case err != nil:
		return o.ObjectCluster.Explain(o.Ref, "read", err)
	}
	if err := checkRestored(live); err != nil {
		return err
	}
	o.Input.Owner.UID = ExternalUID(live)
	if err := c.useEffectiveObject(o, live); err != nil {
		return err
	}
	if o.Input.Owner.Kind == owner.Seed {
		c.recordSeedReport(live)
	}
	if o.Input.Owner.Kind != owner.Shoot {
		return nil
	}
	return c.useEffectiveSeed(ctx, o)
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

// useEffectiveObject sets the inputs of an owner's components from its effective object.
func (c *Converger) useEffectiveObject(o *convergedOwner, live *unstructured.Unstructured) error {
	if seed, _, _ := unstructured.NestedString(live.Object, "spec", "seedName"); o.Input.Owner.Kind == owner.Shoot && seed != "" && seed != o.Local.Name() {
		return fmt.Errorf("it is bound to seed %s, but Git declares %s: its components are not reconciled on %[2]s; declare the bound seed in Git", seed, o.Local.Name())
	}
	if !isVirtualOwner(o.Ref) || o.Input.Objects[o.Input.Owner.Kind] == nil {
		return nil
	}
	object, err := c.effectiveObject(o.Ref, live)
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

// useEffectiveSeed gives a Shoot its effective Seed with its UID, which names the backup bucket of
// a Shoot.
func (c *Converger) useEffectiveSeed(ctx context.Context, o *convergedOwner) error {
	ref := ownerRef(render.Owner{Kind: owner.Seed, Name: o.Local.Name()})
	live, err := o.ObjectCluster.GetLive(ctx, ref)
	if err != nil {
		return o.ObjectCluster.Explain(ref, "read", err)
	}
	c.recordSeedReport(live)
	seed, err := c.effectiveObject(ref, live)
	if err != nil {
		return err
	}
	o.Input.Objects = maps.Clone(o.Input.Objects)
	o.Input.Objects[owner.Seed] = seed
	o.Input.Objects = withUID(o.Input.Objects, owner.Seed, string(live.GetUID()))
	return nil
}

// effectiveObject returns the object to render a Seed or Shoot from: the dry-run result, or the
// live object.
func (c *Converger) effectiveObject(ref apply.Ref, live *unstructured.Unstructured) (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.dryRun.ownerResults[ref]
	// Another UID means that the object was recreated meanwhile.
	if next == nil || next.GetUID() != live.GetUID() {
		next = live
	}
	if c.dryRun.defaulter == nil {
		c.dryRun.defaulter = render.NewDefaulter(c.landscape, render.WithTime(c.options.Clock.Now()))
	}
	object, err := c.dryRun.defaulter.Default(DeclarationOf(next))
	if err != nil {
		return nil, fmt.Errorf("defaulting %s with values from cluster %s: %w", ref, Virtual, err)
	}
	return object, nil
}
