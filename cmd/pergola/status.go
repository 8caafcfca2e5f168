// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/commands/status"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

func newStatus() *cobra.Command {
	var access accessFlags
	var output string
	var watch bool
	var what landscape.StatusOptions
	cmd := &cobra.Command{
		Use: "status LANDSCAPE",
		// The names of similar commands in other tools.
		SuggestFor: []string{"get", "show"},
		Short:      "Show the Garden, the Seeds and the Shoots with their conditions",
		Long: `Shows the tree of a landscape: owners, their last operations and their conditions. Conditions are
shown as last written, with their age; they do not change while nothing reconciles the landscape.
With --live, they are judged now, without thresholds. The command never writes to a cluster.

If an operator syncs the landscape, the head shows its Landscape object in the runtime cluster. It
shows the applied revision, a suspension or a pin with its author, a failed sync, and deletions that
wait for an approval.

If the files are not valid, the tree shows the state that was applied before. The command then
judges and compares nothing, even with --live.

Exit code 1: something is not ready; suspended, failed and invalid landscapes count as not ready.
Exit code 2: a cluster does not answer.`,
		Example: `  pergola status landscapes/local
  pergola status landscapes/local --live
  pergola status landscapes/local --components   # every bundle: applied, healthy, rolling out
  pergola status landscapes/local --watch`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, invalid, err := loadStatusConverger(cmd, args[0], access)
			if revisions.IsMissing(err) {
				return fmt.Errorf("%w; status takes the folder of a landscape; for a Landscape in a cluster, run pergola history %s", err, landscape.QuoteArgument(args[0]))
			}
			if err != nil {
				return err
			}
			defer c.Close()
			what.Invalid = invalid
			if watch {
				return watchStatus(cmd, c, what, output)
			}
			s := c.Status(cmd.Context(), what)
			if err := cmd.Context().Err(); err != nil {
				return commands.Finding{Err: fmt.Errorf("interrupted: %w", err)}
			}
			if err := printStatus(cmd, s, output); err != nil {
				return err
			}
			switch {
			case s.HasUnreachable():
				return exitError{exitUsage}
			case !s.Ready:
				return errFinding
			}
			return nil
		},
	}
	addOutputFlag(cmd, &output, "text", "json")
	cmd.Flags().BoolVar(&what.Live, "live", false, "judge the conditions now, instead of showing the last written ones")
	cmd.Flags().BoolVar(&what.Components, "components", false, "also show the state of every bundle, judged now")
	cmd.Flags().BoolVar(&watch, "watch", false, "print again whenever something changes, until Ctrl-C")
	access.register(cmd)
	return cmd
}

func printStatus(cmd *cobra.Command, s landscape.Status, output string) error {
	if output == "text" {
		status.Print(cmd.OutOrStdout(), s, isColored(cmd))
		return nil
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// watchStatus prints each changed status; on a terminal it also updates the age.
func watchStatus(cmd *cobra.Command, c *landscape.Converger, what landscape.StatusOptions, output string) error {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	redraw := isTerminalOutput(cmd) && output == "text"
	var last *landscape.Status
	for {
		s := c.Status(cmd.Context(), what)
		if cmd.Context().Err() != nil {
			return nil
		}
		if redraw {
			var b bytes.Buffer
			status.Print(&b, s, isColored(cmd))
			if last != nil {
				fmt.Fprint(cmd.OutOrStdout(), "\x1b[H\x1b[2J")
			}
			fmt.Fprint(cmd.OutOrStdout(), b.String())
		} else if last == nil || !s.IsSameState(*last) {
			if err := printStatus(cmd, s, output); err != nil {
				return err
			}
		}
		last = &s
		select {
		case <-cmd.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}
