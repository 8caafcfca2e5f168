// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/preview"
	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

// Comparison is a diff of two revisions of one landscape.
type Comparison struct {
	Reader revisions.Reader
	Repo   *source.Repository
	// Dir is the folder of the landscape; From and To are revisions. An empty To is the work tree.
	Dir, From, To string
	// Now is the time for both revisions, so that it causes no difference.
	Now time.Time
}

// Revision is one side of a comparison.
type Revision struct {
	Landscape *landscapes.Landscape
	// violations are those of the landscape's files.
	violations []schemas.Violation
	// name is the abbreviated commit, or "work tree"; as is the revision as the user wrote it.
	name, givenName string
	// IsMissing reports whether the folder has no landscape.
	IsMissing bool
	// isInvalid reports whether it is invalid; the notes explain the effect on the diff.
	isInvalid bool
	notes     []string
}

// Plan returns the difference between the revisions.
func (c Comparison) Plan(ctx context.Context) (change.Plan, error) {
	new, err := c.readTarget(ctx)
	if err != nil {
		return change.Plan{}, err
	}
	old, err := c.ReadBase(ctx)
	if err != nil {
		return change.Plan{}, err
	}
	if old.IsMissing && new.IsMissing {
		return change.Plan{}, &landscapes.NoLandscapeError{Dir: c.Dir, Reason: fmt.Sprintf("neither revision %s nor %s has a file landscape.yaml there", c.From, revisions.RevisionText(c.To))}
	}
	if new.IsMissing {
		p := change.Plan{From: old.name, To: new.name, Notes: new.notes}
		now, err := c.renamedTargetHint()
		if now != "" {
			p.Notes = append(p.Notes, now)
		}
		return p, err
	}
	refused, err := c.checkTarget(ctx, old, new)
	invalid, refuses := errors.AsType[*revisions.NotValidError](err)
	if err != nil && !refuses {
		return change.Plan{}, err
	}
	// Report the errors of both revisions, even if one suffices to stop.
	found, baseErr := c.checkBase(ctx, &old)
	switch {
	case baseErr != nil:
		return change.Plan{}, baseErr
	case refuses && old.isInvalid:
		return change.Plan{}, commands.Finding{Err: &revisions.NotValidError{
			Message:  fmt.Sprintf("the landscape is valid neither in %s nor in revision %s: nothing was done", revisions.RevisionText(c.To), c.From),
			Findings: slices.Concat(invalid.Findings, found),
		}}
	case refuses:
		return change.Plan{}, err
	}
	return c.compare(old, new, refused)
}

// compare renders the affected owners and adds the declarations.
func (c Comparison) compare(old, new Revision, refused []schemas.Violation) (change.Plan, error) {
	reach, err := render.FindAffected(c.Reader.Catalogue, old.renderState(), new.renderState(), render.WithTime(c.Now), c.Reader.Charts(new.Landscape))
	if err != nil {
		return change.Plan{}, commands.Finding{Err: err}
	}
	sealed := landscape.UndecryptableSecrets(old.Landscape)
	maps.Copy(sealed, landscape.UndecryptableSecrets(new.Landscape))
	before, after, same := landscape.ChangedDeclarations(old.Landscape, new.Landscape, sealed)
	addEffectiveShoots(before, reach.Old)
	addEffectiveShoots(after, reach.New)
	renderedBefore, renderedAfter, wrong, err := renderAffected(reach)
	if err != nil {
		return change.Plan{}, commands.Finding{Err: err}
	}
	if wrong != nil {
		old.notes = append(old.notes, partialRenderNotes(c.From, wrong)...)
	}
	before, after = append(before, renderedBefore...), append(after, renderedAfter...)
	p := plan.CompareBundles(before, after)
	p.Unchanged += same
	p.Unaffected = plan.CountUnaffected(reach.Unaffected)
	settings := preview.SettingNotes(old.Landscape, new.Landscape)
	p.From, p.To, p.Notes, p.ChangedSettings = old.name, new.name, slices.Concat(settings, old.notes, new.notes), len(settings)
	p.Items = append(p.Items, landscape.PlannedOperations(old.Landscape, new.Landscape, c.Now)...)
	p.SortAndCount()
	preview.RemoveHeldChanges(&p, old.Landscape, new.Landscape, refused)
	gate, err := landscape.DeletionGate(new.Landscape, nil)
	if err != nil {
		return p, err
	}
	sums, err := c.objectTotals(p, gate, old, before, len(reach.Unaffected)+same > 0)
	if err != nil {
		return p, commands.Finding{Err: err}
	}
	ending := preview.RemoveConfirmedGarden(&p, old.Landscape, new.Landscape)
	gate.MarkHeld(&p, sums)
	p.Items = append(p.Items, ending...)
	p.SortAndCount()
	return p, nil
}

// renderAffected renders the affected owners before and after the change, as render.Reach does.
func renderAffected(reach render.Affected) (before, after []plan.ClusterBundle, wrongBefore, err error) {
	old, new, wrongBefore, err := reach.Render()
	return plan.AssignClusters(old, reach.Old.ClusterNamer()), plan.AssignClusters(new, reach.New.ClusterNamer()), wrongBefore, err
}

