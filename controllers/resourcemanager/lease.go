// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// lease is the lock of the leader election. It logs who holds the lease or why the lease is
// unavailable, only on each change: attempts are seconds apart.
type lease struct {
	resourcelock.LeaseLock
	log  *slog.Logger
	term time.Duration

	mu sync.Mutex
	// reported identifies the last log entry, problem is why the lease is unavailable; both are
	// empty without either.
	reported, problem string
}

// newLease creates the lock. It sends no request.
func newLease(config *rest.Config, namespace string, le LeaderElection, log *slog.Logger) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name for the lease: %w", err)
	}
	config = rest.AddUserAgent(config, "leader-election")
	// A request that hangs must not cost the lease.
	config.Timeout = max(time.Second, le.RenewDeadline.Duration/2)
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for leases: %w", err)
	}
	return &lease{log: log, term: le.LeaseDuration.Duration, LeaseLock: resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: le.ResourceName}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err): // Create follows
	case err != nil:
		l.reportFailure(ctx, "read", err)
	case record.HolderIdentity == l.Identity() || record.HolderIdentity == "":
	default:
		l.reportHolder(record)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Create(ctx, record)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		l.reportFailure(ctx, "created", err)
	}
	return l.clearReport(err)
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.clearReport(l.LeaseLock.Update(ctx, record))
}

// clearReport resets the last log entry once we hold the lease.
func (l *lease) clearReport(err error) error {
	if err == nil {
		l.updateReport("", "")
	}
	return err
}

// updateReport records a log entry and reports whether it differs from the last one.
func (l *lease) updateReport(told, problem string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.reported != told
	l.reported = told
	if changed || problem == "" {
		l.problem = problem // keep the first of several equivalent texts
	}
	return changed
}

func (l *lease) reportHolder(record *resourcelock.LeaderElectionRecord) {
	if !l.updateReport("held by "+record.HolderIdentity, "") {
		return
	}
	l.log.Info("waiting for the lease, which another instance holds", "lease", l.Describe(), "holder", record.HolderIdentity,
		"term", (time.Duration(record.LeaseDurationSeconds) * time.Second).String(), "renewed", record.RenewTime.UTC().Format(time.RFC3339),
		"hint", fmt.Sprintf("this instance takes over when the holder releases the lease or does not renew it for %s. "+
			"For another class, give this instance its own lease with --leader-election-name (leaderElection.resourceName)", l.term))
}

func (l *lease) reportFailure(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // shutting down
	}
	problem, hint := fmt.Sprintf("the lease %s cannot be %s: %s", l.Describe(), what, err), "the resource manager retries until it can"
	namespace := l.LeaseMeta.Namespace
	switch {
	case apierrors.IsNotFound(err):
		problem = fmt.Sprintf("the lease %s cannot be created: namespace %q does not exist in the source cluster", l.Describe(), namespace)
		hint = fmt.Sprintf("create it (kubectl create namespace %s), or set another one: --leader-election-namespace for the lease, --namespace for the ManagedResources", namespace)
	case apierrors.IsForbidden(err):
		hint = fmt.Sprintf("allow get, create and update of leases (coordination.k8s.io) in namespace %s of the source cluster", namespace)
	}
	if l.updateReport(what+" "+string(apierrors.ReasonForError(err)), problem) {
		l.log.Error(problem, "hint", hint)
	}
}

// ready returns why the lease is unavailable; an instance that waits for its holder is ready.
func (l *lease) ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problem == "" {
		return nil
	}
	return errors.New(l.problem)
}

// leaseEvents records the events of the leader election.
type leaseEvents struct{ manager.Manager }

// Eventf implements resourcelock.EventRecorder.
func (e leaseEvents) Eventf(o runtime.Object, eventType, reason, message string, args ...any) {
	e.GetEventRecorder("gardener-resource-manager").Eventf(o, nil, eventType, reason, "Elect", message, args...)
}

// electionLogHandler drops messages of the leader election that lease logs better, and the expected
// errors of a shutdown.
type electionLogHandler struct {
	slog.Handler
	// isShuttingDown reports whether a shutdown was requested.
	isShuttingDown func() bool
}

// Handle implements slog.Handler.
func (h electionLogHandler) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Message == "Error retrieving lease lock", r.Message == "Error initially creating lease lock":
		// logged at each attempt; see lease
		return nil
	case r.Level >= slog.LevelError && h.isShuttingDown() && recordHasText(r, leaseLostMessage, context.Canceled.Error()):
		// the lease was released, and running requests were canceled
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// recordHasText reports whether a value of a record contains one of the texts.
func recordHasText(r slog.Record, texts ...string) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		found = slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(a.Value.String(), text) })
		return !found
	})
	return found
}

// WithAttrs implements slog.Handler.
func (h electionLogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return electionLogHandler{h.Handler.WithAttrs(attrs), h.isShuttingDown}
}

// WithGroup implements slog.Handler.
func (h electionLogHandler) WithGroup(name string) slog.Handler {
	return electionLogHandler{h.Handler.WithGroup(name), h.isShuttingDown}
}

// leaseLostMessage is controller-runtime's text for a lost lease.
const leaseLostMessage = "leader election lost"
