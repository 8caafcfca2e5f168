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
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// A Garden is deleted in two ways: someone deletes the object, or its file is removed from Git. The
// second way requires the confirmation that the API requires for the first. The next run deletes
// its components instead of anything else, because the virtual garden ends with it.

// isGardenKind reports whether a kind is Garden.
func isGardenKind(gk schema.GroupKind) bool {
	return gk == operatorv1alpha1.SchemeGroupVersion.WithKind("Garden").GroupKind()
}

// IsDeletedWithFile reports whether an object of a kind of IsHeldOnRemoval, as last declared, is
// deleted when its file no longer exists: a confirmed Garden is.
func IsDeletedWithFile(declared *unstructured.Unstructured) bool {
	return isGardenKind(declared.GroupVersionKind().GroupKind()) && owner.IsConfirmed(declared)
}

// isDeletionConfirmed reports whether the deletion of a Garden is confirmed; it is false for other
// kinds.
func (c *Converger) isDeletionConfirmed(ctx context.Context, ref apply.Ref) bool {
	if !isGardenKind(ref.GroupKind()) {
		return false
	}
	live, err := c.connections.clusters[Runtime].GetLive(ctx, ref)
	return err == nil && owner.IsConfirmed(live)
}

// referencesOf returns the objects that a live object refers to: while it is held, they are held as
// well.
func (c *Converger) referencesOf(ctx context.Context, cluster string, ref apply.Ref) []crosscheck.ReferencedObject {
	live, err := c.connections.clusters[cluster].GetLive(ctx, ref)
	if err != nil {
		return nil // finalizers still protect them
	}
	return crosscheck.ReferencedObjects(live)
}

// withoutDeletingGardens removes Gardens that are being deleted, or that this run has deleted, from
// the declarations. ending reports whether a Garden is, or will be, in deletion, so that applying
// must not wait for it. removed reports whether the declarations may be empty, because their Garden
// is in deletion or no longer declared; deleting it needs a confirmation anyway.
func (c *Converger) withoutDeletingGardens(ctx context.Context, cluster string, d *declarations) (ending, removed bool, err error) {
	if cluster == Virtual {
		return false, false, c.withoutRuntimeObjects(ctx, d)
	}
	if cluster != Runtime {
		return false, false, nil
	}
	declared := map[apply.Ref]bool{}
	var problem error
	d.objects = slices.DeleteFunc(d.objects, func(o *unstructured.Unstructured) bool {
		ref := apply.RefOf(o)
		if !isGardenKind(ref.GroupKind()) {
			return false
		}
		declared[versionlessRef(ref)] = true
		ends := c.isGardenDeleted(ref)
		if !ends {
			live, err := c.connections.clusters[Runtime].Get(ctx, ref)
			if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				problem = c.connections.clusters[Runtime].Explain(ref, "read", err)
			}
			ends = err == nil && live.GetDeletionTimestamp() != nil
		}
		ending = ending || ends
		return ends
	})
	if problem != nil || ending {
		return ending, ending, problem
	}
	entries, err := c.declarationInventory(Runtime).Load(ctx)
	if err != nil {
		return false, false, err
	}
	for _, e := range entries {
		if !isGardenKind(e.GroupKind()) || declared[versionlessRef(e.Ref)] {
			continue
		}
		removed, ending = true, ending || c.isDeletionConfirmed(ctx, e.Ref)
	}
	return ending, removed, nil
}

// withoutRuntimeObjects removes objects of the runtime cluster from the declarations of the virtual
// garden. If the file of a Garden is removed and the Garden stays unconfirmed, nothing refers to
// its Secrets. They would count as objects of the virtual garden, and leak credentials of the
// runtime cluster.
func (c *Converger) withoutRuntimeObjects(ctx context.Context, d *declarations) error {
	for i := range c.landscape.Declarations {
		if isGardenKind(c.landscape.Declarations[i].GroupVersionKind().GroupKind()) {
			return nil
		}
	}
	if c.connections.clusters[Runtime] == nil {
		return nil
	}
	entries, err := c.declarationInventory(Runtime).Load(ctx)
	if err != nil {
		return err
	}
	kept, garden := map[apply.Ref]bool{}, false
	for _, e := range entries {
		kept[versionlessRef(e.Ref)] = true
		garden = garden || isGardenKind(e.GroupKind())
	}
	if garden {
		d.objects = slices.DeleteFunc(d.objects, func(o *unstructured.Unstructured) bool { return kept[versionlessRef(apply.RefOf(o))] })
	}
	return nil
}

func (c *Converger) isGardenDeleted(ref apply.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.currentRun.deletedGardens[versionlessRef(ref)]
}

// HasDeletedGarden reports whether the last run has completed the deletion of the Garden.
func (c *Converger) HasDeletedGarden() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.currentRun.deletedGardens) > 0
}