// MaxShownFindings limits the findings or errors of a landscape in a report; standard error has all
// of them.
const MaxShownFindings = 10

// partialRenderNotes returns notes about a base revision that renders only partially.
func partialRenderNotes(from string, wrong error) []string {
	lines := strings.Split(wrong.Error(), "\n")
	n := len(lines)
	if more := n - MaxShownFindings; more > 0 {
		lines = append(lines[:MaxShownFindings], fmt.Sprintf("and %d more errors", more))
	}
	return append([]string{fmt.Sprintf("revision %s cannot be applied completely (%s): the comparison uses the part that renders, and shows the rest as new. "+
		"If two bundles have the same object, the bundle that keeps it counts", from, printable.WithCount(n, "error"))}, lines...)
}

// addEffectiveShoots adds the effective spec of Shoots to the declarations.
func addEffectiveShoots(declared []plan.ClusterBundle, side render.StateInputs) {
	shoots := map[change.Ref]*unstructured.Unstructured{}
	for _, in := range slices.Concat(side.Inputs, side.EqualShoots) {
		if shoot := in.Objects["shoot"]; shoot != nil {
			o := &unstructured.Unstructured{Object: maps.Clone(shoot)}
			o.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
			shoots[change.RefOf(o)] = o
		}
	}
	for i := range declared {
		declared[i].Defaulted = shoots
	}
}

// objectTotals returns the numbers of objects by cluster. It renders unaffected owners only if the
// gate limits a share of all objects.
func (c Comparison) objectTotals(p change.Plan, gate permit.Gate, old Revision, before []plan.ClusterBundle, incomplete bool) (map[string]int, error) {
	if incomplete && areTotalsNeeded(p, gate) {
		all, err := c.allBundles(old)
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

// areTotalsNeeded reports whether the gate's verdict depends on the number of objects.
func areTotalsNeeded(p change.Plan, gate permit.Gate) bool {
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
		if n > permit.MinDeletionsForShare {
			return true
		}
	}
	return false
}

// allBundles returns all declarations and rendered objects of a revision.
func (c Comparison) allBundles(r Revision) ([]plan.ClusterBundle, error) {
	all, err := render.FindAffected(c.Reader.Catalogue, r.renderState(), render.State{}, render.WithTime(c.Now))
	if err != nil {
		return nil, err
	}
	// another note reports its faults where they count
	rendered, _, _, err := renderAffected(all)
	return append(landscape.DeclarationBundles(r.Landscape, nil), rendered...), err
}

// renderState returns a revision for rendering.
func (r Revision) renderState() render.State {
	if r.IsMissing {
		return render.State{}
	}
	s := render.State{Landscape: r.Landscape, IsPartial: r.isInvalid}
	if r.givenName != "" {
		s.Name = "revision " + r.givenName
	}
	return s
}

// readTarget reads the revision to compare with, or the work tree. Without a landscape there it is
// empty.
func (c Comparison) readTarget(ctx context.Context) (Revision, error) {
	r := Revision{name: "work tree", givenName: c.To}
	var err error
	if c.To == "" {
		r.Landscape, r.violations, err = c.Reader.Load(ctx, c.Dir)
	} else {
		var commit string
		r.Landscape, r.violations, commit, err = c.Reader.LoadAt(ctx, c.Repo, c.Dir, c.To)
		r.name = shortCommit(commit)
	}
	if revisions.IsMissing(err) {
		return missingRevision(r.name, revisions.RevisionText(c.To)+" has no landscape in this folder: such a revision is not applied, and the clusters stay unchanged"), nil
	}
	return r, err
}

// ReadBase reads the revision to compare from. Without a landscape there it is empty.
func (c Comparison) ReadBase(ctx context.Context) (Revision, error) {
	l, violations, commit, err := c.Reader.LoadAt(ctx, c.Repo, c.Dir, c.From)
	if revisions.IsMissing(err) {
		if former, ok, err := c.findRenamedBase(ctx); ok || err != nil {
			return former, err
		}
		return missingRevision(shortCommit(commit), fmt.Sprintf("revision %s has no landscape in this folder: everything is new", c.From)), nil
	}
	return Revision{Landscape: l, violations: violations, name: shortCommit(commit), givenName: c.From}, err
}

// missingRevision returns a revision without the landscape.
func missingRevision(name, note string) Revision {
	return Revision{Landscape: &landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}, name: name, IsMissing: true, notes: []string{note}}
}

// renamedFolders maps the folders of landscapes after the change to those before it.
func (c Comparison) renamedFolders() (map[string]string, error) {
	before, err := revisions.Landscapes(c.Repo, ".", c.From)
	if err != nil {
		return nil, err
	}
	after, err := revisions.Landscapes(c.Repo, ".", c.To)
	return revisions.RenamedFolders(before, after), err
}

