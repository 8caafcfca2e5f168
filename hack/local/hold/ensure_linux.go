// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// markerEnv is a variable in the environment of a holder, but not of its commands.
const markerEnv = "PERGOLA_HOLD"

// startTimeout limits the start of a holder, which takes about 50 ms.
const startTimeout = 30 * time.Second

// CheckSupport returns why namespaces cannot be created here, or nil. It tries once to start this
// program as a holder; the program must serve "hold" (see Serve and Become).
var CheckSupport = sync.OnceValue(func() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	started, said, err := startProcess(ctx, self, tryFlag, nil)
	if err != nil {
		return err
	}
	// The process ends without a signal, or has been killed.
	_ = started.Wait()
	if said != statusReady {
		return explainNamespaceError(said, readSysctl)
	}
	return nil
})

// Ensure returns the holder of the state folder and starts one if none runs. self is the executable
// that becomes the holder: it must serve "hold" (see Serve and Become). The holder outlives the
// caller.
func Ensure(ctx context.Context, dir, self string) (*Holder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving state folder: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		holder, err := Find(dir)
		if err != nil {
			return nil, err
		}
		if holder == nil {
			if err := startHolder(ctx, dir, self); err != nil {
				return nil, err
			}
			continue
		}
		_, err = holder.roundTrip(ctx, request{Op: opPing})
		if !errors.Is(err, errEnding) {
			return holder, err
		}
		if err := holder.waitForEnd(ctx); err != nil {
			return nil, fmt.Errorf("waiting for the end of the previous holder: %w", err)
		}
	}
}

// startHolder starts a holder, unless another process already has.
func startHolder(ctx context.Context, dir, self string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating state folder: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("opening the holder's log: %w", err)
	}
	defer log.Close()
	started, said, err := startProcess(ctx, self, dir, log)
	if err != nil {
		return err
	}
	// Collect the holder if it ends before this process; later init does.
	go func() { _ = started.Wait() }()
	switch said {
	case statusReady, statusExists:
		return nil
	}
	return fmt.Errorf("starting the holder of %s: %s", dir, said)
}

// startProcess starts this program as process 1 of new namespaces and returns the status it
// reports.
func startProcess(ctx context.Context, self, arg string, log *os.File) (*exec.Cmd, string, error) {
	if os.Getenv(markerEnv) != "" {
		// Otherwise a test that forgets Become would start itself endlessly.
		return nil, "", fmt.Errorf("%s does not serve %q", self, holdSubcommand)
	}
	status, child, err := os.Pipe()
	if err != nil {
		return nil, "", fmt.Errorf("creating a pipe: %w", err)
	}
	defer status.Close()
	command := exec.Command(self, holdSubcommand, arg)
	command.Env = []string{markerEnv + "=1"}
	command.Dir = "/"
	if log != nil {
		command.Stdout, command.Stderr = log, log
	}
	command.ExtraFiles = []*os.File{child}
	command.SysProcAttr = namespaceAttributes()
	err = command.Start()
	_ = child.Close()
	if err != nil {
		return nil, "", explainNamespaceError(err.Error(), readSysctl)
	}
	kill := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	said, err := io.ReadAll(status)
	if !kill() {
		_ = command.Wait()
		return nil, "", fmt.Errorf("waiting for the start of the holder: %w", ctx.Err())
	}
	if err != nil || len(said) == 0 {
		_ = command.Process.Kill()
		_ = command.Wait()
		return nil, "", fmt.Errorf("starting the holder: %s %s does not answer", self, holdSubcommand)
	}
	return command, string(said), nil
}
