// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/binaries"
	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// folderFlags are the flags for folders.
type folderFlags struct {
	dir, bin string
}

func rootCommand() *cobra.Command {
	where := &folderFlags{}
	command := &cobra.Command{
		Use:           "local",
		Short:         "Kubernetes control planes on this machine, without containers",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.PersistentFlags().StringVar(&where.dir, "dir", "", "state folder (default .local in the repository)")
	command.PersistentFlags().StringVar(&where.bin, "bin", "", "folder for built executables (default hack/local/bin in the repository)")
	command.AddCommand(upCommand(where), downCommand(where), statusCommand(where), cleanCommand(where), kubeconfigCommand(where), logsCommand(where), runCommand(where), forwardCommand(where), keepStagesCommand(), holdCommand(), dnsCommand(), buildCommand(where))
	return command
}

// repositoryRoot returns the repository of the working folder or the executable, or "".
func repositoryRoot() string {
	var starts []string
	if folder, err := os.Getwd(); err == nil {
		starts = append(starts, folder)
	}
	if executable, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(executable))
	}
	for _, folder := range starts {
		for {
			if _, err := os.Stat(filepath.Join(folder, "hack", "local", "go.mod")); err == nil {
				return folder
			}
			parent := filepath.Dir(folder)
			if parent == folder {
				break
			}
			folder = parent
		}
	}
	return ""
}

// resolve fills in the defaults. Outside the repository module is empty, so nothing can be built.
func (p *folderFlags) resolve() (dir, bin, module string, err error) {
	repo := repositoryRoot()
	dir, bin = p.dir, p.bin
	if dir == "" && repo == "" {
		return "", "", "", errors.New("run this inside the Pergola repository, or give --dir")
	}
	if repo != "" {
		module = filepath.Join(repo, "hack", "local")
	}
	if dir == "" {
		dir = filepath.Join(repo, ".local")
	}
	if bin == "" {
		bin = filepath.Join(module, "bin")
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return "", "", "", fmt.Errorf("resolving --bin: %w", err)
	}
	return dir, bin, module, nil
}

// manager returns the Manager of the state folder; out takes messages for people.
func (p *folderFlags) manager(out *os.File) (*cluster.Manager, error) {
	path, bin, module, err := p.resolve()
	if err != nil {
		return nil, err
	}
	dir, err := statedir.Open(path)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	info, err := out.Stat()
	return &cluster.Manager{
		Dir: dir, LocalExecutable: self, PergolaExecutable: filepath.Join(module, "..", "..", "bin", "pergola"), Out: out, Now: time.Now,
		Source: binaries.Source{
			Assets: os.Getenv("KUBEBUILDER_ASSETS"), Module: module, Bin: bin,
			Progress: binaries.Progress{Out: out, Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0},
		},
	}, nil
}

// hasStateDir reports whether the state folder exists, without creating it.
func (p *folderFlags) hasStateDir() (bool, error) {
	dir, _, _, err := p.resolve()
	if err != nil {
		return false, err
	}
	_, err = os.Stat(dir)
	return err == nil, nil
}

// lockStateDir excludes other commands that change the folder, and waits for a running one.
func lockStateDir(ctx context.Context, m *cluster.Manager, timeout time.Duration) (unlock func(), err error) {
	if isInNamespaces() { // the process outside holds it
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return m.Dir.Lock(ctx, func(holder string) {
		fmt.Fprintf(m.Out, "waiting for %s, which is changing these clusters\n", holder)
	})
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
