// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

func newSuspend() *cobra.Command {
	var object objectFlags
	var reason string
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "suspend LANDSCAPE --reason TEXT",
		Short: "Pause the syncs of a Landscape",
		Long: `Pauses a Landscape: the operator applies no new revision and repairs no drift; the clusters keep
running. Every view of the Landscape shows the reason. With --for, syncing resumes automatically
after that time. The command prints and replaces an existing suspension.`,
		Example: `  pergola suspend production --reason "restoring etcd by hand" --for 2h`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return errors.New("--reason is missing: give the reason for the suspension")
			}
			if cmd.Flags().Changed("for") && duration <= 0 {
				return fmt.Errorf("--for %s: want a time above zero, such as 2h", duration)
			}
			handle, err := object.landscapeClient(args[0])
			if err != nil {
				return err
			}
			var until time.Time
			text := "until " + object.commandLine("resume", args[0])
			if duration > 0 {
				until = time.Now().Add(duration)
				// the format that all other commands print
				text = "until " + until.UTC().Format(time.RFC3339)
			}
			former, err := handle.Get(cmd.Context())
			if err != nil {
				return err
			}
			if err := handle.Suspend(cmd.Context(), reason, until); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Suspended %s %s.%s\n", args[0], text, replacedSuspensionText(former, time.Now()))
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason (required)")
	cmd.Flags().DurationVar(&duration, "for", 0, "how long, such as 2h (default: until pergola resume)")
	object.register(cmd)
	return cmd
}

// replacedSuspensionText describes the suspension that a new one replaces, so that it can be
// restored.
func replacedSuspensionText(l *landscapev1alpha1.Landscape, now time.Time) string {
	s := l.Spec.Suspension
	switch {
	case !l.Spec.Suspend || s != nil && s.Until != nil && !now.Before(s.Until.Time):
		return ""
	case s == nil:
		s = &landscapev1alpha1.Suspension{}
	}
	return fmt.Sprintf("\nIt replaces the previous suspension%s", landscape.SuspensionText(s))
}

func newResume() *cobra.Command {
	var object objectFlags
	cmd := &cobra.Command{
		Use:     "resume LANDSCAPE",
		Short:   "Resume the syncs of a Landscape",
		Long:    `Ends a suspension: the operator applies the newest revision, and repairs drift.`,
		Example: `  pergola resume production`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			handle, err := object.landscapeClient(args[0])
			if err != nil {
				return err
			}
			was, err := handle.Resume(cmd.Context())
			if err != nil {
				return err
			}
			text := "Syncing %s resumes.\n"
			if !was {
				text = "%s was not suspended.\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, args[0])
			return err
		},
	}
	object.register(cmd)
	return cmd
}