func (c *Converger) resetGardenDeletion() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.currentRun.deletedGardens, c.currentRun.deletingGardens = nil, nil
}

// hasTriedDeletion reports whether the last run has worked on the deletion of the Garden.
func (c *Converger) hasTriedDeletion(ref apply.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.currentRun.deletingGardens[versionlessRef(ref)]
}

// deleteGarden deletes the components of the Garden if it is being deleted, and reports whether it
// is.
func (c *Converger) deleteGarden(ctx context.Context) (ending bool, err error) {
	o, err := c.findDeletingGarden(ctx)
	if o == nil || err != nil {
		return err != nil, err
	}
	c.mu.Lock()
	c.currentRun.deletingGardens = map[apply.Ref]bool{versionlessRef(o.Ref): true}
	c.mu.Unlock()
	_, report, err := c.members.reconciler.Delete(ctx, o.Owner, o.state())
	if report != nil {
		c.addOwnerReport(report)
	}
	if err != nil {
		return true, fmt.Errorf("%s is being deleted: %w", o, err)
	}
	c.mu.Lock()
	c.currentRun.deletedGardens = map[apply.Ref]bool{versionlessRef(o.Ref): true}
	c.mu.Unlock()
	if virtual := c.connections.clusters[Virtual]; virtual != nil {
		c.connections.engine.ForgetCluster(virtual)
	}
	// The declarations of the virtual garden have ended with it.
	if err := c.declarationInventory(Virtual).Remove(ctx); err != nil {
		return true, err
	}
	return true, c.applyDeclarations(ctx, Runtime, splitByCluster(c.landscape)[Runtime])
}

// findDeletingGarden returns the Garden of this landscape, declared or not, whose deletion is not
// complete, or nil if there is none.
func (c *Converger) findDeletingGarden(ctx context.Context) (*convergedOwner, error) {
	known := map[apply.Ref]*convergedOwner{}
	for _, o := range c.members.all {
		if o.Input.Owner.Kind == owner.Garden {
			known[versionlessRef(o.Ref)] = o
		}
	}
	refs := map[apply.Ref]apply.Ref{}
	for at, o := range known {
		refs[at] = o.Ref
	}
	entries, err := c.declarationInventory(Runtime).Load(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if isGardenKind(e.GroupKind()) {
			refs[versionlessRef(e.Ref)] = e.Ref
		}
	}
	for at, ref := range refs {
		live, err := c.connections.clusters[Runtime].GetLive(ctx, ref)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			continue
		case err != nil:
			return nil, c.connections.clusters[Runtime].Explain(ref, "read", err)
		case live.GetDeletionTimestamp() == nil || !owner.HasFinalizer(live):
			continue
		}
		if o := known[at]; o != nil {
			return o, nil
		}
		return &convergedOwner{converger: c, Owner: owner.Owner{Ref: ref, ObjectCluster: c.connections.clusters[Runtime], Local: c.connections.clusters[Runtime], Target: c.connections.clusters[Virtual], Input: render.Input{
			Owner:     render.Owner{Kind: owner.Garden, Name: live.GetName(), UID: string(live.GetUID()), ControlPlaneNamespace: owner.InventoryNamespace},
			Objects:   map[string]map[string]any{owner.Garden: DeclarationOf(live).Object},
			GardenAPI: c.landscape.Config.Spec.GardenAPI,
		}}}, nil
	}
	return nil, nil
}

// removeEmptyInventory deletes the inventory of the runtime cluster once it is empty and Git
// declares nothing for the cluster.
func (c *Converger) removeEmptyInventory(ctx context.Context) error {
	inventory := c.declarationInventory(Runtime)
	entries, err := inventory.Load(ctx)
	if err != nil || len(entries) > 0 || splitByCluster(c.landscape)[Runtime].count() > 0 {
		return err
	}
	return inventory.Remove(ctx)
}

// gateForPlan returns the gate for a plan: a Garden to delete was confirmed, which includes the
// approval.
func (c *Converger) gateForPlan(p *change.Plan) permit.Gate {
	gate := c.options.Permits.Gate
	ids := map[string]bool{}
	for _, item := range p.Items {
		if item.Action == change.Delete && isGardenKind(item.Object.GroupKind()) {
			ids[permit.ApprovalID(item.Cluster, item.Object)] = true
			p.Notes = append(p.Notes, fmt.Sprintf("%s is deleted with everything that runs for it", item.Object))
		}
	}
	if len(ids) == 0 {
		return gate
	}
	approved, ledger := gate.Approved, gate.Ledger
	gate.Approved = maps.Clone(ids)
	maps.Copy(gate.Approved, approved)
	gate.Ledger = func(id string, refs []change.Ref) bool { return ids[id] || ledger == nil || ledger(id, refs) }
	return gate
}
