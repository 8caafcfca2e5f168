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
	// followInterval is how often the files of a landscape are looked at.
	followInterval = 2 * time.Second
	// A state that could not be applied whole is applied again after followRetry, then after twice
	// as long, up to followRetryMost.
	followRetry     = 15 * time.Second
	followRetryMost = 5 * time.Minute
)

// Following says how a landscape is kept while its files change.
type Following struct {
	Clock clock.WithTicker
	// Interval between two looks at the files; default 2 s.
	Interval time.Duration
	// Fingerprint differs when the files do. An error counts as a state, too: Reload will say it
	// better.
	Fingerprint func() (string, error)
	// Reload makes a converger for the files as they are now. An error means that they are not
	// valid: the former state stays in force. It has to be reported by Reload itself.
	Reload func(context.Context) (*Converger, error)
	// Apply applies a state and reports how that went. It says after how long it is applied again;
	// zero is never. What it can be applied of is kept meanwhile. An error ends everything. The
	// attempt counts from zero, for each state.
	Apply func(ctx context.Context, c *Converger, attempt int) (again time.Duration, err error)
}

// FollowRetry is after how long a state is applied again of which not all could be applied, by how
// often that was tried before.
func FollowRetry(attempt int) time.Duration {
	return backoff.After(attempt+1, followRetry, followRetryMost)
}

// Follow applies a converger and keeps it, as Keep does, and changes over to every new valid state
// of the files as soon as they have been still for one interval: a run that is waiting then is
// given up. It returns when ctx ends, or with an error when a lease is lost. Follow closes every
// converger but the first.
func (f Following) Follow(ctx context.Context, first *Converger) error {
	if f.Interval <= 0 {
		f.Interval = followInterval
	}
	current := first
	defer func() {
		if current != first {
			current.Close()
		}
	}()
	tick := f.Clock.NewTicker(f.Interval)
	defer tick.Stop()
	known := f.look()
	work := f.start(ctx, func(ctx context.Context) error { return f.work(ctx, first) })
	moving := known
	for {
		select {
		case err := <-work.ended:
			return err
		case <-tick.C():
		}
		now := f.look()
		still := now == moving
		if moving = now; !still || now == known {
			continue
		}
		known = now
		next, err := panics.Detached(ctx, func() (*Converger, error) { return f.Reload(ctx) })
		if err != nil || ctx.Err() != nil {
			continue
		}
		if err := work.stop(); err != nil {
			next.Close()
			return err
		}
		old := current
		current = next
		err = next.inherit(old)
		old.Close()
		if err != nil {
			return err
		}
		work = f.start(ctx, func(ctx context.Context) error { return f.work(ctx, next) })
	}
}

// work applies a state and keeps it, and applies it again when that is due, until ctx ends.
func (f Following) work(ctx context.Context, c *Converger) error {
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
		err = c.Keep(keeping)
		stop()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// look gives the state of the files.
func (f Following) look() string {
	text, err := f.Fingerprint()
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

// job is what goes on while the files are watched.
type job struct {
	cancel context.CancelFunc
	ended  chan error
}

func (f Following) start(ctx context.Context, work func(context.Context) error) job {
	ctx, cancel := context.WithCancel(ctx)
	j := job{cancel: cancel, ended: make(chan error, 1)}
	go func() { j.ended <- panics.Safe(func() error { return work(ctx) })() }()
	return j
}

// stop ends the job and waits for it; an error is one that it ended with by itself.
func (j job) stop() error {
	j.cancel()
	if err := <-j.ended; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
