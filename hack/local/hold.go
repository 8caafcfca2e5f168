// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/hold"
)

// holdCommand runs the holder of a state folder's namespaces; other commands start it.
func holdCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "hold",
		Short:              "Hold the namespaces in which clusters run",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return hold.Serve(args) },
	}
}
