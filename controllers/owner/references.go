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
func (r *Reconciler) readReferences(ctx context.Context, o *subject) error {
	var found []references.Found
	var err error
	switch {
	case !references.Any(o.Input): // no request needed
	case access.IsThere(ctx, o.Home.RESTConfig()):
		found, err = references.Read(ctx, o.Home, o.Input)
	default:
		found = references.Missing(o.Home, o.Input)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	o.note(func(s *State) { s.referenced = found })
	return nil
}

// expectReferences replaces live references by those in Git, which are applied before the plan, and
// returns the facts.
func (o *subject) expectReferences() (map[string]render.ReferenceFact, error) {
	o.note(func(s *State) { s.referenced = references.Declared(s.referenced, o.Input) })
	return references.Facts(o.now().referenced)
}

// withCopies adds the bundle of a Shoot's reference copies to a rendering. A Garden needs no
// copies.
func (o *subject) withCopies(result render.Result) (render.Result, error) {
	if o.Input.Owner.Kind != Shoot {
		return result, nil
	}
	copies, has, err := references.Copies(o.Input.Owner, o.now().referenced)
	if has && err == nil {
		result.Bundles = append(slices.Clone(result.Bundles), copies)
	}
	return result, err
}

// referencesThere fails while references are missing: those for API servers or, with rest, all
// others.
func (r *run) referencesThere(rest bool) error {
	found := slices.DeleteFunc(slices.Clone(r.owner.now().referenced), func(f references.Found) bool { return f.ForDashboards() != rest })
	if err := references.Problems(found); err != nil {
		return fmt.Errorf("what %s refers to: %w", r.owner, err)
	}
	return nil
}

// isReferenceCopy reports whether an object is a copy of a Shoot's reference. Its deletion loses
// nothing, because the original is in the garden, and no review shows it.
func isReferenceCopy(e apply.Entry) bool {
	return (e.Kind == "ConfigMap" || e.Kind == "Secret") && e.Group() == "" && e.Labels[references.LabelCopy] == "true"
}
