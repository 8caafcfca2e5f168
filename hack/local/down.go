// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/cluster"
)

// lockTimeout is how long down and clean wait for a running command.
const lockTimeout = 5 * time.Minute

func downCommand(where *folderFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "down",
		Short:   "Stop all processes of the clusters and keep their data",
		Example: "  local down",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if there, err := where.hasStateDir(); err != nil || !there {
				return printNothingToStop(where, err)
			}
			manager, err := where.manager(os.Stderr)
			if err != nil {
				return err
			}
			unlock, err := lockStateDir(cmd.Context(), manager, lockTimeout)
			if err != nil {
				return err
			}
			defer unlock()
			if isInNamespaces() { // the process outside reports the result
				return manager.Down(cmd.Context())
			}
			running := describeProcesses(cmd.Context(), manager)
			if err := errors.Join(stopNamespaces(cmd.Context(), manager), manager.Down(cmd.Context())); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "stopped %s and kept the data in %s\n", running, manager.Dir)
			return nil
		},
	}
}

// stopNamespaces stops the processes inside the namespaces, then the namespaces, if there are any.
func stopNamespaces(ctx context.Context, m *cluster.Manager) error {
	holder, err := findHolder(m)
	if err != nil || holder == nil {
		return err
	}
	err = runInNamespaces(ctx, holder, m.LocalExecutable, os.Stdout, "down", "--dir", string(m.Dir), "--bin", m.Source.Bin)
	return errors.Join(err, holder.Stop(ctx))
}

// printNothingToStop prints that there was nothing to stop.
func printNothingToStop(where *folderFlags, err error) error {
	if err != nil {
		return err
	}
	dir, _, _, err := where.resolve()
	if err == nil {
		fmt.Fprintf(os.Stderr, "nothing to stop: there are no clusters in %s\n", dir)
	}
	return err
}

// describeProcesses describes the number of processes. An error in counting does not prevent
// stopping.
func describeProcesses(ctx context.Context, m *cluster.Manager) string {
	status, err := statusOf(ctx, m)
	if err != nil {
		return "all processes"
	}
	parts, clusters := 0, 0
	count := func(list []cluster.PartStatus) (n int) {
		for _, p := range list {
			if p.PID > 0 {
				n++
			}
		}
		return n
	}
	for _, c := range status.Clusters {
		n := count(c.Parts)
		parts += n
		if n > 0 {
			clusters++
		}
	}
	if parts += count(status.Shared); parts == 0 {
		return "no process, because none ran,"
	}
	return fmt.Sprintf("%d processes (clusters: %d)", parts, clusters)
}

func cleanCommand(where *folderFlags) *cobra.Command {
	var binariesToo bool
	command := &cobra.Command{
		Use:     "clean",
		Short:   "Stop all processes and remove the state folder",
		Example: "  local clean --binaries",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if there, err := where.hasStateDir(); err != nil || !there {
				if err := printNothingToStop(where, err); err != nil {
					return err
				}
			} else {
				manager, err := where.manager(os.Stderr)
				if err != nil {
					return err
				}
				unlock, err := lockStateDir(cmd.Context(), manager, lockTimeout)
				if err != nil {
					return err
				}
				defer unlock()
				running := describeProcesses(cmd.Context(), manager)
				if err := stopNamespaces(cmd.Context(), manager); err != nil {
					return err
				}
				if err := manager.Clean(cmd.Context()); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "stopped %s and removed %s\n", running, manager.Dir)
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
			fmt.Fprintf(os.Stderr, "removed %s\n", bin)
			return nil
		},
	}
	command.Flags().BoolVar(&binariesToo, "binaries", false, "remove the built executables, too")
	return command
}
