// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// Ensure returns the files of the named executables. It builds executables that the assets folder
// lacks, unless Bin has them up to date. The first build takes minutes.
func (s Source) Ensure(ctx context.Context, names []string) (Paths, error) {
	paths := Paths{}
	var missing []binary
	for _, candidate := range buildPackages() {
		if !contains(names, candidate.name) {
			continue
		}
		path, err := s.inAssets(candidate.name)
		if err != nil {
			return nil, err
		}
		if path == "" {
			missing = append(missing, candidate)
			path = filepath.Join(s.Bin, candidate.name)
		}
		paths[candidate.name] = path
	}
	if len(missing) == 0 {
		return paths, nil
	}
	return paths, s.build(ctx, missing)
}

func contains(names []string, name string) bool {
	for _, candidate := range names {
		if candidate == name {
			return true
		}
	}
	return false
}

func (s Source) build(ctx context.Context, missing []binary) error {
	if s.Module == "" {
		return fmt.Errorf("%s is not in KUBEBUILDER_ASSETS, and can be built only inside the Pergola repository", missing[0].name)
	}
	unlock, err := statedir.LockFile(ctx, filepath.Join(s.Bin, ".lock"), func(holder string) {
		s.Progress.PrintLine("waiting for %s, which is building into %s", holder, s.Bin)
	})
	if err != nil {
		return fmt.Errorf("waiting for the build folder: %w", err)
	}
	defer unlock()

	flags, key, err := s.buildKey(ctx)
	if err != nil {
		return err
	}
	var stale []binary
	keys := map[string]string{}
	for _, candidate := range missing {
		if keys[candidate.name] = key; candidate.isOwnModule {
			own, err := s.moduleKey()
			if err != nil {
				return err
			}
			keys[candidate.name] += own
		}
		if !s.isCurrent(candidate.name, keys[candidate.name]) {
			stale = append(stale, candidate)
		}
	}
	for i, candidate := range stale {
		if err := s.buildOne(ctx, candidate, flags, i+1, len(stale)); err != nil {
			return err
		}
		if err := os.WriteFile(s.keyFile(candidate.name), []byte(keys[candidate.name]), 0o600); err != nil {
			return fmt.Errorf("recording build of %s: %w", candidate.name, err)
		}
	}
	return nil
}

// buildKey returns the linker flags and a key of the build's inputs: the pinned modules, the Go
// version and the flags.
func (s Source) buildKey(ctx context.Context) (flags, key string, err error) {
	sums, err := os.ReadFile(filepath.Join(s.Module, "go.sum"))
	if err != nil {
		return "", "", fmt.Errorf("reading pinned modules: %w", err)
	}
	goVersion, err := s.runGo(ctx, "env", "GOVERSION")
	if err != nil {
		return "", "", err
	}
	kubernetesVersion, err := s.runGo(ctx, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", "", err
	}
	flags = linkerFlags(kubernetesVersion)
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s", sums, goVersion, flags)
	return flags, hex.EncodeToString(hash.Sum(nil)), nil
}

// moduleKey identifies the sources of this module.
func (s Source) moduleKey() (string, error) {
	hash := sha256.New()
	err := filepath.WalkDir(s.Module, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %d\n%s", path, len(text), text)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the sources of this module: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func (s Source) keyFile(name string) string { return filepath.Join(s.Bin, "."+name+".key") }

func (s Source) isCurrent(name, key string) bool {
	recorded, err := os.ReadFile(s.keyFile(name))
	if err != nil || string(recorded) != key {
		return false
	}
	_, err = os.Stat(filepath.Join(s.Bin, name))
	return err == nil
}

func (s Source) runGo(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = s.Module
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("running go %s in %s: %w%s", strings.Join(args, " "), s.Module, err, stderrOf(err))
	}
	return strings.TrimSpace(string(out)), nil
}

func stderrOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "\n" + strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}

func (s Source) buildOne(ctx context.Context, what binary, flags string, n, of int) error {
	start := time.Now()
	output := filepath.Join(s.Bin, what.name)
	// The file has another name until it is complete; running processes keep the old file.
	unfinished := output + ".building"
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags, "-o", unfinished, what.pkg)
	command.Dir = s.Module
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	// The compilers are children of go: an interrupt must go to the whole group.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = 5 * time.Second
	var messages bytes.Buffer
	command.Stdout, command.Stderr = &messages, &messages

	done := s.Progress.StartStep("building "+what.name, n, of)
	err := command.Run()
	done(err)
	if ctx.Err() != nil {
		return fmt.Errorf("building %s: %w", what.name, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("building %s after %s: %w\n%s", what.name, time.Since(start).Round(time.Second), err, strings.TrimSpace(messages.String()))
	}
	if err := os.Rename(unfinished, output); err != nil {
		return fmt.Errorf("building %s: %w", what.name, err)
	}
	return nil
}
