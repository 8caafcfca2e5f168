package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/plan"
)

func newApply() *cobra.Command {
	var access accessFlags
	var dryRun, watch, verbose bool
	var output string
	var approve []string
	cmd := &cobra.Command{
		Use:   "apply LANDSCAPE",
		Short: "Converge the clusters to a landscape and wait for health",
		Long: `Validates, then applies the landscape in the order of its flows: the Garden, what Git declares for the
virtual garden, the Seeds, the Shoots. A part that fails stops only what depends on it; running it
again completes what is missing and leaves unchanged objects alone.

Every object that Pergola makes is in the inventory of a bundle (a ConfigMap ` + owner.InventoryPrefix + `* in namespace
garden, or status.resources of a ManagedResource), except:
` + landscape.DescribeExemptions(),
		Example: `  pergola apply landscapes/local
  pergola apply landscapes/local --dry-run
  pergola apply landscapes/local --watch          # keep repairing drift
  pergola apply landscapes/local --approve 3f2a…  # let held deletions pass`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := loadValid(cmd, args[0])
			if err != nil {
				return err
			}
			p := newProgress(cmd.ErrOrStderr(), terminal(cmd) && output == "text", colored(cmd), verbose)
			c, err := newConverger(cmd, l, access, p, approve)
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), access.timeout)
			defer cancel()
			if dryRun {
				return printDryRun(cmd, ctx, c, output)
			}
			err = converge(cmd, ctx, c, p, output)
			if err != nil || !watch {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "Watching: drift is repaired until you press Ctrl-C.")
			if err := c.Keep(cmd.Context()); err != nil {
				return finding{err}
			}
			return nil
		},
	}
	outputFlag(cmd, &output, "text", "json")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change, by server-side dry run")
	cmd.Flags().BoolVar(&watch, "watch", false, "after converging, stay and repair drift")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print every object that is written")
	cmd.Flags().StringArrayVar(&approve, "approve", nil, "approve held deletions by the id that a run printed")
	access.add(cmd)
	return cmd
}

func printDryRun(cmd *cobra.Command, ctx context.Context, c *landscape.Converger, output string) error {
	p, err := c.Plan(ctx)
	if perr := plan.Print(cmd.OutOrStdout(), p, output, colored(cmd)); perr != nil {
		return perr
	}
	if err != nil {
		return finding{err}
	}
	return nil
}

func converge(cmd *cobra.Command, ctx context.Context, c *landscape.Converger, p *progress, output string) error {
	started := time.Now()
	report, err := c.Apply(ctx)
	p.finish()
	printHeld(cmd, report)
	if output == "json" {
		if perr := printReport(cmd, report, err); perr != nil {
			return perr
		}
	}
	switch {
	case cmd.Context().Err() != nil:
		return finding{errors.New("interrupted: what was sent is recorded in the inventories, run apply again to complete it")}
	case err != nil:
		printProblems(cmd, report, err)
		if ctx.Err() != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "Gave up after %s (--timeout).\n", time.Since(started).Round(time.Second))
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "Next: repair that and run apply again; it completes what is missing.")
		return errFinding
	}
	if output == "text" {
		fmt.Fprintf(cmd.OutOrStdout(), "Applied: %d objects changed in %s.\n", report.Changed, time.Since(started).Round(100*time.Millisecond))
		landscape.PrintStatus(cmd.OutOrStdout(), c.Status(ctx), colored(cmd))
	}
	return nil
}

// printProblems says what failed, one problem a line and causes first, then which steps were not started for it.
func printProblems(cmd *cobra.Command, report *landscape.Report, err error) {
	problems := owner.Problems(err)
	noun := "problems"
	if len(problems) == 1 {
		noun = "problem"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Error: %d %s\n", len(problems), noun)
	for _, p := range problems {
		fmt.Fprintln(cmd.ErrOrStderr(), "  "+p)
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

func printHeld(cmd *cobra.Command, report *landscape.Report) {
	for _, h := range report.Held {
		how := ""
		if h.Approval != "" {
			how = fmt.Sprintf(" (approve with --approve %s)", h.Approval)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "Held on cluster %s%s:\n", h.Cluster, how)
		for _, o := range h.Objects {
			fmt.Fprintf(cmd.ErrOrStderr(), "  %s: %s\n", o.Ref, o.Reason)
		}
	}
}

func printReport(cmd *cobra.Command, report *landscape.Report, err error) error {
	out := struct {
		*landscape.Report
		Errors []string `json:"errors,omitempty"`
	}{Report: report, Errors: owner.Problems(err)}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
