package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands/preview"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

// comparison is a diff of two revisions of one landscape.
type comparison struct {
	cmd           *cobra.Command
	repo          *source.Repository
	dir, from, to string
	// now is one time for both revisions, so that it makes no difference between them.
	now time.Time
}

// revision is one side of a comparison.
type revision struct {
	landscape *landscapes.Landscape
	// violations are those of its files.
	violations []schemas.Violation
	// name is the abbreviated commit, or "work tree"; as the one that was asked for.
	name, as string
	// missing says that there is no landscape in the folder.
	missing bool
	// broken says that it is not valid; the notes say what that means for the diff.
	broken bool
	notes  []string
}

func (c comparison) plan() (change.Plan, error) {
	new, err := c.target()
	if err != nil {
		return change.Plan{}, err
	}
	old, err := c.base()
	if err != nil {
		return change.Plan{}, err
	}
	if old.missing && new.missing {
		return change.Plan{}, &landscapes.NoLandscapeError{Dir: c.dir, Reason: fmt.Sprintf("neither revision %s nor %s has a file landscape.yaml there", c.from, shown(c.to))}
	}
	if new.missing {
		p := change.Plan{From: old.name, To: new.name, Notes: new.notes}
		now, err := c.afterwards()
		if now != "" {
			p.Notes = append(p.Notes, now)
		}
		return p, err
	}
	refused, err := c.checkTarget(old, new)
	invalid, refuses := errors.AsType[*notValidError](err)
	if err != nil && !refuses {
		return change.Plan{}, err
	}
	// Of both sides all is said at once, also where one is reason enough to stop.
	found, baseErr := c.checkBase(&old)
	switch {
	case baseErr != nil:
		return change.Plan{}, baseErr
	case refuses && old.broken:
		return change.Plan{}, finding{&notValidError{
			fmt.Sprintf("the landscape is valid neither in %s nor in revision %s: nothing was done", shown(c.to), c.from), slices.Concat(invalid.findings, found)}}
	case refuses:
		return change.Plan{}, err
	}
	return c.compare(old, new, refused)
}

// compare renders what the change can reach, and adds what is declared.
func (c comparison) compare(old, new revision, refused []schemas.Violation) (change.Plan, error) {
	reach, err := render.Reached(catalogue(c.cmd), old.state(), new.state(), render.At(c.now), withCharts(c.cmd, new.landscape))
	if err != nil {
		return change.Plan{}, finding{err}
	}
	sealed := landscape.Locked(old.landscape)
	maps.Copy(sealed, landscape.Locked(new.landscape))
	before, after, same := landscape.Differing(old.landscape, new.landscape, sealed)
	withShoots(before, reach.Old)
	withShoots(after, reach.New)
	renderedBefore, renderedAfter, wrong, err := sides(reach)
	if err != nil {
		return change.Plan{}, finding{err}
	}
	if wrong != nil {
		old.notes = append(old.notes, renderedInPart(c.from, wrong)...)
	}
	before, after = append(before, renderedBefore...), append(after, renderedAfter...)
	p := plan.Bundles(before, after)
	p.Unchanged += same
	p.Unreached = plan.UnreachedOf(reach.Same)
	settings := preview.SettingNotes(old.landscape, new.landscape)
	p.From, p.To, p.Notes, p.Settings = old.name, new.name, slices.Concat(settings, old.notes, new.notes), len(settings)
	p.Items = append(p.Items, landscape.PlannedOperations(old.landscape, new.landscape, c.now)...)
	p.Sort()
	preview.KeepBack(&p, old.landscape, new.landscape, refused)
	gate, err := gateOf(new.landscape, nil)
	if err != nil {
		return p, err
	}
	sums, err := c.totals(p, gate, old, before, len(reach.Same)+same > 0)
	if err != nil {
		return p, finding{err}
	}
	ending := preview.TakeEnding(&p, old.landscape, new.landscape)
	gate.Apply(&p, sums)
	p.Items = append(p.Items, ending...)
	p.Sort()
	return p, nil
}

