package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

func newDiff() *cobra.Command {
	var output, from, to string
	var live bool
	var access accessFlags
	cmd := &cobra.Command{
		Use:   "diff LANDSCAPE",
		Short: "Show what a change does to every cluster",
		Long: `Renders two Git revisions of a landscape and compares the results, and what they declare; without --to it takes
the work tree. With --live it compares with the clusters instead, by server-side dry run. Values of
Secrets are never shown. A --from revision that is not valid is compared as far as it renders; in a revision without the
landscape there is nothing of it. With --to the folder is taken from the repository alone, which may be bare.
Both revisions are rendered with the catalogue of this program (or --catalogue): what another catalogue changes is in the
recorded render (pergola golden), which is why a new catalogue is a commit of its own.

Encrypted Secrets that no key opens (SOPS_AGE_KEY_FILE, SOPS_AGE_KEY) are compared as they are encrypted; with --live
they are left out, which a note says.

Exit code 1 says that there are differences, that something was left out, or that a revision is not valid.`,
		Example: `  pergola diff landscapes/local
  pergola diff landscapes/local --from main --to HEAD -o markdown
  pergola diff landscapes/local --live`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var p plan.Plan
			var err error
			if live {
				if cmd.Flags().Changed("from") || cmd.Flags().Changed("to") {
					return errors.New("--live compares with the clusters: it goes without --from and --to")
				}
				p, err = liveDiff(cmd, args[0], access)
			} else {
				p, err = gitDiff(cmd, args[0], from, to)
			}
			if err != nil && p.Empty() {
				return err
			}
			if perr := plan.Print(cmd.OutOrStdout(), p, output, colored(cmd)); perr != nil {
				return perr
			}
			if err != nil {
				return err
			}
			if !p.Empty() || len(p.Notes) > 0 {
				return errFinding
			}
			return nil
		},
	}
	outputFlag(cmd, &output, plan.FormatText, plan.FormatMarkdown, plan.FormatJSON)
	cmd.Flags().StringVar(&from, "from", "HEAD", "revision to compare from: branch, tag or commit")
	cmd.Flags().StringVar(&to, "to", "", "revision to compare to (default: the work tree)")
	cmd.Flags().BoolVar(&live, "live", false, "compare with the clusters by server-side dry run")
	access.add(cmd)
	return cmd
}

func gitDiff(cmd *cobra.Command, dir, from, to string) (plan.Plan, error) {
	repo, err := source.Open(dir)
	if err != nil {
		return plan.Plan{}, err
	}
	new, err := target(cmd, repo, dir, to)
	if err != nil {
		return plan.Plan{}, err
	}
	old, err := base(cmd, repo, dir, from)
	if err != nil {
		return plan.Plan{}, err
	}
	if old.missing && new.missing {
		return plan.Plan{}, fmt.Errorf("%s is no landscape: neither revision %s nor %s has a file landscape.yaml there", dir, from, shown(to))
	}
	refused, err := refusedChanges(cmd, old, new, to)
	if err != nil {
		return plan.Plan{}, err
	}
	sealed := landscape.Locked(old.landscape)
	maps.Copy(sealed, landscape.Locked(new.landscape))
	before, err := old.places(catalogue(cmd), sealed)
	if err != nil {
		return plan.Plan{}, finding{fmt.Errorf("revision %s: %w", from, err)}
	}
	after, err := new.places(catalogue(cmd), sealed)
	if err != nil {
		return plan.Plan{}, finding{err}
	}
	p := plan.Bundles(before, after)
	p.From, p.To, p.Notes = old.name, new.name, slices.Concat(old.notes, new.notes, refused)
	gate, err := gateOf(new.landscape, nil)
	if err != nil {
		return p, err
	}
	gate.Apply(&p, totals(before))
	return p, nil
}

// refusedChanges reports what the API refuses of the change itself: fields that cannot change, removals without their
// confirmation. The diff is shown all the same, with a note.
func refusedChanges(cmd *cobra.Command, old, new revision, to string) ([]string, error) {
	if old.missing || new.missing {
		return nil, nil
	}
	found, err := new.landscape.ValidateChange(cmd.Context(), old.landscape, schemas.Options{})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(v schemas.Violation) bool { return v.Severity != schemas.SeverityError })
	if len(found) == 0 {
		return nil, nil
	}
	for i := range found {
		found[i].File = filepath.Join(new.landscape.Dir, found[i].File)
	}
	if err := reportFindings(cmd, found, to, sourcesOf(new.landscape)); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%s of this change will be refused: pergola validate --from shows them", counted(len(found), "part"))}, nil
}

