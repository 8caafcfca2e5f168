// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/hold"
)

// runCommand runs a command where pods and Services have their addresses and names.
func runCommand(where *folderFlags) *cobra.Command {
	var of string
	command := &cobra.Command{
		Use:   "run -- COMMAND [ARGUMENT...]",
		Short: "Run a command where pods and Services have their addresses and names",
		Example: `  local run -- curl -k https://kubernetes.default.svc/version
  local run --names-of local -- curl -k https://kube-apiserver.shoot--local--local.svc/version
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
				return fmt.Errorf("no cluster in %s has living pods: \"up --pods run\" starts them", manager.Dir)
			}
			path, err := findExecutable(args[0])
			if err != nil {
				return err
			}
			server, err := clusterDNSAddress(manager, of)
			if err != nil {
				return err
			}
			folder, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("finding the working folder: %w", err)
			}
			code, err := holder.Run(cmd.Context(), hold.Command{Path: manager.LocalExecutable, Args: append([]string{dnsSubcommand, server, path}, args[1:]...), Env: os.Environ(), Dir: folder, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
			if err != nil {
				return err
			}
			if code != 0 {
				return commandExitCode(code)
			}
			return nil
		},
	}
	command.Flags().StringVar(&of, "names-of", "", "cluster whose Service names resolve (default: the first one); names of API servers always resolve")
	command.Flags().SetInterspersed(false)
	return command
}

// findExecutable finds a command as a shell does.
func findExecutable(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("there is no command %s in the PATH", name)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no file %s", name)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EISDIR):
		return "", fmt.Errorf("%s is not an executable file", name)
	case err != nil:
		return "", fmt.Errorf("looking for %s: %w", name, err)
	}
	return path, nil
}

// clusterDNSAddress returns the address of the DNS server of the named cluster, or of the first
// one, whose pods run.
func clusterDNSAddress(m *cluster.Manager, name string) (string, error) {
	state, err := m.Dir.Load()
	if err != nil {
		return "", err
	}
	for _, c := range state.Clusters {
		if c.Kubelets > 0 && (name == "" || c.Name == name) {
			return c.DNS(), nil
		}
	}
	if name == "" {
		return "", fmt.Errorf("no cluster in %s has living pods", m.Dir)
	}
	return "", fmt.Errorf("--names-of: there is no cluster %q with living pods in %s", name, m.Dir)
}

// commandExitCode is the exit code of a command that was run; this program exits with it, too.
type commandExitCode int

func (e commandExitCode) Error() string { return fmt.Sprintf("it ended with %d", int(e)) }
