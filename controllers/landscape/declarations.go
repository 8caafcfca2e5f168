// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// FieldManager owns the fields that Git declares.
const FieldManager = "pergola-landscape"

// AnnotationCluster is the cluster of an object.
const AnnotationCluster = landscapes.AnnotationCluster

// declarations are the declarations of one cluster, for the engine.
type declarations struct {
	objects []*unstructured.Unstructured
	sources map[apply.Ref]string
	// undecryptable are Secrets that no key decrypts: their data cannot be applied or compared.
	undecryptable []undecryptableSecret
}

// splitByCluster sorts the declarations by cluster. The operator's kinds and the objects that the
// Garden refers to belong to the runtime cluster, all others to the virtual garden.
func splitByCluster(l *landscapes.Landscape) map[string]*declarations {
	out := map[string]*declarations{
		Runtime: {sources: map[apply.Ref]string{}}, Virtual: {sources: map[apply.Ref]string{}},
	}
	referenced := l.RuntimeReferences()
	for i := range l.Declarations {
		d := &l.Declarations[i]
		if d.GroupVersionKind().Group == landscapev1alpha1.SchemeGroupVersion.Group {
			continue
		}
		obj := d.Copy()
		target := out[landscapes.ClusterOf(obj, referenced)]
		if d.Secret == landscapes.SecretEncrypted {
			target.undecryptable = append(target.undecryptable, newUndecryptableSecret(d))
			continue
		}
		obj.SetAnnotations(withoutKey(obj.GetAnnotations(), AnnotationCluster))
		target.objects = append(target.objects, obj)
		target.sources[apply.RefOf(obj)] = fmt.Sprintf("%s:%d", d.File, d.Line)
	}
	return out
}

// count returns the number of objects for a cluster, including undecryptable Secrets.
func (d *declarations) count() int { return len(d.objects) + len(d.undecryptable) }

func withoutKey(m map[string]string, key string) map[string]string {
	delete(m, key)
	if len(m) == 0 {
		return nil
	}
	return m
}

// declarationSet returns the set of declarations for the engine.
func (c *Converger) declarationSet(name string, d *declarations) apply.Set {
	return apply.Set{Name: c.nameOfSet(name), Objects: d.objects, FieldManager: FieldManager, Sources: d.sources, RebuildFrom: apply.KindsOf(d.objects...),
		RecordSources: true, FieldPolicies: engineHandoverRules(), TakeBack: true, TakeBackFrom: isPersonManager}
}

func (c *Converger) nameOfSet(name string) string {
	return "landscape." + c.landscape.Config.Name + "/" + name
}

func (c *Converger) declarationInventory(name string) apply.Inventory {
	return apply.NewConfigMapInventory(c.connections.clusters[Runtime], owner.InventoryNamespace, inventoryName(c.landscape.Config.Name, name),
		map[string]string{owner.LabelInventory: "landscape." + c.landscape.Config.Name, owner.LabelBundle: name, owner.LabelCluster: name})
}

// applyDeclarations applies the declarations of one cluster. The engine modifies the objects:
// afterwards they are as sent.
func (c *Converger) applyDeclarations(ctx context.Context, cluster string, d *declarations) error {
	if err := undecryptableError(d.undecryptable, c.landscape.Keys); err != nil {
		return err
	}
	around, err := c.readOtherLandscapes(ctx, cluster)
	if err != nil {
		return err
	}
	ending, removed, err := c.withoutDeletingGardens(ctx, cluster, d)
	if err != nil {
		return err
	}
	leaving, err := c.hasRemovedExtension(ctx, cluster, d)
	if err != nil {
		return err
	}
	options := apply.ApplyOptions{IsDeclaredElsewhere: around.isDeclaredElsewhere, IsDeclaredBy: around.isDeclaredBy, IsReleasedBy: around.hasReleased,
		Admit: c.admitChange, CompleteDeclaration: c.completeDeclaration, AllowEmpty: removed, NoWait: ending || leaving}
	judged := c.newDeletionJudge(ctx, cluster, len(d.objects), around)
	options.ApprovePrune = func(entries []apply.Entry) []apply.HeldObject { return c.reportHeld(cluster, judged.prune(entries)) }
	kept := c.runs.IsMaintaining()
	if kept {
		options.NoDelete = true
		// An incomplete sync is left to the next sync and its window.
		options.Repair = !c.isApplied(cluster)
	}
	options.HoldRecreate = func(e apply.Entry) *change.Reason {
		if held := c.reportHeld(cluster, judged.recreate(e)); len(held) > 0 {
			return &held[0].Reason
		}
		return nil
	}
	set := c.declarationSet(cluster, d)
	set.ModifyObjects = true
	err = around.explainConflicts(c.applySet(ctx, cluster, DeclarationsBundle, set, c.declarationInventory(cluster), options))
	c.admission.releaseRules()
	if !kept && err == nil {
		c.markApplied(cluster)
	}
	if err != nil || kept {
		around.removals.preserveUndeclared(cluster, d.objects)
	}
	if err == nil && removed {
		err = c.removeEmptyInventory(ctx)
	}
	return errors.Join(err, c.saveRemovalQuestions(ctx, cluster, around.removals))
}

// markApplied records that the declarations of a cluster were applied. That remains true if a later
// apply of the same declarations fails.
func (c *Converger) markApplied(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.currentRun.appliedClusters == nil {
		c.currentRun.appliedClusters = map[string]bool{}
	}
	c.currentRun.appliedClusters[cluster] = true
}

func (c *Converger) isApplied(cluster string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.currentRun.appliedClusters[cluster]
}

func (c *Converger) applySet(ctx context.Context, cluster, bundle string, s apply.Set, inv apply.Inventory, options apply.ApplyOptions) error {
	options.OnObject = func(r apply.ObjectResult) {
		c.reportObject("landscape "+c.landscape.Config.Name, bundle, r)
	}
	result, err := c.connections.engine.Apply(ctx, c.connections.clusters[cluster], s, inv, options)
	if result != nil {
		c.countWrites(result)
		for _, o := range result.Objects {
			if options.Repair && o.Action == apply.Skipped && o.Err == nil {
				c.recordSkipped(o.Ref)
				continue
			}
			c.recordApplyResult(o.Ref, o.Action == apply.Failed || o.Action == apply.Skipped)
			c.recordHandedOver(cluster, o.Ref, o.HandedOver)
			c.reportReverted(cluster, o)
		}
	}
	return err
}

// reportHeld adds held deletions to the report.
func (c *Converger) reportHeld(cluster string, verdicts []permit.HeldObjects) []apply.HeldObject {
	var out []apply.HeldObject
	for _, v := range verdicts {
		c.addHeld(cluster, v.Objects, v.Approval)
		out = append(out, v.Objects...)
	}
	return out
}

// ownerRef returns the declaration of an owner.
func ownerRef(o render.Owner) apply.Ref {
	switch o.Kind {
	case owner.Garden:
		return apply.Ref{APIVersion: "operator.gardener.cloud/v1alpha1", Kind: "Garden", Name: o.Name}
	case owner.Seed:
		return apply.Ref{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Seed", Name: o.Name}
	}
	return apply.Ref{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: o.Namespace, Name: o.Name}
}