// findRenamedBase finds the landscape in another folder of the base revision; ok reports whether it
// exists.
func (c Comparison) findRenamedBase(ctx context.Context) (r Revision, ok bool, err error) {
	all, err := c.renamedFolders()
	if err != nil {
		return r, false, err
	}
	folder, err := c.Repo.RelativePath(c.Dir)
	if err != nil {
		return r, false, err
	}
	former, ok := all[folder]
	if !ok {
		return r, false, nil
	}
	l, violations, commit, err := c.Reader.LoadAt(ctx, c.Repo, filepath.Join(c.Repo.Root, filepath.FromSlash(former)), c.From)
	if err != nil {
		return r, false, err
	}
	note := fmt.Sprintf("revision %s has this landscape in folder %s: the comparison uses that folder. An operator that syncs it stops until its Landscape names the new folder (spec.source.path)", c.From, former)
	return Revision{Landscape: l, violations: violations, name: shortCommit(commit), givenName: c.From, notes: []string{note}}, true, nil
}

// renamedTargetHint says in which folder a moved landscape is, or returns "".
func (c Comparison) renamedTargetHint() (string, error) {
	all, err := c.renamedFolders()
	if err != nil {
		return "", err
	}
	folder, err := c.Repo.RelativePath(c.Dir)
	for now, former := range all {
		if err == nil && former == folder {
			return fmt.Sprintf("%s has this landscape in folder %s: compare that one", revisions.RevisionText(c.To), now), nil
		}
	}
	return "", err
}

// checkTarget rejects an invalid target. Changes that the API rejects (immutable fields,
// unconfirmed removals) are reported, and the diff is still shown, with a note.
func (c Comparison) checkTarget(ctx context.Context, old, new Revision) ([]schemas.Violation, error) {
	if old.IsMissing {
		return nil, c.Reader.RequireValid(ctx, new.Landscape, new.violations, c.To)
	}
	// Objects that are valid as new ones are also valid as unchanged ones, so only changed objects
	// are checked as updates.
	alike := landscapes.UnchangedDeclarations(old.Landscape, new.Landscape)
	changed := old.Landscape.Filter(func(d *landscapes.Declaration) bool { return !alike[d.ObjectName()] })
	since := func(before *landscapes.Landscape) ([]schemas.Violation, error) {
		found, err := c.Reader.FindingsSince(ctx, new.Landscape, before, new.violations)
		return slices.DeleteFunc(found, preview.IsRemovalHeld), err // the plan has notes about them
	}
	found, err := since(changed)
	if err != nil {
		return nil, err
	}
	if !schemas.HasErrors(found) {
		return nil, c.Reader.RequireNoErrors(new.Landscape, found, c.To)
	}
	if found, err = since(old.Landscape); err != nil {
		return nil, err
	}
	if !schemas.HasErrors(found) {
		return nil, c.Reader.RequireNoErrors(new.Landscape, found, c.To)
	}
	if err := c.Reader.RequireValid(ctx, new.Landscape, new.violations, c.To); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(v schemas.Violation) bool { return v.Severity != schemas.SeverityError })
	return found, c.Reader.Report(found, c.To, revisions.SourceReader(new.Landscape))
}

// checkBase checks the base revision. An invalid one was never applied and the change probably
// repairs it, so it is compared as far as it renders. File names in the findings begin with the
// revision.
func (c Comparison) checkBase(ctx context.Context, r *Revision) ([]schemas.Violation, error) {
	if r.IsMissing {
		return nil, nil
	}
	all, err := c.Reader.Findings(ctx, r.Landscape, r.violations)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v schemas.Violation) bool {
		if v.Rule != ruleCatalogue || v.Field != fieldCatalogue {
			return false
		}
		was := strings.TrimPrefix(r.Landscape.Config.Spec.Catalogue.Version, "v")
		r.notes = append(r.notes, fmt.Sprintf("revision %s is written for catalogue %s, which this program does not have: both revisions are rendered with %s. Changes of the catalogue itself are not shown: "+
			"see pergola diff --live, git diff of golden files, and docs/reference/compatibility.md", c.From, was, components.Version))
		return true
	})
	if err := c.Reader.Report(all, c.From, revisions.SourceReader(r.Landscape)); err != nil {
		return nil, err
	}
	if n := countErrors(all); n > 0 {
		r.isInvalid = true
		r.notes = append(r.notes, fmt.Sprintf("revision %s is not valid (%s): the comparison uses the part that renders, and shows the rest as new", c.From, printable.WithCount(n, "error")))
	}
	for i := range all {
		all[i].File = c.From + ": " + all[i].File
	}
	return all, nil
}

// ruleCatalogue and fieldCatalogue identify the finding about a landscape for a different catalogue
// than the program's.
const ruleCatalogue, fieldCatalogue = "landscape/catalogue", "spec.catalogue.version"

func countErrors(all []schemas.Violation) int {
	n := 0
	for _, v := range all {
		if v.Severity == schemas.SeverityError {
			n++
		}
	}
	return n
}

func shortCommit(commit string) string {
	if len(commit) > 10 {
		return commit[:10]
	}
	return commit
}
