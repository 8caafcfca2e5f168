package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// lockTimeout is how long down and clean wait for a command that is at work.
const lockTimeout = 5 * time.Minute

func downCommand(where *places) *cobra.Command {
	return &cobra.Command{
		Use:     "down",
		Short:   "End all processes of the clusters and keep their data",
		Example: "  local down",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if there, err := where.exists(); err != nil || !there {
				return err
			}
			manager, err := where.manager(os.Stderr)
			if err != nil {
				return err
			}
			unlock, err := lock(cmd.Context(), manager, lockTimeout)
			if err != nil {
				return err
			}
			defer unlock()
			return manager.Down(cmd.Context())
		},
	}
}

func cleanCommand(where *places) *cobra.Command {
	var binariesToo bool
	command := &cobra.Command{
		Use:     "clean",
		Short:   "End all processes and remove the state folder",
		Example: "  local clean --binaries",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if there, err := where.exists(); err != nil {
				return err
			} else if there {
				manager, err := where.manager(os.Stderr)
				if err != nil {
					return err
				}
				unlock, err := lock(cmd.Context(), manager, lockTimeout)
				if err != nil {
					return err
				}
				defer unlock()
				if err := manager.Clean(cmd.Context()); err != nil {
					return err
				}
			}
			if !binariesToo {
				return nil
			}
			_, bin, _, err := where.resolve()
			if err != nil {
				return err
			}
			if err := os.RemoveAll(bin); err != nil {
				return fmt.Errorf("removing executables: %w", err)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&binariesToo, "binaries", false, "remove the built executables, too")
	return command
}
