// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/hack/local/process"
)

// Kwok is a Player that runs a kwok process for Stages of kinds other than Node and Pod.
type Kwok struct {
	// Binary is the executable; Kubeconfig is its access to the API server.
	Binary, Kubeconfig string
	// Config is the file for the Stages; Record is the process record and Log the output.
	Config, Record, Log string

	shouldRun bool // a process should be running
	failures  int
	nextStart time.Time
}

const (
	kwokGrace       = 3 * time.Second
	maxRestartDelay = 30 * time.Second
)

// Play implements Player.
func (k *Kwok) Play(ctx context.Context, all []Stage) error {
	k.shouldRun, k.failures = false, 0
	if err := k.Stop(ctx); err != nil {
		return err
	}
	if len(all) == 0 {
		return nil // kwok would exit at once
	}
	text, err := Encode(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.Config), 0o700); err != nil {
		return fmt.Errorf("creating folder of stages: %w", err)
	}
	if err := os.WriteFile(k.Config, text, 0o600); err != nil {
		return fmt.Errorf("writing stages: %w", err)
	}
	return k.start()
}

func (k *Kwok) start() error {
	_, err := process.Start(process.Spec{
		Binary: k.Binary, Env: os.Environ(), Log: k.Log,
		// A missing node: the other kwok plays nodes and pods.
		Args: []string{"--kubeconfig=" + k.Kubeconfig, "--config=" + k.Config, "--manage-single-node=none"},
	}, k.Record)
	k.shouldRun = err == nil
	return err
}

// Check implements Player: it restarts a process that has ended, after an increasing delay.
func (k *Kwok) Check(context.Context) error {
	record, err := process.ReadRecord(k.Record)
	if err != nil || !k.shouldRun || record.IsAlive() {
		return err
	}
	ended := fmt.Errorf("kwok has ended: %s", strings.Join(process.ReadTail(k.Log, 3), "\n"))
	now := time.Now()
	if now.Before(k.nextStart) {
		return ended
	}
	k.failures++
	k.nextStart = now.Add(min(time.Second<<min(k.failures, 10), maxRestartDelay))
	if err := k.start(); err != nil {
		k.shouldRun = true
		return err
	}
	return ended
}

// Stop implements Player.
func (k *Kwok) Stop(ctx context.Context) error {
	if err := process.Stop(ctx, k.Record, kwokGrace); err != nil {
		return fmt.Errorf("stopping kwok: %w", err)
	}
	return nil
}
