// SPDX-License-Identifier: Apache-2.0

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
	queueLength        = 64 // events; the oldest are dropped first
	sendRate           = 1  // a second
	sendBurst          = 10
	maxTries           = 6
	minRetryWait       = time.Second
	maxRetryWait       = time.Minute
	maxRetryAfter      = 10 * time.Minute // maximum of Retry-After
	rememberedMessages = 256              // messages that are not repeated
)

// queuedEvent is an event that waits for a destination.
type queuedEvent struct {
	event          Event
	destination    Destination
	identity       string // identifies equal messages
	replacementKey string // a later item of a slot replaces earlier ones; "" for none
}

// destinationQueue is one destination with its queue. The lock of the Notifier guards its fields.
type destinationQueue struct {
	notifier     *Notifier
	key          queueKey
	items        []queuedEvent
	droppedCount int
	isWorking    bool
	isRemoved    bool
	sentMessages *messageMemory // messages of webhooks by time
	lastStates   *messageMemory // the last state by commit

	limiter *rate.Limiter
}

func newDestinationQueue(n *Notifier, key queueKey) *destinationQueue {
	return &destinationQueue{notifier: n, key: key, sentMessages: newMessageMemory(rememberedMessages), lastStates: newMessageMemory(rememberedMessages), limiter: rate.NewLimiter(sendRate, sendBurst)}
}

// enqueue queues an event that the destination accepts, and reports whether it did. Callers hold
// the lock.
func (s *destinationQueue) enqueue(event Event, d Destination) bool {
	it := queuedEvent{event: event, destination: d}
	switch d.Type {
	case landscapev1alpha1.NotifyCommitStatus:
		if event.Phase == Neutral || event.Commit == "" {
			return false
		}
		it.replacementKey = event.Commit
		it.identity = fmt.Sprintf("%s %s %s", event.Phase, event.Reason, event.Message)
		if !s.lastStates.setState(it.replacementKey, it.identity) {
			return s.countRepeated(d)
		}
	default:
		if d.Severity == Warning && event.Severity != Warning {
			return false
		}
		it.identity = fmt.Sprintf("%s %s %s %s %s", event.Revision, event.Phase, event.Reason, event.Severity, event.Message)
		if !s.sentMessages.markSent(it.identity, event.At, s.notifier.RepeatInterval) {
			return s.countRepeated(d)
		}
	}
	for i, waiting := range s.items {
		if it.replacementKey != "" && waiting.replacementKey == it.replacementKey {
			s.items = append(s.items[:i], s.items[i+1:]...)
			s.notifier.metrics.count(d.Type, resultSuperseded)
			break
		}
	}
	if len(s.items) >= queueLength {
		s.forgetItem(s.items[0])
		s.items = s.items[1:]
		s.droppedCount++
		s.notifier.metrics.count(d.Type, resultDropped)
	}
	s.items = append(s.items, it)
	return true
}

func (s *destinationQueue) countRepeated(d Destination) bool {
	s.notifier.metrics.count(d.Type, resultRepeated)
	return false
}

// forgetItem allows an unsent message to be sent later.
func (s *destinationQueue) forgetItem(it queuedEvent) {
	if it.replacementKey != "" {
		s.lastStates.forget(it.replacementKey, it.identity)
		return
	}
	s.sentMessages.forget(it.identity, "")
}

// clear empties the queue of a removed destination. Callers hold the lock.
func (s *destinationQueue) clear() { s.items, s.isRemoved = nil, true }

// dequeue returns the oldest event, and how many were dropped since the last. It is false if the
// queue is empty: the worker ends.
func (s *destinationQueue) dequeue() (queuedEvent, int, bool) {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	if len(s.items) == 0 {
		s.isWorking = false
		return queuedEvent{}, 0, false
	}
	it := s.items[0]
	s.items = s.items[1:]
	lost := s.droppedCount
	s.droppedCount = 0
	return it, lost, true
}

// isObsolete reports whether an event is obsolete.
func (s *destinationQueue) isObsolete(it queuedEvent) bool {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	if s.isRemoved {
		return true
	}
	for _, later := range s.items {
		if it.replacementKey != "" && later.replacementKey == it.replacementKey {
			return true
		}
	}
	return false
}

// sendQueued sends the queued events in order.
func (s *destinationQueue) sendQueued(ctx context.Context) {
	var tell messageSender
	defer tell.close()
	for {
		it, lost, ok := s.dequeue()
		if !ok {
			return
		}
		now := s.notifier.Clock.Now()
		reservation := s.limiter.ReserveN(now, 1)
		if !s.sleep(ctx, reservation.DelayFrom(now)) && ctx.Err() != nil {
			return
		}
		result, err := s.sendWithRetries(ctx, &tell, it, lost)
		s.notifier.metrics.count(it.destination.Type, result)
		if err != nil {
			s.notifier.Log.Info("a notification could not be sent", "landscape", s.key.landscape.String(), "notification", s.key.name, "reason", it.event.Reason, "error", redactSecrets(err.Error(), []Destination{it.destination}))
			s.notifier.mu.Lock()
			s.forgetItem(it)
			s.droppedCount += lost
			s.notifier.mu.Unlock()
		}
	}
}

// sendWithRetries retries until the event is sent, rejected, obsolete or out of tries.
func (s *destinationQueue) sendWithRetries(ctx context.Context, tell *messageSender, it queuedEvent, lost int) (string, error) {
	backoff := wait.Backoff{Duration: minRetryWait, Factor: 2, Jitter: 0.3, Steps: maxTries, Cap: maxRetryWait}
	for try := 1; ; try++ {
		if s.isObsolete(it) {
			return resultSuperseded, nil
		}
		err := tell.send(ctx, s, it, lost)
		if err == nil {
			return resultSent, nil
		}
		again, least := isTemporary(err)
		if !again || try == maxTries || ctx.Err() != nil {
			return resultFailed, err
		}
		if !s.sleep(ctx, max(backoff.Step(), min(least, maxRetryAfter))) {
			return resultFailed, fmt.Errorf("%w; no time is left for a retry", err)
		}
	}
}

// sleep waits, and returns false when the Notifier ends.
func (s *destinationQueue) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := s.notifier.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-s.notifier.stopping:
	case <-ctx.Done():
	}
	return false
}

// isTemporary reports whether a retry may succeed, and when at the earliest.
func isTemporary(err error) (bool, time.Duration) {
	var answer *webhookStatusError
	if errors.As(err, &answer) {
		return answer.status >= 500 || answer.status == 408 || answer.status == 429, answer.retryAfter
	}
	return forge.IsTemporary(err)
}
