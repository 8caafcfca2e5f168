// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// dnsSubcommand is the command that `run` starts inside; it executes the command in its arguments.
const dnsSubcommand = "named"

func dnsCommand() *cobra.Command {
	return &cobra.Command{
		Use:                dnsSubcommand + " SERVER COMMAND [ARGUMENT...]",
		Short:              "Replace this process by a command that resolves names by a DNS server",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(2),
		RunE:               func(_ *cobra.Command, args []string) error { return execWithDNS(args[0], args[1:]) },
	}
}
