// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// terminatingObject is an object that left its bundle and still existed after the apply: it has a
// finalizer, or it is a namespace with objects.
type terminatingObject struct {
	ref     apply.Ref
	cluster *apply.Cluster
}

// recordTerminating records the objects of a bundle that are still terminating after an apply.
func (o *ownerSession) recordTerminating(bundle string, c *apply.Cluster, results ...apply.ObjectResult) {
	var found []terminatingObject
	for _, r := range results {
		if r.Action == apply.Deleting {
			found = append(found, terminatingObject{r.Ref, c})
		}
	}
	o.updateState(func(s *State) { s.setTerminating(bundle, found) })
}

// finishedBundles returns the bundles whose terminating objects no longer exist.
func (o *ownerSession) finishedBundles(ctx context.Context) []string {
	var out []string
	for bundle, objects := range o.currentState().terminating {
		if !slices.ContainsFunc(objects, func(l terminatingObject) bool { return !l.isDeleted(ctx) }) {
			out = append(out, bundle)
		}
	}
	slices.Sort(out)
	return out
}

// isDeleted reports whether an object is known to no longer exist.
func (l terminatingObject) isDeleted(ctx context.Context) bool {
	_, err := l.cluster.Get(ctx, l.ref)
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// finishRemovals is FinishRemovals for some bundles.
func (r *Reconciler) finishRemovals(ctx context.Context, o *ownerSession, bundles ...render.Bundle) error {
	done := o.finishedBundles(ctx)
	var problems []error
	for _, b := range bundles {
		if !slices.Contains(done, b.Name) {
			continue
		}
		work := r.newRepair(o, b)
		if work.hasNewRendering && b.Delivery.Direct {
			continue // the next reconciliation handles it
		}
		if _, err := work.applyBundle(ctx, b); err != nil {
			problems = append(problems, fmt.Errorf("finish the removal of objects that it no longer has: %w", err))
		}
	}
	return errors.Join(problems...)
}

// declaredRefs returns the objects that a ManagedResource declares. Its inventory also has held and
// terminating objects, which may be deleted at any time and need no health check.
func declaredRefs(ctx context.Context, rm *managedresource.Reconciler, outcome *managedresource.Outcome) ([]apply.Ref, error) {
	entries, err := rm.Inventory(outcome.ManagedResource).Load(ctx)
	if err != nil {
		return nil, err
	}
	pending := map[apply.Ref]bool{}
	if outcome.ApplyResult != nil {
		for _, o := range outcome.ApplyResult.Pending() {
			pending[o.Ref] = true
		}
	}
	var out []apply.Ref
	for _, e := range entries {
		if !e.Deleting && !pending[e.Ref] {
			out = append(out, e.Ref)
		}
	}
	return out, nil
}
