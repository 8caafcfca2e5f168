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

// Options of a Notifier. The zero value of each has a default.
type Options struct {
	// Recorder of Kubernetes events (events.k8s.io); nil: none.
	Recorder events.EventRecorder
	Log      logr.Logger
	Clock    clock.Clock
	// TargetURL returns the link of a commit status; nil, or "": none.
	TargetURL func(Event) string
	// Proxy for webhooks and forges, as http.ProxyFromEnvironment; nil: none.
	Proxy func(*http.Request) (*url.URL, error)
	// Repeat is the minimum time between equal webhooks or events. Default: 10m.
	Repeat time.Duration
	// Grace is the time to send the rest once the context of Start has ended. Default: 5s.
	Grace time.Duration
}

// Notifier sends events to destinations. It is a Runnable of a manager and a prometheus.Collector.
type Notifier struct {
	Options
	metrics *metrics
	records *records

	mu      sync.Mutex
	sinks   map[sinkKey]*sink
	work    context.Context // nil until Start
	ending  chan struct{}   // closed when the context of Start ends
	over    bool            // further events are ignored
	workers sync.WaitGroup
}

// sinkKey is one destination of one Landscape.
type sinkKey struct {
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
	if options.Repeat <= 0 {
		options.Repeat = 10 * time.Minute
	}
	if options.Grace <= 0 {
		options.Grace = 5 * time.Second
	}
	n := &Notifier{Options: options, metrics: newMetrics(), sinks: map[sinkKey]*sink{}, ending: make(chan struct{})}
	n.records = newRecords(options.Recorder, options.Clock, options.Repeat, n.metrics)
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
	event = redacted(event, to)
	n.records.record(event)

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return
	}
	wanted := map[string]bool{}
	for _, d := range to {
		wanted[d.Name] = true
		key := sinkKey{event.Landscape, d.Name}
		s := n.sinks[key]
		if s == nil {
			s = newSink(n, key)
			n.sinks[key] = s
		}
		if s.take(event, d) {
			n.run(s)
		}
	}
	for key, s := range n.sinks {
		if key.landscape == event.Landscape && !wanted[key.name] {
			s.leave()
			delete(n.sinks, key)
		}
	}
}

// run starts a sink's worker if it has events and does not run. Callers hold the lock.
func (n *Notifier) run(s *sink) {
	if n.work == nil || s.working || len(s.queue) == 0 {
		return
	}
	s.working = true
	n.workers.Go(func() { s.work(n.work) })
}

// Forget drops the queued events of a Landscape that no longer exists.
func (n *Notifier) Forget(landscape types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, s := range n.sinks {
		if key.landscape == landscape {
			s.leave()
			delete(n.sinks, key)
		}
	}
	n.records.forget(landscape)
}

// Start sends events until the context ends. Queued events then have Grace; all workers have ended
// when it returns.
func (n *Notifier) Start(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	n.mu.Lock()
	n.work = work
	for _, s := range n.sinks {
		n.run(s)
	}
	n.mu.Unlock()

	<-ctx.Done()
	n.mu.Lock()
	n.over = true
	close(n.ending)
	n.mu.Unlock()
	done := make(chan struct{})
	go func() {
		n.workers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-n.Clock.After(n.Grace):
		n.Log.Info("what waits to be told is given up: there is no time for it any more")
		cancel()
		<-done
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, s := range n.sinks {
		s.leave()
		delete(n.sinks, key)
	}
	return nil
}
