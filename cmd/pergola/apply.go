// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/commands/status"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
)

// applyCommand is one run of `pergola apply`.
type applyCommand struct {
	cmd      *cobra.Command
	dir      string
	access   accessFlags
	approve  []string
	force    []string
	output   string
	isDryRun bool
	isWatch  bool
	progress *progress
	// heldCount is the number of objects that the last run held.
	heldCount int
	// isLockedByOther reports whether another process holds the lease of the last run.
	isLockedByOther bool
}

func newApply() *cobra.Command {
	var verbose bool
	var a applyCommand
	cmd := &cobra.Command{
		Use: "apply LANDSCAPE",
		// The names of similar commands in other tools.
		SuggestFor: []string{"plan", "up", "reconcile"},
		Short:      "Converge the clusters to a landscape and wait for health",
		Long: `Validates the landscape, then applies it in the order of its flows: the Garden, the declarations for
the virtual garden, the Seeds, the Shoots. A failed part stops only the parts that depend on it. A
second run completes the missing parts and does not write unchanged objects.

The command applies the files of the work tree. The first line names their commit, and how many
files are not committed. With --watch, it follows the files and applies each new valid state, after
an edit, a commit or a checkout. It reports invalid files, and maintains the applied state. Failed
parts are retried, first after 15 seconds, later every five minutes; the applied parts are
maintained meanwhile.

An existing object is adopted, and is deleted when it is no longer declared. Fields that kubectl
apply, Helm or Gardener applied are taken over, and removed if they are not declared. Fields that
others have set stay; a different declared value is a conflict (see --force-conflicts). --dry-run
shows all of this.

Nothing is applied while no key opens one of the encrypted Secrets (SOPS_AGE_KEY_FILE,
SOPS_AGE_KEY). --dry-run leaves such Secrets out, and a note says so.

Exit code 1: something failed or was held. With --dry-run, 1 means that there are differences, or
that a cluster or Secret could not be compared (see the first lines); 0 means none.

Every object that Pergola creates is in the inventory of a bundle, except the objects listed below.
An inventory is a ConfigMap ` + owner.InventoryPrefix + `* in namespace garden, or
status.resources of a ManagedResource.

` + landscape.DescribeUninventoriedKinds(),
		Example: `  pergola apply landscapes/local
  pergola apply landscapes/local --dry-run
  pergola apply landscapes/local --watch          # keep repairing drift, follow the files
  pergola apply landscapes/local --approve 3f2a…  # approve held deletions`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.cmd, a.dir = cmd, args[0]
			a.progress = newProgress(cmd.ErrOrStderr(), isTerminalOutput(cmd) && a.output == "text", isColored(cmd), verbose)
			l, err := a.load()
			if err != nil {
				return err
			}
			c, err := a.converger(l)
			if err != nil {
				return err
			}
			defer c.Close()
			if a.isDryRun {
				a.printRevision("Comparing the clusters with", l)
				return a.dryRun(c)
			}
			a.printRevision("Applying", l)
			if a.isWatch {
				return a.watch(c, l)
			}
			switch err = a.converge(cmd.Context(), c); {
			case err != nil:
				return err
			case a.heldCount > 0:
				return commands.Finding{Err: fmt.Errorf("%s held: the clusters do not match Git yet", pluralForm(a.heldCount, "1 object is", fmt.Sprintf("%d objects are", a.heldCount)))}
			}
			return nil
		},
	}
	addOutputFlag(cmd, &a.output, "text", "json")
	cmd.Flags().BoolVar(&a.isDryRun, "dry-run", false, "only show what would change, by server-side dry run; exit code 1 if anything would")
	cmd.Flags().BoolVar(&a.isWatch, "watch", false, "keep running: retry failures, repair drift, and apply the files again when they change")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print every object that is written")
	cmd.Flags().StringArrayVar(&a.approve, "approve", nil, "approve held deletions by the id that a run printed")
	cmd.Flags().StringArrayVar(&a.force, "force-conflicts", nil, `overwrite the fields that others have set in an object ("ConfigMap garden/name"); may be given several times`)
	a.access.register(cmd)
	return cmd
}

