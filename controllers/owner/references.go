// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/references"
	"github.com/pergola-dev/pergola/render"
)

// readReferences reads the objects that the declaration refers to. A garden that does not exist yet
// has none.
func (r *Reconciler) readReferences(ctx context.Context, o *ownerSession) error {
	var found []references.LookupResult
	var err error
	switch {
	case !references.HasReferences(o.Input): // no request needed
	case access.HasCredentials(ctx, o.ObjectCluster.RESTConfig()):
		found, err = references.Read(ctx, o.ObjectCluster, o.Input)
	default:
		found = references.MissingReferences(o.ObjectCluster, o.Input)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	o.updateState(func(s *State) { s.references = found })
	return nil
}

// useDeclaredReferences replaces live references by those in Git, which are applied before the
// plan, and returns the facts.
func (o *ownerSession) useDeclaredReferences() (map[string]render.ReferenceFact, error) {
	o.updateState(func(s *State) { s.references = references.WithDeclared(s.references, o.Input) })
	return references.Facts(o.currentState().references)
}

// withReferenceCopies adds the bundle of a Shoot's reference copies to a rendering. A Garden needs
// no copies.
func (o *ownerSession) withReferenceCopies(result render.Result) (render.Result, error) {
	if o.Input.Owner.Kind != Shoot {
		return result, nil
	}
	copies, has, err := references.CopyBundle(o.Input.Owner, o.currentState().references)
	if has && err == nil {
		result.Bundles = append(slices.Clone(result.Bundles), copies)
	}
	return result, err
}

// checkReferences fails while references are missing: the references for API servers or, with rest,
// all others.
func (r *run) checkReferences(rest bool) error {
	found := slices.DeleteFunc(slices.Clone(r.owner.currentState().references), func(f references.LookupResult) bool { return f.IsDashboardOnly() != rest })
	if err := references.JoinProblems(found); err != nil {
		return fmt.Errorf("the references of %s: %w", r.owner, err)
	}
	return nil
}

// isReferenceCopy reports whether an object is a copy of a Shoot's reference. Its deletion loses
// nothing, because the original is in the garden, and no review shows it.
func isReferenceCopy(e apply.Entry) bool {
	return (e.Kind == "ConfigMap" || e.Kind == "Secret") && e.Group() == "" && e.Labels[references.LabelCopy] == "true"
}
