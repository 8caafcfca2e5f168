package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func newSync() *cobra.Command {
	var object objectFlags
	var follow bool
	var timeout time.Duration
	var output string
	cmd := &cobra.Command{
		Use:   "sync LANDSCAPE",
		Short: "Ask the operator to sync a Landscape now, and follow it",
		Long: `Asks the operator to look for a new revision at once and to compare everything with the clusters, and shows what it does until
it is done. Windows, suspension and dependencies hold nevertheless; what the sync waits for is said.

Exit code 1 says that the sync failed, was held, waits for a window or another Landscape, or is not done within --timeout.`,
		Example: `  pergola sync production
  pergola sync garden/production --follow=false`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			handle, err := object.handle(args[0])
			if err != nil {
				return err
			}
			asked, err := handle.Sync(cmd.Context())
			if err != nil || !follow {
				return err
			}
			over := time.NewTimer(timeout)
			defer over.Stop()
			lines := handle.Follow(cmd.Context(), asked)
			for {
				select {
				case p, ok := <-lines:
					if !ok {
						return finding{errors.New("interrupted: the sync goes on without you")}
					}
					if output == formatJSON {
						if err := json.NewEncoder(cmd.OutOrStdout()).Encode(p); err != nil {
							return err
						}
					} else if p.Err == "" {
						fmt.Fprintf(cmd.OutOrStdout(), "%s  %-10s %s\n", p.Time.Local().Format(time.TimeOnly), p.Phase, p.Message)
					}
					switch {
					case p.Err != "":
						return finding{errors.New(p.Err)}
					case p.Done && p.Phase == "Held":
						return errFinding
					case p.Done:
						return nil
					}
				case <-over.C:
					return finding{fmt.Errorf("not done after %s; the sync goes on without you", timeout)}
				}
			}
		},
	}
	outputFlag(cmd, &output, "text", "json")
	cmd.Flags().BoolVar(&follow, "follow", true, "show what the operator does until it is done")
	cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "how long to follow")
	object.add(cmd)
	return cmd
}
