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

// readReferences keeps what the declaration refers to, as it is now. A garden that is not made yet
// has nothing.
func (r *Reconciler) readReferences(ctx context.Context, o *subject) error {
	var found []references.Found
	var err error
	switch {
	case !references.Any(o.Input): // nobody has to be asked
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

// expectReferences puts what Git declares in the place of what is there now, for a plan: that is
// applied first. It gives the facts.
func (o *subject) expectReferences() (map[string]render.ReferenceFact, error) {
	o.note(func(s *State) { s.referenced = references.Declared(s.referenced, o.Input) })
	return references.Facts(o.now().referenced)
}

// withCopies adds the bundle of what a Shoot refers to to those that are rendered. A Garden is
// where its references are.
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

// referencesThere fails as long as something is missing that API servers need, or all the rest.
func (r *run) referencesThere(rest bool) error {
	found := slices.DeleteFunc(slices.Clone(r.owner.now().referenced), func(f references.Found) bool { return f.ForDashboards() != rest })
	if err := references.Problems(found); err != nil {
		return fmt.Errorf("what %s refers to: %w", r.owner, err)
	}
	return nil
}

// isReferenceCopy tells a copy of what a Shoot refers to. The original is in the garden, so that
// nothing is lost with it, and no review of a revision shows it.
func isReferenceCopy(e apply.Entry) bool {
	return (e.Kind == "ConfigMap" || e.Kind == "Secret") && e.Group() == "" && e.Labels[references.LabelCopy] == "true"
}