// sides renders the owners that a change reaches, before and after it, as render.Reach does.
func sides(reach render.Reach) (before, after []plan.Place, wrongBefore, err error) {
	old, new, wrongBefore, err := reach.Render()
	return plan.Placed(old, reach.Old.ClusterOf()), plan.Placed(new, reach.New.ClusterOf()), wrongBefore, err
}

// renderedInPart are the notes about a revision to compare from that does not render whole.
func renderedInPart(from string, wrong error) []string {
	lines := strings.Split(wrong.Error(), "\n")
	n := len(lines)
	if more := n - shownFindings; more > 0 {
		lines = append(lines[:shownFindings], fmt.Sprintf("and %d more errors", more))
	}
	return append([]string{fmt.Sprintf("revision %s cannot be applied whole (%s): it is compared as far as it renders, the rest is shown as new; "+
		"of an object that two of its bundles have, the one that keeps it counts", from, counted(n, "error"))}, lines...)
}

// withShoots adds to what is declared how Shoots are in force, as far as they are declared or rendered in another way.
func withShoots(declared []plan.Place, side render.Side) {
	shoots := map[change.Ref]*unstructured.Unstructured{}
	for _, in := range slices.Concat(side.Inputs, side.Alike) {
		if shoot := in.Objects["shoot"]; shoot != nil {
			o := &unstructured.Unstructured{Object: maps.Clone(shoot)}
			o.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
			shoots[change.RefOf(o)] = o
		}
	}
	for i := range declared {
		declared[i].InForce = shoots
	}
}

// totals are the numbers of objects by cluster. All are counted only where the gate wants to know a share of them: what the
// change does not reach has to be rendered for that.
func (c comparison) totals(p change.Plan, gate permit.Gate, old revision, before []plan.Place, incomplete bool) (map[string]int, error) {
	if incomplete && wantsTotals(p, gate) {
		all, err := c.everything(old)
		if err != nil {
			return nil, err
		}
		before = all
	}
	out := map[string]int{}
	for _, place := range before {
		out[place.Cluster] += len(place.Bundle.Objects)
	}
	return out, nil
}

// wantsTotals tells whether the verdict of a gate depends on how many objects there are.
func wantsTotals(p change.Plan, gate permit.Gate) bool {
	if gate.MaxShare == nil || *gate.MaxShare == 0 {
		return false
	}
	gone := map[string]int{}
	for _, item := range p.Items {
		if item.Action == change.Delete || item.Action == change.Recreate {
			gone[item.Cluster]++
		}
	}
	for _, n := range gone {
		if n > permit.SmallSet {
			return true
		}
	}
	return false
}

// everything is what a revision declares and renders.
func (c comparison) everything(r revision) ([]plan.Place, error) {
	all, err := render.Reached(catalogue(c.cmd), r.state(), render.State{}, render.At(c.now))
	if err != nil {
		return nil, err
	}
	rendered, _, _, err := sides(all) // what is wrong with it has a note already, where it counts
	return append(landscape.Declared(r.landscape, nil), rendered...), err
}

// state is a revision for rendering.
func (r revision) state() render.State {
	if r.missing {
		return render.State{}
	}
	s := render.State{Landscape: r.landscape, Partial: r.broken}
	if r.as != "" {
		s.Name = "revision " + r.as
	}
	return s
}

// target is what a diff leads to: the work tree, or a revision. In one without the landscape nothing is left of it.
func (c comparison) target() (revision, error) {
	r := revision{name: "work tree", as: c.to}
	var err error
	if c.to == "" {
		r.landscape, r.violations, err = load(c.cmd, c.dir)
	} else {
		var commit string
		r.landscape, r.violations, commit, err = loadAt(c.cmd, c.repo, c.dir, c.to)
		r.name = short(commit)
	}
	if isMissing(err) {
		return missing(r.name, shown(c.to)+" has no landscape in this folder: such a revision is not applied, and all stays on the clusters as it is"), nil
	}
	return r, err
}

