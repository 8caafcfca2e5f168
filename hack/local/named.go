package main

import "github.com/spf13/cobra"

// named is the command that `run` starts inside; it executes the command in its arguments.
const named = "named"

func namedCommand() *cobra.Command {
	return &cobra.Command{
		Use:                named + " SERVER COMMAND [ARGUMENT...]",
		Short:              "Become a command that asks a DNS server for names",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(2),
		RunE:               func(_ *cobra.Command, args []string) error { return becomeNamed(args[0], args[1:]) },
	}
}
