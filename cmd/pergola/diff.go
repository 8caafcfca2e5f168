// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/comparison"
	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

func newDiff() *cobra.Command {
	d := &diffCommand{}
	cmd := &cobra.Command{
		Use: "diff LANDSCAPE…",
		// The names of similar commands in other tools.
		SuggestFor: []string{"plan", "preview"},
		Short:      "Show what a change does to every cluster",
		Long: `Renders two Git revisions of a landscape, and compares the results and the declarations. Without
--to, it compares with the work tree. With --live, it compares with the clusters instead, by
server-side dry run. Values of Secrets are never shown.

Only affected owners are rendered. A Garden, Seed or Shoot is not affected if its declaration and
its inputs (referenced objects, overlays, images, facts) are the same.

Several landscapes give one report. --all compares every landscape of the repository, or of the
given folder, and shows those that change. Folders that other landscapes build on are shown as part
of these landscapes.

--from main... (with three dots, as in git diff) begins at the common ancestor of the revision and
main, as a pull request does. --merge-base does the same. An invalid --from revision is compared as
far as it renders. If a revision does not contain the landscape, it is treated as empty. With --to,
the folder is read only from the repository, which may be bare.

Both revisions are rendered with the catalogue of this program (or --catalogue). The recorded render
(pergola golden) shows the changes of another catalogue: commit a new catalogue separately.

Encrypted Secrets that no key opens (SOPS_AGE_KEY_FILE, SOPS_AGE_KEY) are compared in encrypted
form. With --live, they are left out, and a note says so.

Exit code 1: there are differences, something was left out, or a revision is not valid.`,
		Example: `  pergola diff landscapes/local
  pergola diff landscapes/local --from main --to HEAD -o markdown
  pergola diff --all --from origin/main... --to HEAD -o html --output-file diff.html
  pergola diff landscapes/local --live`,
		Args: func(cmd *cobra.Command, args []string) error {
			if d.isAll {
				return cobra.MaximumNArgs(1)(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.isLive {
				tuneGCForSharedHost()
			} else {
				tuneGCForCommand()
			}
			d.cmd, d.now = cmd, time.Now()
			return d.run(args)
		},
	}
	addOutputFlag(cmd, &d.output, plan.FormatText, plan.FormatMarkdown, plan.FormatJSON, plan.FormatHTML)
	cmd.Flags().StringVar(&d.file, "output-file", "", "write the report to this file instead of printing it")
	cmd.Flags().StringVar(&d.from, "from", "HEAD", "revision to compare from, in the syntax of git rev-parse (branch, tag, commit, HEAD~2, main@{1}); REV... is its common ancestor with --to")
	cmd.Flags().StringVar(&d.to, "to", "", "revision to compare to (default: the work tree)")
	cmd.Flags().BoolVar(&d.mergeBase, "merge-base", false, "compare from the common ancestor of --from and --to")
	cmd.Flags().BoolVar(&d.isAll, "all", false, "compare all landscapes of the repository, or of the given folder, and show those that change")
	cmd.Flags().BoolVar(&d.isLive, "live", false, "compare with the clusters by server-side dry run")
	d.access.register(cmd)
	return cmd
}

// diffCommand is one run of `pergola diff`.
type diffCommand struct {
	cmd                      *cobra.Command
	now                      time.Time
	output, file             string
	from, to                 string
	mergeBase, isAll, isLive bool
	access                   accessFlags
}

func (d *diffCommand) run(args []string) error {
	if d.isLive && (d.isAll || d.mergeBase || d.cmd.Flags().Changed("from") || d.cmd.Flags().Changed("to")) {
		return errors.New("--live compares with the clusters: omit --from, --to, --merge-base and --all")
	}
	if !d.isLive && d.cmd.Flags().Changed("kubeconfig") {
		return errors.New("--kubeconfig is for --live: without --live, no cluster is read")
	}
	dirs, err := d.folders(args)
	if err != nil {
		return err
	}
	var report plan.Report
	var problems []error
	noted := false
	names := revisions.ReportNames(dirs, d.landscapeName)
	for i, dir := range dirs {
		p, err := d.plan(dir)
		if err != nil && len(dirs) > 1 {
			err = fmt.Errorf("%s: %w", dir, err)
		}
		problems = append(problems, err)
		if err != nil && p.IsEmpty() {
			if len(dirs) == 1 && !d.isStandalone() {
				return err
			}
			p.HasNoBaseline = true
			p.Notes = append(append(p.Notes, "it could not be compared: "+firstLine(err)), firstErrorLines(err)...)
		}
		if d.to != "" && p.From == p.To {
			fmt.Fprintf(d.cmd.ErrOrStderr(), "Note: %s is compared with itself: give another revision with --from, or omit --to to compare with the work tree\n", p.To)
		}
		if d.isAll && p.IsEmpty() && len(p.Notes) == 0 {
			continue
		}
		name := names[i]
		if len(dirs) == 1 && !d.isAll {
			name = ""
		}
		noted = noted || len(p.Notes) > 0
		report.Landscapes = append(report.Landscapes, plan.LandscapePlan{Name: name, Plan: p})
	}
	if err := d.print(report); err != nil {
		return err
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if !report.IsEmpty() || noted {
		return errFinding
	}
	return nil
}

// folders returns the landscapes to compare: the arguments, or with --all those of both revisions.
func (d *diffCommand) folders(args []string) ([]string, error) {
	if !d.isAll {
		return args, nil
	}
	top := ""
	if len(args) > 0 {
		top = cmp.Or(args[0], ".") // no argument means the whole repository
	}
	return newReader(d.cmd).Folders(d.cmd.Context(), top, d.baseRevision, d.to)
}

// landscapeName returns the landscape's name after the change, or else before it, or "" if neither
// can be read.
func (d *diffCommand) landscapeName(dir string) string {
	if d.isLive {
		return revisions.NameInFile(os.DirFS(dir), revisions.LandscapeFile)
	}
	return revisions.NameInRevisions(dir, d.to, strings.TrimSuffix(d.from, "..."))
}

// isStandalone reports whether the report is read without standard error, as in a pull request.
// There an incomplete report must name its problems, or it looks as if nothing changed.
func (d *diffCommand) isStandalone() bool { return d.output == "markdown" || d.output == "html" }

// firstErrorLines returns the errors of an invalid landscape, one line each, up to a limit.
func firstErrorLines(err error) []string {
	var invalid *revisions.NotValidError
	if !errors.As(err, &invalid) {
		return nil
	}
	var out []string
	for _, v := range invalid.Findings {
		if v.Severity == schemas.SeverityError {
			out = append(out, v.String())
		}
	}
	if more := len(out) - comparison.MaxShownFindings; more > 0 {
		out = append(out[:comparison.MaxShownFindings], fmt.Sprintf("and %d more errors: run `pergola validate`", more))
	}
	return out
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// print writes the report to standard output, or to the file once the report is complete.
func (d *diffCommand) print(report plan.Report) error {
	how := plan.PrintOptions{Format: d.output, Colored: d.file == "" && isColored(d.cmd), OmissionHint: d.detailsHint()}
	if d.file == "" {
		return report.Print(d.cmd.OutOrStdout(), how)
	}
	var text bytes.Buffer
	if err := report.Print(&text, how); err != nil {
		return err
	}
	if err := os.WriteFile(d.file, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// detailsHint returns how to see the details that Markdown omits.
func (d *diffCommand) detailsHint() string {
	if d.isLive {
		return "run `pergola diff --live`"
	}
	return "run `pergola diff` with the same revisions, or with `-o html`"
}

func (d *diffCommand) plan(dir string) (change.Plan, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return change.Plan{}, &landscapes.NoLandscapeError{Dir: dir, Reason: "it is a file; give the folder that has " + revisions.LandscapeFile}
	}
	if d.isLive {
		return liveDiff(d.cmd, dir, d.access)
	}
	repo, err := source.Open(dir)
	if err != nil {
		return change.Plan{}, err
	}
	from, err := d.baseRevision(repo)
	if err != nil {
		return change.Plan{}, err
	}
	return comparison.Comparison{Reader: newReader(d.cmd), Repo: repo, Dir: dir, From: from, To: d.to, Now: d.now}.Plan(d.cmd.Context())
}

// baseRevision returns the revision to compare from.
func (d *diffCommand) baseRevision(repo *source.Repository) (string, error) {
	from, parted := strings.CutSuffix(d.from, "...")
	if !parted && !d.mergeBase {
		return d.from, nil
	}
	return repo.MergeBase(from, cmp.Or(d.to, "HEAD"))
}

func liveDiff(cmd *cobra.Command, dir string, access accessFlags) (change.Plan, error) {
	c, err := loadConverger(cmd, dir, access)
	if err != nil {
		return change.Plan{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), access.timeout)
	defer cancel()
	p, err := c.Plan(ctx)
	if err != nil {
		return p, commands.Finding{Err: problemsError{err}}
	}
	return p, nil
}

// problemsError prints each problem of a joined error once.
type problemsError struct{ error }

func (e problemsError) Error() string { return strings.Join(apply.Problems(e.error), "\n") }
func (e problemsError) Unwrap() error { return e.error }
