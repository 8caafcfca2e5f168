// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/backoff"
	"github.com/pergola-dev/pergola/internal/panics"
)

const (
	// fileCheckInterval is the interval at which the files of a landscape are checked.
	fileCheckInterval = 2 * time.Second
	// minApplyRetryPause is the pause before an incomplete apply is retried; it doubles up to
	// maxApplyRetryPause.
	minApplyRetryPause = 15 * time.Second
	maxApplyRetryPause = 5 * time.Minute
)

// FileFollower applies a landscape whenever its files change.
type FileFollower struct {
	Clock clock.WithTicker
	// Interval between two checks of the files; the default is 2 s.
	Interval time.Duration
	// FilesFingerprint differs when the files do. An error counts as a change, because Reload
	// reports it better.
	FilesFingerprint func() (string, error)
	// Reload returns a converger for the current files. On an error, for invalid files, the current
	// converger stays; Reload reports the error itself.
	Reload func(context.Context) (*Converger, error)
	// Apply applies a converger and reports the result. It returns the pause before a retry; it is
	// zero for none; meanwhile drift is repaired. An error ends Follow. The attempt starts at zero
	// for each converger.
	Apply func(ctx context.Context, c *Converger, attempt int) (again time.Duration, err error)
}

// ApplyRetryPause returns the pause before the retry of an incomplete apply, after a number of
// earlier attempts.
func ApplyRetryPause(attempt int) time.Duration {
	return backoff.Delay(attempt+1, minApplyRetryPause, maxApplyRetryPause)
}

// Follow applies a converger and repairs drift, as Maintain does. It changes to each new valid
// content of the files once they are unchanged for one interval, and cancels the current run. It
// returns when ctx ends, or with an error when a lease is lost. Follow closes every converger but
// the first.
func (f FileFollower) Follow(ctx context.Context, first *Converger) error {
	if f.Interval <= 0 {
		f.Interval = fileCheckInterval
	}
	current := first
	defer func() {
		if current != first {
			current.Close()
		}
	}()
	tick := f.Clock.NewTicker(f.Interval)
	defer tick.Stop()
	known := f.currentFingerprint()
	work := f.startJob(ctx, func(ctx context.Context) error { return f.applyAndMaintain(ctx, first) })
	moving := known
	for {
		select {
		case err := <-work.ended:
			return err
		case <-tick.C():
		}
		now := f.currentFingerprint()
		still := now == moving
		if moving = now; !still || now == known {
			continue
		}
		known = now
		next, err := panics.RunDetached(ctx, func() (*Converger, error) { return f.Reload(ctx) })
		if err != nil || ctx.Err() != nil {
			continue
		}
		if err := work.stop(); err != nil {
			next.Close()
			return err
		}
		old := current
		current = next
		err = next.inheritLeases(old)
		old.Close()
		if err != nil {
			return err
		}
		work = f.startJob(ctx, func(ctx context.Context) error { return f.applyAndMaintain(ctx, next) })
	}
}

// applyAndMaintain applies a converger, repairs drift, and retries the apply when due, until ctx
// ends.
func (f FileFollower) applyAndMaintain(ctx context.Context, c *Converger) error {
	for attempt := 0; ; attempt++ {
		again, err := f.Apply(ctx, c, attempt)
		if err != nil {
			return err
		}
		keeping, stop := context.WithCancel(ctx)
		if again > 0 {
			timer := f.Clock.NewTimer(again)
			go func() {
				defer timer.Stop()
				select {
				case <-timer.C():
					stop()
				case <-keeping.Done():
				}
			}()
		}
		err = c.Maintain(keeping)
		stop()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// currentFingerprint returns the fingerprint of the files, or the error as text.
func (f FileFollower) currentFingerprint() string {
	text, err := f.FilesFingerprint()
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

// backgroundJob is the work in the background while the files are watched.
type backgroundJob struct {
	cancel context.CancelFunc
	ended  chan error
}

func (f FileFollower) startJob(ctx context.Context, work func(context.Context) error) backgroundJob {
	ctx, cancel := context.WithCancel(ctx)
	j := backgroundJob{cancel: cancel, ended: make(chan error, 1)}
	go func() { j.ended <- panics.AsError(func() error { return work(ctx) })() }()
	return j
}

// stop cancels the job and waits for it; it returns an error of the job other than the
// cancellation.
func (j backgroundJob) stop() error {
	j.cancel()
	if err := <-j.ended; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
