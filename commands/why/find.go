package why

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/render"
)

// maxShoots limits the Shoots that are rendered to find an object whose namespace does not identify
// its owner.
const maxShoots = 20

// find returns the objects that match best. It renders as few owners as possible.
func (e *explainer) find() ([]match, error) {
	search := search{question: e.question, cluster: e.opts.Cluster}
	if e.opts.Owner == "" {
		e.searchDeclared(&search)
		if search.best == fitsWhole && isGardener(search.found[0].object.GroupVersionKind().Group) {
			return search.found, nil // no component renders such objects
		}
	}
	problem := e.searchRendered(&search)
	if len(search.found) == 0 {
		if problem != nil {
			return nil, fmt.Errorf("render the landscape: %w", problem)
		}
		where := "the landscape"
		if e.opts.Cluster != "" {
			where = "cluster " + e.opts.Cluster + " of the landscape"
		}
		if e.opts.Owner != "" {
			where = e.opts.Owner + " in " + where
		}
		return nil, search.question.unknown(where, search.seen)
	}
	return search.found, nil
}

// isGardener reports whether landscapes declare the kinds of a group.
func isGardener(group string) bool {
	return strings.HasSuffix(group, "gardener.cloud") && group != "druid.gardener.cloud" && group != "resources.gardener.cloud" && group != "extensions.gardener.cloud"
}

// search collects the best matches.
type search struct {
	question question
	cluster  string
	best     int
	found    []match
	// seen are all objects, for suggestions.
	seen []change.Ref
}

func (s *search) look(ref change.Ref, m func() match) {
	s.seen = append(s.seen, ref)
	fit, path := s.question.fit(ref)
	if fit == fitsNot || fit < s.best {
		return
	}
	if fit > s.best {
		s.best, s.found = fit, nil
	}
	one := m()
	one.fit, one.path = fit, path
	s.found = append(s.found, one)
}

func (e *explainer) searchDeclared(s *search) {
	var clusters map[change.Ref]string
	for i := range e.landscape.Declarations {
		d := &e.landscape.Declarations[i]
		gvk := d.GroupVersionKind()
		if gvk.Group == landscapev1alpha1.SchemeGroupVersion.Group {
			continue
		}
		ref := change.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: d.Namespace(), Name: d.Name()}
		if fit, _ := s.question.fit(ref); fit != fitsNot && clusters == nil {
			clusters = map[change.Ref]string{}
			for _, place := range landscape.DeclarationBundles(e.landscape, nil) {
				for _, o := range place.Bundle.Objects {
					clusters[change.RefOf(o.Unstructured)] = place.Cluster
				}
			}
		}
		if s.cluster != "" && clusters != nil && clusters[ref] != s.cluster {
			continue
		}
		s.look(ref, func() match { return match{cluster: clusters[ref], object: d.Object(), declaration: d} })
	}
}

// searchRendered renders owners until one has the object, the most likely by its namespace first.
// The error is about owners that do not render.
func (e *explainer) searchRendered(s *search) error {
	var err error
	if e.render, err = render.LandscapeOptions(e.opts.Catalogue, e.landscape, render.At(e.opts.Now)); err != nil {
		return err
	}
	e.render = e.render.WithCache()
	if e.inputs == nil {
		if e.inputs, err = render.Owners(e.landscape, render.At(e.opts.Now)); err != nil {
			return err
		}
	}
	seeds, err := render.SeedsOfShoots(e.landscape)
	if err != nil {
		return err
	}
	clusterOf := render.ClusterOf(seeds)
	var first, others []int
	for i := range e.inputs {
		switch owner := e.inputs[i].Owner; {
		case e.opts.Owner != "" && !owner.HasName(e.opts.Owner), s.cluster != "" && !reaches(owner, s.cluster, seeds):
		case e.opts.Owner != "", owner.Kind != render.ClusterShoot, strings.HasPrefix(s.question.rest, owner.ControlPlaneNamespace):
			first = append(first, i)
		default:
			others = append(others, i)
		}
	}
	if only := e.likely(); len(only) > 0 {
		options := e.render
		options.Only = only
		quick := search{question: s.question, cluster: s.cluster}
		if err := e.renderInto(&quick, options, first, clusterOf); err == nil && quick.best == fitsWhole {
			*s = quick
			return nil
		}
	}
	problem := e.renderInto(s, e.render, first, clusterOf)
	if s.best == fitsNot && len(others) > 0 {
		if len(others) > maxShoots {
			return errors.Join(problem, fmt.Errorf("neither the Garden nor a Seed has it, and there are %d Shoots: name the Shoot by --owner \"shoot NAMESPACE/NAME\"", len(others)))
		}
		problem = errors.Join(problem, e.renderInto(s, e.render, others, clusterOf))
	}
	return problem
}

// likely returns the components to render first for a namespaced object: those with a similar name,
// and those whose overlay can add objects. TestLikely checks that no other component has such
// objects.
func (e *explainer) likely() []string {
	_, name, ok := strings.Cut(e.question.rest, "/")
	if !ok {
		return nil
	}
	start, _, _ := strings.Cut(name, ".")
	var out []string
	for _, kind := range []string{"garden", "seed", "shoot"} {
		// rendering reports the error
		entries, _ := fs.ReadDir(e.opts.Catalogue, kind)
		for _, entry := range entries {
			if strings.Contains(name, entry.Name()) || strings.Contains(entry.Name(), start) {
				out = append(out, kind+"/"+entry.Name())
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, overlay := range e.render.Overlays {
		out = append(out, overlay.Component)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (e *explainer) renderInto(s *search, options render.Options, inputs []int, clusterOf func(render.Bundle) string) error {
	var problems []error
	for _, i := range inputs {
		result, err := render.Render(e.inputs[i], options)
		if err != nil {
			problems = append(problems, err)
		}
		for _, b := range result.Bundles {
			cluster := clusterOf(b)
			if s.cluster != "" && cluster != s.cluster && (b.Cluster != render.ClusterShoot || b.Cluster != s.cluster) {
				continue
			}
			for _, o := range b.Objects {
				s.look(change.RefOf(o.Unstructured), func() match {
					return match{cluster: cluster, object: o.Unstructured, bundle: b, origin: o.Origin, input: &e.inputs[i]}
				})
			}
		}
	}
	return errors.Join(problems...)
}

// reaches reports whether an owner has objects on a cluster.
func reaches(o render.Owner, cluster string, seeds map[string]string) bool {
	switch o.Kind {
	case "garden":
		return cluster == render.ClusterRuntime || cluster == render.ClusterVirtual
	case "seed":
		return cluster == o.Name || cluster == render.ClusterVirtual
	}
	return cluster == seeds[o.Namespace+"/"+o.Name] || cluster == render.ClusterShoot || cluster == render.ShootCluster(o) || cluster == render.ClusterVirtual
}
