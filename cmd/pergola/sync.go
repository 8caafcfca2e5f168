// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/operator"
	"github.com/pergola-dev/pergola/source/receiver"
)

// operatorCheckInterval is how often --follow checks that the operator still runs.
const operatorCheckInterval = 10 * time.Second

// operatorWatch detects that no operator would execute a requested sync.
type operatorWatch struct {
	object *objectFlags
	handle *operator.LandscapeClient
	clock  clock.PassiveClock
}

// check returns a finding if no operator runs. Without permission to read its Lease this is
// unknown, and the command continues.
func (w *operatorWatch) check(ctx context.Context) error {
	silence, err := w.handle.StaleOperator(ctx)
	if err != nil || silence == nil {
		return nil
	}
	return commands.Finding{Err: fmt.Errorf("%s. The sync is requested, and begins when an operator runs: %s", noOperatorText(silence, w.clock.Now()), landscape.StartOperatorHint(w.object.kubectl()))}
}

// noOperatorText says since when no operator runs.
func noOperatorText(silence *landscape.StaleRole, now time.Time) string {
	return "no operator runs: " + silence.Text(now)
}

func newSync() *cobra.Command {
	var object objectFlags
	var follow bool
	var timeout time.Duration
	var output string
	cmd := &cobra.Command{
		Use:   "sync LANDSCAPE",
		Short: "Request a sync of a Landscape now, and follow it",
		Long: `Asks the operator to check for a new revision and to compare everything with the clusters at once.
It shows the progress until the sync is done. Windows, suspension and dependencies still apply; if
the sync waits for one, the progress says so.

Exit code 1: the sync failed, was held, waits for a window or another Landscape, or is not done
within --timeout. Without a running operator the exit code is 1, too; the sync then begins when an
operator runs.`,
		Example: `  pergola sync production
  pergola sync garden/production --follow=false`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			handle, err := object.landscapeClient(args[0])
			if err != nil {
				return err
			}
			asked, err := handle.Sync(cmd.Context())
			if err != nil {
				return err
			}
			running := &operatorWatch{object: &object, handle: handle, clock: clock.RealClock{}}
			if err := running.check(cmd.Context()); err != nil || !follow {
				return err
			}
			over, look := time.NewTimer(timeout), time.NewTicker(operatorCheckInterval)
			defer over.Stop()
			defer look.Stop()
			landscapeKey := object.key(args[0]).String()
			lines := handle.Follow(cmd.Context(), asked)
			for {
				select {
				case p, ok := <-lines:
					if !ok {
						return commands.Finding{Err: errors.New("interrupted: the sync continues in the background")}
					}
					if output == formatJSON {
						if err := json.NewEncoder(cmd.OutOrStdout()).Encode(p); err != nil {
							return err
						}
					} else if p.Err == "" {
						fmt.Fprintf(cmd.OutOrStdout(), "%s  %-10s %s\n", p.Time.Local().Format(time.TimeOnly), p.Phase, printable(object.withCommandFlags(p.Message, landscapeKey)))
					}
					switch {
					case p.Err != "":
						return commands.Finding{Err: errors.New(printableLines(object.withCommandFlags(p.Err, landscapeKey)))}
					case p.Done && p.Phase == receiver.PhaseHeld && output != formatJSON:
						// otherwise the line suffices
						if l, err := handle.Get(cmd.Context()); err == nil {
							_ = printApprovals(cmd.OutOrStdout(), l, &object)
						}
						return errFinding
					case p.Done && p.Phase == receiver.PhaseHeld:
						return errFinding
					case p.Done:
						return nil
					}
				case <-look.C:
					if err := running.check(cmd.Context()); err != nil {
						return err
					}
				case <-over.C:
					return commands.Finding{Err: fmt.Errorf("not done after %s; the sync continues in the background", timeout)}
				}
			}
		},
	}
	addOutputFlag(cmd, &output, "text", "json")
	cmd.Flags().BoolVar(&follow, "follow", true, "show the progress of the operator until the sync is done")
	cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "how long to follow")
	object.register(cmd)
	return cmd
}