// target is what a diff leads to: the work tree, or a revision. It has to be valid. In one without the landscape nothing is
// left of it.
func target(cmd *cobra.Command, repo *source.Repository, dir, to string) (revision, error) {
	var l *landscapes.Landscape
	var violations []schemas.Violation
	var err error
	name := "work tree"
	if to == "" {
		l, violations, err = load(cmd, dir)
	} else {
		var commit string
		l, violations, commit, err = loadAt(cmd, repo, dir, to)
		name = short(commit)
	}
	if isMissing(err) {
		return without(name, shown(to)+" has no landscape in this folder: everything is deleted"), nil
	}
	if err != nil {
		return revision{}, err
	}
	return revision{landscape: l, name: name}, valid(cmd, l, violations, to)
}

// revision is one side of a diff.
type revision struct {
	landscape *landscapes.Landscape
	// name is the abbreviated commit, or "work tree".
	name string
	// missing says that there is no landscape in the folder.
	missing bool
	// broken says that it is not valid; the notes say what that means for the diff.
	broken bool
	notes  []string
}

// without is a revision that does not have the landscape.
func without(name, note string) revision {
	return revision{landscape: &landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}, name: name, missing: true, notes: []string{note}}
}

// shown names what a diff leads to.
func shown(to string) string {
	if to == "" {
		return "the work tree"
	}
	return "revision " + to
}

func isMissing(err error) bool {
	var missing *landscapes.NoLandscapeError
	return errors.As(err, &missing)
}

// base reads what a diff starts from. A revision that is not valid was never applied, and what repairs it is most likely under
// way: it is compared as far as it renders. In one that does not have the landscape there is nothing yet.
func base(cmd *cobra.Command, repo *source.Repository, dir, from string) (revision, error) {
	l, violations, commit, err := loadAt(cmd, repo, dir, from)
	if isMissing(err) {
		return without(short(commit), fmt.Sprintf("revision %s has no landscape in this folder: everything is new", from)), nil
	}
	if err != nil {
		return revision{}, err
	}
	all, err := findings(cmd, l, violations)
	if err != nil {
		return revision{}, err
	}
	if err := reportFindings(cmd, all, from, sourcesOf(l)); err != nil {
		return revision{}, err
	}
	r := revision{landscape: l, name: short(commit)}
	if n := countErrors(all); n > 0 {
		r.broken = true
		r.notes = append(r.notes, fmt.Sprintf("revision %s is not valid (%d %s): it is compared as far as it renders, the rest is shown as new", from, n, plural(n, "error", "errors")))
	}
	return r, nil
}

func (r revision) places(catalogue fs.FS, sealed map[apply.Ref]bool) ([]plan.Place, error) {
	if r.missing {
		return nil, nil
	}
	if !r.broken {
		return places(r.landscape, catalogue, sealed)
	}
	seeds, err := render.SeedsOfShoots(r.landscape)
	if err != nil {
		seeds = nil // those of Shoots that cannot be read
	}
	return placed(landscape.Declared(r.landscape, sealed), render.Partial(r.landscape, catalogue, render.At(time.Now())), render.ClusterOf(seeds)), nil
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

// places gives what a landscape declares and renders, and says where each bundle goes. Secrets in sealed keep
// their encrypted form.
func places(l *landscapes.Landscape, catalogue fs.FS, sealed map[apply.Ref]bool) ([]plan.Place, error) {
	bundles, clusterOf, err := renderAll(l, catalogue)
	if err != nil {
		return nil, err
	}
	return placed(landscape.Declared(l, sealed), bundles, clusterOf), nil
}

func placed(out []plan.Place, bundles []render.Bundle, clusterOf func(render.Bundle) string) []plan.Place {
	for _, b := range bundles {
		out = append(out, plan.Place{Cluster: clusterOf(b), Bundle: b})
	}
	return out
}

func totals(places []plan.Place) map[string]int {
	out := map[string]int{}
	for _, p := range places {
		out[p.Cluster] += len(p.Bundle.Objects)
	}
	return out
}

func liveDiff(cmd *cobra.Command, dir string, access accessFlags) (plan.Plan, error) {
	l, err := loadValid(cmd, dir)
	if err != nil {
		return plan.Plan{}, err
	}
	c, err := newConverger(cmd, l, access, nil, nil)
	if err != nil {
		return plan.Plan{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), access.timeout)
	defer cancel()
	p, err := c.Plan(ctx)
	if err != nil {
		return p, finding{err}
	}
	return p, nil
}
