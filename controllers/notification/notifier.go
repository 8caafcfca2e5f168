// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
)

// Options are the options of a Notifier. The zero value of each has a default.
type Options struct {
	// Recorder is the recorder of Kubernetes events (events.k8s.io); nil: none.
	Recorder events.EventRecorder
	Log      logr.Logger
	Clock    clock.Clock
	// TargetURL returns the link of a commit status; nil, or "": none.
	TargetURL func(Event) string
	// Proxy is the proxy for webhooks and forges, as http.ProxyFromEnvironment; nil: none.
	Proxy func(*http.Request) (*url.URL, error)
	// RepeatInterval is the minimum time between equal webhooks or events. The default is 10m.
	RepeatInterval time.Duration
	// GracePeriod is the time to send the rest once the context of Start has ended. The default is
	// 5s.
	GracePeriod time.Duration
}

// Notifier sends events to destinations. It is a Runnable of a manager and a prometheus.Collector.
type Notifier struct {
	Options
	metrics      *metrics
	eventRecords *eventRecords

	mu          sync.Mutex
	queues      map[queueKey]*destinationQueue
	workContext context.Context // nil until Start
	stopping    chan struct{}   // closed when the context of Start ends
	isStopped   bool            // further events are ignored
	workers     sync.WaitGroup
}

// queueKey is one destination of one Landscape.
type queueKey struct {
	landscape types.NamespacedName
	name      string
}

// New returns a Notifier. Events before Start wait for it.
func New(options Options) *Notifier {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	if options.RepeatInterval <= 0 {
		options.RepeatInterval = 10 * time.Minute
	}
	if options.GracePeriod <= 0 {
		options.GracePeriod = 5 * time.Second
	}
	n := &Notifier{Options: options, metrics: newMetrics(), queues: map[queueKey]*destinationQueue{}, stopping: make(chan struct{})}
	n.eventRecords = newEventRecords(options.Recorder, options.Clock, options.RepeatInterval, n.metrics)
	return n
}

// Notify queues an event and returns at once. to are all destinations of the Landscape: earlier
// ones that are missing here are forgotten.
func (n *Notifier) Notify(event Event, to []Destination) {
	if event.At.IsZero() {
		event.At = n.Clock.Now()
	}
	if event.Severity == "" {
		event.Severity = Info
	}
	event = redactEvent(event, to)
	n.eventRecords.recordEvent(event)

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isStopped {
		return
	}
	wanted := map[string]bool{}
	for _, d := range to {
		wanted[d.Name] = true
		key := queueKey{event.Landscape, d.Name}
		s := n.queues[key]
		if s == nil {
			s = newDestinationQueue(n, key)
			n.queues[key] = s
		}
		if s.enqueue(event, d) {
			n.startQueue(s)
		}
	}
	for key, s := range n.queues {
		if key.landscape == event.Landscape && !wanted[key.name] {
			s.clear()
			delete(n.queues, key)
		}
	}
}

// startQueue starts a sink's worker if it has events and does not run. Callers hold the lock.
func (n *Notifier) startQueue(s *destinationQueue) {
	if n.workContext == nil || s.isWorking || len(s.items) == 0 {
		return
	}
	s.isWorking = true
	n.workers.Go(func() { s.sendQueued(n.workContext) })
}

// Forget drops the queued events of a Landscape that no longer exists.
func (n *Notifier) Forget(landscape types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, s := range n.queues {
		if key.landscape == landscape {
			s.clear()
			delete(n.queues, key)
		}
	}
	n.eventRecords.forgetLandscape(landscape)
}

// Start sends events until the context ends. Queued events then have Grace; all workers have ended
// when it returns.
func (n *Notifier) Start(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	n.mu.Lock()
	n.workContext = work
	for _, s := range n.queues {
		n.startQueue(s)
	}
	n.mu.Unlock()

	<-ctx.Done()
	n.mu.Lock()
	n.isStopped = true
	close(n.stopping)
	n.mu.Unlock()
	done := make(chan struct{})
	go func() {
		n.workers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-n.Clock.After(n.GracePeriod):
		n.Log.Info("unsent notifications are dropped: the grace period is over")
		cancel()
		<-done
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, s := range n.queues {
		s.clear()
		delete(n.queues, key)
	}
	return nil
}
