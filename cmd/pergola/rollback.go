// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/operator"
)

func newRollback() *cobra.Command {
	var object objectFlags
	var reason string
	var unpin bool
	cmd := &cobra.Command{
		Use:   "rollback LANDSCAPE REVISION",
		Short: "Pin a Landscape to an earlier revision",
		Long: `Makes the operator apply an earlier revision and stay on it until --unpin, regardless of pushes.
Every view of the Landscape shows the pin, its author and its reason. The deletion gate, validation
and the verification of signatures apply as for any other revision. For a permanent rollback, revert
the change in Git.

REVISION is a commit of the history (pergola history), at least its first four digits; any full
commit id of the repository; or "` + operator.PreviousRevision + `",
the revision that was applied before the current one.`,
		Example: `  pergola rollback production previous --reason "the new image crashes"
  pergola rollback production 3f2a91c
  pergola rollback production --unpin`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if unpin == (len(args) == 2) {
				return errors.New("give a revision to roll back to, or --unpin")
			}
			handle, err := object.landscapeClient(args[0])
			if err != nil {
				return err
			}
			if unpin {
				was, err := handle.Unpin(cmd.Context())
				text := "%s follows its source again.\n"
				if !was {
					text = "%s was not pinned.\n"
				}
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), text, args[0])
				}
				return err
			}
			commit, err := handle.Pin(cmd.Context(), args[1], reason)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "PINNED: %s rolls back to %s and stays there; new revisions are not applied until you run\n  %s\n", args[0], commit, object.commandLine("rollback", args[0], "--unpin"))
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the pin, for other people")
	cmd.Flags().BoolVar(&unpin, "unpin", false, "follow the source again")
	object.register(cmd)
	return cmd
}

func newApprove() *cobra.Command {
	var object objectFlags
	var onSeed bool
	cmd := &cobra.Command{
		Use:   "approve LANDSCAPE ID...",
		Short: "Approve held deletions of a Landscape",
		Long: `Approves deletions and recreations that the operator and the gardenlets hold, because of the
deletion gate or because no review showed them. An id stands for exactly the objects that are held
now; pergola history and status.held of the Landscape show it. An approval for a seed counts only on
that seed; SEED/ID names the seed. If the id appears only in a DeletionHeld event of a Seed or
Shoot, pass --on-seed.`,
		Example: `  pergola approve production 3f2a91c07d55
  pergola approve production eu-1/77be0211c4e0 --on-seed`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			handle, err := object.landscapeClient(args[0])
			if err != nil {
				return err
			}
			before, err := handle.Get(cmd.Context())
			if err != nil {
				return err
			}
			if err := handle.Approve(cmd.Context(), args[1:], onSeed); err != nil {
				return commands.Finding{Err: err}
			}
			for _, h := range before.Status.Held {
				if isApprovedBy(h, args[1:], onSeed) {
					fmt.Fprintf(cmd.OutOrStdout(), "  %s on %s, held because %s\n", printable(h.Object), printable(clusterLabel(h.Cluster)), oneLine(h.Reason, 1000))
				}
			}
			text := "Approved; the operator applies %s again.\n"
			switch {
			case before.Spec.SuspensionAt(time.Now()) != nil:
				text = "Approved; nothing is applied until %s is resumed, because it is suspended.\n"
			case onSeed:
				text = "Approved; gardenlets of %s receive it with the next sync.\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, args[0])
			return err
		},
	}
	cmd.Flags().BoolVar(&onSeed, "on-seed", false, "also accept ids of deletions that gardenlets hold and the Landscape does not list")
	object.register(cmd)
	return cmd
}

// isApprovedBy reports whether one of the given ids approves a held object.
func isApprovedBy(h landscapev1alpha1.HeldDeletion, given []string, onSeed bool) bool {
	if onSeed && (h.Cluster == landscape.Runtime || h.Cluster == landscape.Virtual) {
		return false
	}
	for _, id := range []string{h.Approval, h.Together} {
		if id != "" && (slices.Contains(given, id) || slices.Contains(given, h.Cluster+"/"+id)) {
			return true
		}
	}
	return false
}