// load reads the landscape. Applying needs keys for all of its Secrets; a comparison does not.
func (a *applyCommand) load() (*landscapes.Landscape, error) {
	l, err := loadValid(a.cmd, a.dir)
	if err != nil {
		return nil, err
	}
	if _, err := a.access.resolve(l); err != nil || a.isDryRun {
		return l, err
	}
	if err := landscape.CheckDecryptable(l); err != nil {
		return nil, err
	}
	return l, nil
}

func (a *applyCommand) converger(l *landscapes.Landscape) (*landscape.Converger, error) {
	return newConverger(a.cmd, l, a.access, a.progress, a.approve, a.force...)
}

// printRevision prints which revision or files the command uses.
func (a *applyCommand) printRevision(doing string, l *landscapes.Landscape) {
	fmt.Fprintf(a.cmd.ErrOrStderr(), "%s %s.\n", doing, revisions.Describe(a.dir, l))
}

func (a *applyCommand) dryRun(c *landscape.Converger) error {
	ctx, cancel := context.WithTimeout(a.cmd.Context(), a.access.timeout)
	defer cancel()
	p, err := c.Plan(ctx)
	if perr := printDryRun(a.cmd.OutOrStdout(), p, err, a.output, isColored(a.cmd)); perr != nil {
		return perr
	}
	switch {
	case err != nil && a.output == plan.FormatText:
		return incompleteError{err}
	case err != nil:
		return commands.Finding{Err: err}
	case !p.IsEmpty() || len(p.Notes) > 0:
		return errFinding
	}
	return nil
}

// printDryRun prints a plan. An incomplete plan begins with its problems and does not claim that
// nothing changes.
func printDryRun(w io.Writer, p change.Plan, err error, output string, colored bool) error {
	if err == nil || output != plan.FormatText {
		return plan.Print(w, p, output, colored)
	}
	p.Notes = landscape.NotesWithoutProblems(p)
	fmt.Fprintln(w, "Incomplete: some parts could not be compared, so their changes are not shown.")
	for _, problem := range apply.Problems(err) {
		fmt.Fprintln(w, "  "+printable(problem))
	}
	fmt.Fprintln(w)
	if p.IsEmpty() {
		for _, note := range p.Notes {
			fmt.Fprintln(w, "Note: "+printable(note))
		}
		_, werr := fmt.Fprintf(w, "No changes in the rest (%s unchanged).\n", countText(p.Unchanged, "object"))
		return werr
	}
	return plan.Print(w, p, output, colored)
}

// incompleteError marks an incomplete comparison. Its cause is already printed above the plan.
type incompleteError struct{ error }

func (incompleteError) Error() string   { return "the comparison is incomplete; see its first lines" }
func (e incompleteError) Unwrap() error { return commands.Finding{Err: e.error} }

// converge applies the landscape once and prints the result. It stops at the timeout or when ctx
// ends.
func (a *applyCommand) converge(ctx context.Context, c *landscape.Converger) error {
	started := time.Now()
	a.progress.reset()
	limited, cancel := context.WithTimeout(ctx, a.access.timeout)
	defer cancel()
	report, err := c.Apply(limited)
	a.progress.finish()
	a.heldCount, a.isLockedByOther = countHeld(report), false
	printHeld(a.cmd.ErrOrStderr(), report)
	for _, o := range report.PendingOperations {
		label := "Waits: "
		if o.Expired {
			label = "Not done: "
		}
		fmt.Fprintln(a.cmd.ErrOrStderr(), label+printable(o.String()))
	}
	if a.output == "json" {
		if perr := printReport(a.cmd, report, err); perr != nil {
			return perr
		}
	}
	switch {
	case ctx.Err() != nil:
		return commands.Finding{Err: errors.New("interrupted: the inventories record all sent objects; run apply again to complete the missing ones")}
	case err != nil:
		printProblems(a.cmd, report, err)
		if limited.Err() != nil {
			fmt.Fprintf(a.cmd.ErrOrStderr(), "Gave up after %s (--timeout).\n", time.Since(started).Round(time.Second))
		}
		a.isLockedByOther = errors.As(err, new(*landscape.LeaseHeldError))
		if !a.isLockedByOther && !a.isWatch { // the error about the lease says what to do
			fmt.Fprintln(a.cmd.ErrOrStderr(), "Next: fix the problems and run apply again; it completes the missing parts.")
		}
		return exitAfterProblems(err)
	}
	if a.output == "text" {
		fmt.Fprintln(a.cmd.OutOrStdout(), runSummary(report, time.Since(started)))
		status.Print(a.cmd.OutOrStdout(), c.Status(limited, landscape.StatusOptions{}), isColored(a.cmd))
	}
	return nil
}

