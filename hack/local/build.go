// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/binaries"
)

// buildCommand builds the executables and starts nothing: for tests that start API servers
// themselves.
func buildCommand(where *folderFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the executables of clusters that KUBEBUILDER_ASSETS does not have",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			manager, err := where.manager(os.Stderr)
			if err != nil {
				return err
			}
			paths, err := manager.Source.Ensure(cmd.Context(), binaries.Names())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%d executables are ready\n", len(paths))
			return nil
		},
	}
}
