package notification

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/forge"
)

// Bounds of one destination.
const (
	queueLength   = 64 // events; the oldest are dropped first
	tellRate      = 1  // a second
	tellBurst     = 10
	tries         = 6
	firstWait     = time.Second
	longestWait   = time.Minute
	longestAsked  = 10 * time.Minute // maximum of Retry-After
	rememberedOld = 256              // messages that are not repeated
)

// item is an event that waits for a destination.
type item struct {
	event   Event
	to      Destination
	message string // identifies equal messages
	slot    string // a later item of a slot replaces earlier ones; "" for none
}

// sink is one destination with its queue. The lock of the Notifier guards its fields.
type sink struct {
	notifier *Notifier
	key      sinkKey
	queue    []item
	dropped  int
	working  bool
	gone     bool
	told     *memory // messages of webhooks by time
	states   *memory // the last state by commit

	pace *rate.Limiter
}

func newSink(n *Notifier, key sinkKey) *sink {
	return &sink{notifier: n, key: key, told: newMemory(rememberedOld), states: newMemory(rememberedOld), pace: rate.NewLimiter(tellRate, tellBurst)}
}

// take queues an event that the destination accepts, and reports whether it did. Callers hold the
// lock.
func (s *sink) take(event Event, d Destination) bool {
	it := item{event: event, to: d}
	switch d.Type {
	case landscapev1alpha1.NotifyCommitStatus:
		if event.Phase == Neutral || event.Commit == "" {
			return false
		}
		it.slot = event.Commit
		it.message = fmt.Sprintf("%s %s %s", event.Phase, event.Reason, event.Message)
		if !s.states.changed(it.slot, it.message) {
			return s.repeated(d)
		}
	default:
		if d.Severity == Warning && event.Severity != Warning {
			return false
		}
		it.message = fmt.Sprintf("%s %s %s %s %s", event.Revision, event.Phase, event.Reason, event.Severity, event.Message)
		if !s.told.due(it.message, event.At, s.notifier.Repeat) {
			return s.repeated(d)
		}
	}
	for i, waiting := range s.queue {
		if it.slot != "" && waiting.slot == it.slot {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			s.notifier.metrics.count(d.Type, superseded)
			break
		}
	}
	if len(s.queue) >= queueLength {
		s.forget(s.queue[0])
		s.queue = s.queue[1:]
		s.dropped++
		s.notifier.metrics.count(d.Type, dropped)
	}
	s.queue = append(s.queue, it)
	return true
}

func (s *sink) repeated(d Destination) bool {
	s.notifier.metrics.count(d.Type, repeated)
	return false
}

// forget allows an unsent message to be sent later.
func (s *sink) forget(it item) {
	if it.slot != "" {
		s.states.drop(it.slot, it.message)
		return
	}
	s.told.drop(it.message, "")
}

// leave empties the queue of a removed destination. Callers hold the lock.
func (s *sink) leave() { s.queue, s.gone = nil, true }

// next returns the oldest event, and how many were dropped since the last. It is false if the queue
// is empty: the worker ends.
func (s *sink) next() (item, int, bool) {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	if len(s.queue) == 0 {
		s.working = false
		return item{}, 0, false
	}
	it := s.queue[0]
	s.queue = s.queue[1:]
	lost := s.dropped
	s.dropped = 0
	return it, lost, true
}

// overtaken reports whether an event is obsolete.
func (s *sink) overtaken(it item) bool {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	if s.gone {
		return true
	}
	for _, later := range s.queue {
		if it.slot != "" && later.slot == it.slot {
			return true
		}
	}
	return false
}

// work sends the queued events in order.
func (s *sink) work(ctx context.Context) {
	var tell teller
	defer tell.close()
	for {
		it, lost, ok := s.next()
		if !ok {
			return
		}
		now := s.notifier.Clock.Now()
		reservation := s.pace.ReserveN(now, 1)
		if !s.pause(ctx, reservation.DelayFrom(now)) && ctx.Err() != nil {
			return
		}
		result, err := s.persist(ctx, &tell, it, lost)
		s.notifier.metrics.count(it.to.Type, result)
		if err != nil {
			s.notifier.Log.Info("somebody could not be told", "landscape", s.key.landscape.String(), "notification", s.key.name, "reason", it.event.Reason, "error", hide(err.Error(), []Destination{it.to}))
			s.notifier.mu.Lock()
			s.forget(it)
			s.dropped += lost
			s.notifier.mu.Unlock()
		}
	}
}

// persist retries until the event is sent, rejected, obsolete or out of tries.
func (s *sink) persist(ctx context.Context, tell *teller, it item, lost int) (string, error) {
	backoff := wait.Backoff{Duration: firstWait, Factor: 2, Jitter: 0.3, Steps: tries, Cap: longestWait}
	for try := 1; ; try++ {
		if s.overtaken(it) {
			return superseded, nil
		}
		err := tell.send(ctx, s, it, lost)
		if err == nil {
			return sent, nil
		}
		again, least := temporary(err)
		if !again || try == tries || ctx.Err() != nil {
			return failed, err
		}
		if !s.pause(ctx, max(backoff.Step(), min(least, longestAsked))) {
			return failed, fmt.Errorf("%w; there is no time for another try", err)
		}
	}
}

// pause waits; false when the Notifier ends.
func (s *sink) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := s.notifier.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-s.notifier.ending:
	case <-ctx.Done():
	}
	return false
}

// temporary reports whether a retry may succeed, and when at the earliest.
func temporary(err error) (bool, time.Duration) {
	var answer *answerError
	if errors.As(err, &answer) {
		return answer.status >= 500 || answer.status == 408 || answer.status == 429, answer.retryAfter
	}
	return forge.Temporary(err)
}