// runSummary returns what a run wrote, in one sentence.
func runSummary(report *landscape.RunReport, took time.Duration) string {
	text := "there was nothing to write"
	if !report.Written.IsEmpty() {
		text = report.Written.String()
	}
	if n := countHeld(report); n > 0 {
		text += fmt.Sprintf("; %s %s held, see above", countText(n, "object"), pluralForm(n, "is", "are"))
	}
	return fmt.Sprintf("Applied in %s: %s.", took.Round(100*time.Millisecond), text)
}

// printProblems prints the failures, one a line and causes first, then the steps that they block.
func printProblems(cmd *cobra.Command, report *landscape.RunReport, err error) {
	problems := apply.Problems(err)
	noun := "problems"
	if len(problems) == 1 {
		noun = "problem"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Error: %d %s\n", len(problems), noun)
	for _, p := range problems {
		fmt.Fprintln(cmd.ErrOrStderr(), "  "+printable(p))
	}
	if fault, caught := errors.AsType[*panics.Error](err); caught && fault.Unwrap() == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Stack trace for the bug report:\n%s\n", fault.Stack)
	}
	for _, o := range report.Owners {
		var blocked []string
		for _, n := range o.Nodes {
			if n.State == flow.Blocked {
				blocked = append(blocked, n.ID)
			}
		}
		if len(blocked) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "Not started, %s: %s\n", o.Owner, strings.Join(blocked, ", "))
		}
	}
}

// printHeld prints which deletions and recreations are held, grouped by reason.
func printHeld(w io.Writer, report *landscape.RunReport) {
	for _, h := range report.Held {
		var reasons []change.Reason
		objects := map[change.Reason][]string{}
		for _, o := range h.Objects {
			if objects[o.Reason] == nil {
				reasons = append(reasons, o.Reason)
			}
			name := o.Ref.String()
			if o.ApprovalID != "" && o.ApprovalID != h.Approval {
				name += ", its approval is " + o.ApprovalID
			}
			objects[o.Reason] = append(objects[o.Reason], name)
		}
		for _, reason := range reasons {
			fmt.Fprintf(w, "Held on cluster %s: %s: %s\n", h.Cluster, countText(len(objects[reason]), "object"), printable(reason.String()))
			for _, name := range objects[reason] {
				fmt.Fprintln(w, "  "+printable(name))
			}
		}
		switch {
		case h.Approval == "":
		case len(h.Objects) == 1:
			fmt.Fprintf(w, "  Approve it with: --approve %s\n", h.Approval)
		default:
			fmt.Fprintf(w, "  Approve all of them with: --approve %s\n", h.Approval)
		}
	}
}

// countHeld counts the held objects.
func countHeld(report *landscape.RunReport) int {
	n := 0
	for _, h := range report.Held {
		n += len(h.Objects)
	}
	return n
}

func printReport(cmd *cobra.Command, report *landscape.RunReport, err error) error {
	out := struct {
		*landscape.RunReport
		Errors []string `json:"errors,omitempty"`
	}{RunReport: report, Errors: apply.Problems(err)}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
