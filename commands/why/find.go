// SPDX-License-Identifier: Apache-2.0

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

// findObjects returns the objects that match best. It renders as few owners as possible.
func (e *explainer) findObjects() ([]objectMatch, error) {
	search := objectSearch{question: e.question, cluster: e.opts.Cluster}
	if e.opts.Owner == "" {
		e.searchDeclared(&search)
		if search.bestFit == matchWhole && isGardener(search.found[0].object.GroupVersionKind().Group) {
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
		return nil, search.question.unknownError(where, search.candidates)
	}
	return search.found, nil
}

// isGardener reports whether landscapes declare the kinds of a group.
func isGardener(group string) bool {
	return strings.HasSuffix(group, "gardener.cloud") && group != "druid.gardener.cloud" && group != "resources.gardener.cloud" && group != "extensions.gardener.cloud"
}

// objectSearch collects the best matches.
type objectSearch struct {
	question question
	cluster  string
	bestFit  int
	found    []objectMatch
	// candidates are all objects, for suggestions.
	candidates []change.Ref
}

func (s *objectSearch) add(ref change.Ref, m func() objectMatch) {
	s.candidates = append(s.candidates, ref)
	fit, path := s.question.matchName(ref)
	if fit == noMatch || fit < s.bestFit {
		return
	}
	if fit > s.bestFit {
		s.bestFit, s.found = fit, nil
	}
	one := m()
	one.nameFit, one.path = fit, path
	s.found = append(s.found, one)
}

func (e *explainer) searchDeclared(s *objectSearch) {
	var clusters map[change.Ref]string
	for i := range e.landscape.Declarations {
		d := &e.landscape.Declarations[i]
		gvk := d.GroupVersionKind()
		if gvk.Group == landscapev1alpha1.SchemeGroupVersion.Group {
			continue
		}
		ref := change.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: d.Namespace(), Name: d.Name()}
		if fit, _ := s.question.matchName(ref); fit != noMatch && clusters == nil {
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
		s.add(ref, func() objectMatch { return objectMatch{cluster: clusters[ref], object: d.Object(), declaration: d} })
	}
}

// searchRendered renders owners until one has the object, the most likely by its namespace first.
// The error is about owners that do not render.
func (e *explainer) searchRendered(s *objectSearch) error {
	var err error
	if e.renderOptions, err = render.LandscapeOptions(e.opts.Catalogue, e.landscape, render.WithTime(e.opts.Now)); err != nil {
		return err
	}
	e.renderOptions = e.renderOptions.WithCache()
	if e.inputs == nil {
		if e.inputs, err = render.Owners(e.landscape, render.WithTime(e.opts.Now)); err != nil {
			return err
		}
	}
	seeds, err := render.SeedsOfShoots(e.landscape)
	if err != nil {
		return err
	}
	clusterOf := render.ClusterNamer(seeds)
	var first, others []int
	for i := range e.inputs {
		switch owner := e.inputs[i].Owner; {
		case e.opts.Owner != "" && !owner.HasName(e.opts.Owner), s.cluster != "" && !hasObjectsOn(owner, s.cluster, seeds):
		case e.opts.Owner != "", owner.Kind != render.ClusterShoot, strings.HasPrefix(s.question.nameAndPath, owner.ControlPlaneNamespace):
			first = append(first, i)
		default:
			others = append(others, i)
		}
	}
	if only := e.likelyComponents(); len(only) > 0 {
		options := e.renderOptions
		options.OnlyComponents = only
		quick := objectSearch{question: s.question, cluster: s.cluster}
		if err := e.renderInto(&quick, options, first, clusterOf); err == nil && quick.bestFit == matchWhole {
			*s = quick
			return nil
		}
	}
	problem := e.renderInto(s, e.renderOptions, first, clusterOf)
	if s.bestFit == noMatch && len(others) > 0 {
		if len(others) > maxShoots {
			return errors.Join(problem, fmt.Errorf("neither the Garden nor a Seed has it, and the landscape has %d Shoots: name the Shoot with --owner \"shoot NAMESPACE/NAME\"", len(others)))
		}
		problem = errors.Join(problem, e.renderInto(s, e.renderOptions, others, clusterOf))
	}
	return problem
}

// likelyComponents returns the components to render first for a namespaced object: those with a
// similar name, and those whose overlay can add objects. TestLikelyComponents checks that no other
// component has such objects.
func (e *explainer) likelyComponents() []string {
	_, name, ok := strings.Cut(e.question.nameAndPath, "/")
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
	for _, overlay := range e.renderOptions.Overlays {
		out = append(out, overlay.Component)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (e *explainer) renderInto(s *objectSearch, options render.Options, inputs []int, clusterOf func(render.Bundle) string) error {
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
				s.add(change.RefOf(o.Unstructured), func() objectMatch {
					return objectMatch{cluster: cluster, object: o.Unstructured, bundle: b, origin: o.Origin, input: &e.inputs[i]}
				})
			}
		}
	}
	return errors.Join(problems...)
}

// hasObjectsOn reports whether an owner has objects on a cluster.
func hasObjectsOn(o render.Owner, cluster string, seeds map[string]string) bool {
	switch o.Kind {
	case "garden":
		return cluster == render.ClusterRuntime || cluster == render.ClusterVirtual
	case "seed":
		return cluster == o.Name || cluster == render.ClusterVirtual
	}
	return cluster == seeds[o.Namespace+"/"+o.Name] || cluster == render.ClusterShoot || cluster == render.ShootCluster(o) || cluster == render.ClusterVirtual
}