// base reads what a diff starts from. In one that does not have the landscape there is nothing yet.
func (c comparison) base() (revision, error) {
	l, violations, commit, err := loadAt(c.cmd, c.repo, c.dir, c.from)
	if isMissing(err) {
		if former, ok, err := c.formerly(); ok || err != nil {
			return former, err
		}
		return missing(short(commit), fmt.Sprintf("revision %s has no landscape in this folder: everything is new", c.from)), nil
	}
	return revision{landscape: l, violations: violations, name: short(commit), as: c.from}, err
}

// missing is a revision that does not have the landscape.
func missing(name, note string) revision {
	return revision{landscape: &landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}, name: name, missing: true, notes: []string{note}}
}

func isMissing(err error) bool {
	var missing *landscapes.NoLandscapeError
	return errors.As(err, &missing)
}

// checkTarget refuses a target that is not valid. What the API refuses of the change itself (fields that cannot change, removals
// without their confirmation) is reported, and the diff shown all the same, with a note.
func (c comparison) checkTarget(old, new revision) ([]schemas.Violation, error) {
	if old.missing {
		return nil, valid(c.cmd, new.landscape, new.violations, c.to)
	}
	// What is valid as if it were new is valid all the more as what it was before: only what changed is looked at as a change.
	alike := landscapes.Alike(old.landscape, new.landscape)
	changed := old.landscape.Only(func(d *landscapes.Declaration) bool { return !alike[d.ObjectName()] })
	since := func(before *landscapes.Landscape) ([]schemas.Violation, error) {
		found, err := findingsSince(c.cmd, new.landscape, before, new.violations)
		return slices.DeleteFunc(found, preview.IsRemovalHeld), err // the notes of the plan say it
	}
	found, err := since(changed)
	if err != nil {
		return nil, err
	}
	if !schemas.HasErrors(found) {
		return nil, accept(c.cmd, new.landscape, found, c.to)
	}
	if found, err = since(old.landscape); err != nil {
		return nil, err
	}
	if !schemas.HasErrors(found) {
		return nil, accept(c.cmd, new.landscape, found, c.to)
	}
	if err := valid(c.cmd, new.landscape, new.violations, c.to); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(v schemas.Violation) bool { return v.Severity != schemas.SeverityError })
	return found, reportFindings(c.cmd, found, c.to, sourcesOf(new.landscape))
}

// checkBase looks whether the revision a diff starts from is valid. One that is not was never applied, and what repairs it is most
// likely under way: it is compared as far as it renders. The findings are given with the revision before the names of files.
func (c comparison) checkBase(r *revision) ([]schemas.Violation, error) {
	if r.missing {
		return nil, nil
	}
	all, err := findings(c.cmd, r.landscape, r.violations)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v schemas.Violation) bool {
		if v.Rule != ruleCatalogue || v.Field != fieldCatalogue {
			return false
		}
		was := strings.TrimPrefix(r.landscape.Config.Spec.Catalogue.Version, "v")
		r.notes = append(r.notes, fmt.Sprintf("revision %s is written for catalogue %s, which this program does not have: both revisions are rendered with %s, so that what the catalogue itself changes is not shown here: "+
			"pergola diff --live shows it, and so does git diff of golden files; docs/compatibility.md says what each version changes", c.from, was, components.Version))
		return true
	})
	if err := reportFindings(c.cmd, all, c.from, sourcesOf(r.landscape)); err != nil {
		return nil, err
	}
	if n := countErrors(all); n > 0 {
		r.broken = true
		r.notes = append(r.notes, fmt.Sprintf("revision %s is not valid (%d %s): it is compared as far as it renders, the rest is shown as new", c.from, n, plural(n, "error", "errors")))
	}
	for i := range all {
		all[i].File = c.from + ": " + all[i].File
	}
	return all, nil
}

// The finding about a landscape that is written for another catalogue than that of this program.
const ruleCatalogue, fieldCatalogue = "landscape/catalogue", "spec.catalogue.version"

// shown names what a diff leads to.
func shown(to string) string {
	if to == "" {
		return "the work tree"
	}
	return "revision " + to
}

func countErrors(all []schemas.Violation) int {
	n := 0
	for _, v := range all {
		if v.Severity == schemas.SeverityError {
			n++
		}
	}
	return n
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func short(commit string) string {
	if len(commit) > 10 {
		return commit[:10]
	}
	return commit
}
