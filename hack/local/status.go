// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/cluster"
)

func statusCommand(where *folderFlags) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:     "status",
		Short:   "Show the running clusters and processes; exit code 1 unless all are ready, 2 if that is unknown",
		Example: "  local status -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("output %q: use text or json", output)
			}
			dir, _, _, err := where.resolve()
			if err != nil {
				return err
			}
			status := cluster.Status{Dir: dir, Shared: []cluster.PartStatus{}, Clusters: []cluster.ClusterStatus{}}
			if there, err := where.hasStateDir(); err != nil {
				return err
			} else if there {
				manager, err := where.manager(os.Stderr)
				if err != nil {
					return err
				}
				if status, err = statusOf(cmd.Context(), manager); err != nil {
					return err
				}
			}
			if output == "json" {
				err = printJSON(cmd.OutOrStdout(), status)
			} else {
				err = printStatus(cmd.OutOrStdout(), status)
			}
			if err == nil && !status.IsHealthy() {
				return errFinding
			}
			return err
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return command
}

func printStatus(out io.Writer, status cluster.Status) error {
	if len(status.Clusters) == 0 {
		_, err := fmt.Fprintf(out, "no clusters in %s; \"up\" starts them\n", status.Dir)
		return err
	}
	for _, c := range status.Clusters {
		fmt.Fprintf(out, "%-24s %-9s %s  %s\n", c.Name, c.State, c.Server, c.Kubeconfig)
		if c.Message != "" {
			fmt.Fprintf(out, "  %s\n", c.Message)
		}
		printParts(out, c.Parts)
	}
	fmt.Fprintln(out, "shared")
	printParts(out, status.Shared)
	if status.Proxy != "" {
		fmt.Fprintf(out, "pods run; reach them with HTTPS_PROXY=%s\n", status.Proxy)
	}
	_, err := fmt.Fprintf(out, "all contexts: %s\n", status.Kubeconfig)
	return err
}

func printParts(out io.Writer, parts []cluster.PartStatus) {
	for _, part := range parts {
		pid := "-"
		if part.PID > 0 {
			pid = fmt.Sprint(part.PID)
		}
		fmt.Fprintf(out, "  %-26s %-9s pid %s\n", part.Name, part.State, pid)
		if part.State != cluster.Crashed {
			continue
		}
		fmt.Fprintf(out, "    the end of %s:\n", part.Log)
		for _, line := range part.Tail {
			fmt.Fprintf(out, "    | %s\n", line)
		}
	}
}
