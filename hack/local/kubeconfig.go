// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func kubeconfigCommand(where *folderFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig [CLUSTER]",
		Short:   "Print the path of the kubeconfig of a cluster, or of the one with all contexts",
		Example: "  export KUBECONFIG=$(local kubeconfig)",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := where.manager(os.Stderr)
			if err != nil {
				return err
			}
			path := manager.Dir.MergedKubeconfig()
			if len(args) == 1 {
				path = manager.Dir.Kubeconfig(args[0])
			}
			if _, err := os.Stat(path); err != nil {
				return fmt.Errorf("there is no kubeconfig %s: \"up\" creates it", path)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
}
