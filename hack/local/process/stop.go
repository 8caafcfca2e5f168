// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// pollInterval is the interval of checks whether a process has ended.
const pollInterval = 20 * time.Millisecond

// Stop ends the process recorded at recordPath and removes the record: SIGTERM first, SIGKILL after
// grace or when ctx is done. It returns when the process has ended. It only removes the record if
// the process is dead or its id belongs to another process.
func Stop(ctx context.Context, recordPath string, grace time.Duration) error {
	record, err := ReadRecord(recordPath)
	if err != nil {
		return err
	}
	if there, _ := record.probe(); there {
		if err := record.terminate(ctx, grace); err != nil {
			return err
		}
	}
	if err := os.Remove(recordPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing process record: %w", err)
	}
	return nil
}

func (r *Record) terminate(ctx context.Context, grace time.Duration) error {
	if err := r.signal(syscall.SIGTERM); err != nil {
		return err
	}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for killed, polls := false, 0; ; {
		if there, _ := r.probe(); !there {
			return nil
		}
		select {
		case <-tick.C:
			if killed {
				if polls++; polls > int(10*time.Second/pollInterval) {
					return fmt.Errorf("process %d (%s) does not end even after SIGKILL", r.PID, r.Command)
				}
			}
			continue
		case <-deadline.C:
		case <-ctx.Done():
		}
		if !killed {
			killed = true
			if err := r.signal(syscall.SIGKILL); err != nil {
				return err
			}
		}
		ctx = context.WithoutCancel(ctx)
	}
}

func (r *Record) signal(signal syscall.Signal) error {
	err := syscall.Kill(r.PID, signal)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to process %d (%s): %w", signal, r.PID, r.Command, err)
	}
	return nil
}
