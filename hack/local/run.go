package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/hold"
)

// runCommand runs something where the addresses of pods and Services can be reached.
func runCommand(where *places) *cobra.Command {
	command := &cobra.Command{
		Use:   "run -- COMMAND [ARGUMENT...]",
		Short: "Run a command where pods and Services have their addresses",
		Example: `  local run -- curl -k https://10.96.0.1/version
  local run -- bash`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := where.manager(os.Stderr)
			if err != nil {
				return err
			}
			holder, err := hold.Find(string(manager.Dir))
			if err != nil {
				return err
			}
			if holder == nil {
				return fmt.Errorf("no pods run for real in %s: \"up --pods run\" begins it", manager.Dir)
			}
			path, err := exec.LookPath(args[0])
			if err != nil {
				return err
			}
			folder, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("finding the working folder: %w", err)
			}
			code, err := holder.Run(cmd.Context(), hold.Command{Path: path, Args: args[1:], Env: os.Environ(), Dir: folder, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
			if err != nil {
				return err
			}
			if code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
	command.Flags().SetInterspersed(false)
	return command
}

// exitCode is that of a command that was run, to be this program's own.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("it ended with %d", int(e)) }
