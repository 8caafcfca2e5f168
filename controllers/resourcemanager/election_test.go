// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pergola-dev/pergola/api/crds"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// logBuffer is a log that a test reads.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// linesWith returns the lines that contain all words.
func (l *logBuffer) linesWith(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.text.String()) {
		holds := true
		for _, w := range words {
			holds = holds && strings.Contains(line, w)
		}
		if holds {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// runningRole is a Role with its log and its probes.
type runningRole struct {
	*logBuffer
	stop  func() error
	ready func() (int, string)
}

// startRole starts a Role; end of the result stops it and waits.
func startRole(ctx context.Context, t *testing.T, config *rest.Config, settings string) *runningRole {
	t.Helper()
	port := freePort(t)
	c, err := ReadConfiguration(writeConfiguration(t, configurationHead+fmt.Sprintf("server: {metrics: {port: -1}, healthProbes: {bindAddress: 127.0.0.1, port: %d}}\n", port)+settings))
	require.NoError(t, err)
	log := &logBuffer{}
	ctrllog.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	role := &Role{Configuration: c, Source: config, Log: slog.New(slog.NewTextHandler(log, nil)), Version: "v1"}
	go func() { ended <- role.Run(ctx) }()
	end := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { assert.NoError(t, end()) })
	return &runningRole{logBuffer: log, stop: end, ready: func() (int, string) {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", port))
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}}
}

// waitForReadiness waits for a response of the readiness probe.
func (r *runningRole) waitForReadiness(t *testing.T, status int, answer string) {
	t.Helper()
	require.Eventually(t, func() bool {
		have, body := r.ready()
		return have == status && strings.Contains(body, answer)
	}, deadline, 20*time.Millisecond, answer)
}

// TestElectionIsLogged: the first line names clusters and class. Waiting for the lease is logged
// once, with its holder. A regular shutdown is not an error.
func TestElectionIsLogged(t *testing.T) {
	s := newTestEnv(t)
	settings := fmt.Sprintf("sourceClientConnection: {namespaces: [%s]}\ncontrollers: {resourceClass: ours}\nleaderElection: {leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 100ms}\n", s.ns)
	lease := s.ns + "/gardener-resource-manager"
	s.create("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: gardener-resource-manager, namespace: NS}, " +
		"spec: {holderIdentity: somebody, leaseDurationSeconds: 4, renewTime: '2026-01-02T03:04:05.000000Z'}}")
	r := startRole(s.ctx, t, server.config, settings)
	require.Eventually(t, func() bool { return len(r.linesWith("Successfully acquired lease")) == 1 }, deadline, 20*time.Millisecond, "after 4 s")
	r.waitForReadiness(t, http.StatusOK, "ok")
	assert.Len(t, r.linesWith("msg=starting", "source="+server.config.Host, "target="+server.config.Host, "class=ours", "namespaces="+s.ns, "lease="+lease, "version=v1"), 1)
	assert.Len(t, r.linesWith("waiting for the lease", "lease="+lease, "holder=somebody", "term=4s", "renewed=2026-01-02T03:04:05Z", "does not renew it for 4s", "--leader-election-name"), 1)
	assert.Len(t, r.linesWith("waiting for the lease"), 1)
	// Events are sent in the background; the end of the process loses pending ones.
	s.eventually("the election is an event", func() bool {
		list, err := s.api.Resource(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).Namespace(s.ns).List(s.ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) > 0
	})
	require.NoError(t, r.stop())
	assert.Empty(t, r.linesWith("level=ERROR"))
}

// TestNamespaceOfTheLeaseIsMissing: a missing namespace of the lease is logged once, with a hint;
// the lease is acquired once the namespace exists.
func TestNamespaceOfTheLeaseIsMissing(t *testing.T) {
	s := newTestEnv(t)
	other := &testEnv{TB: t, ctx: s.ctx, ns: s.ns + "-later", api: s.api}
	r := startRole(s.ctx, t, server.config, fmt.Sprintf("sourceClientConnection: {namespaces: [%s]}\nleaderElection: {leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 20ms}\n", other.ns))
	r.waitForReadiness(t, http.StatusInternalServerError, fmt.Sprintf("lease: the lease %s/gardener-resource-manager cannot be created: namespace %q does not exist in the source cluster\n", other.ns, other.ns))
	require.Never(t, func() bool { return len(r.linesWith("level=ERROR")) > 1 }, 500*time.Millisecond, 50*time.Millisecond, "ten attempts and more")
	assert.Len(t, r.linesWith("level=ERROR", "does not exist in the source cluster", "kubectl create namespace "+other.ns), 1)
	other.create("{apiVersion: v1, kind: Namespace, metadata: {name: NS}}")
	r.waitForReadiness(t, http.StatusOK, "ok")
	require.Eventually(t, func() bool { return len(r.linesWith("Successfully acquired lease")) == 1 }, deadline, 20*time.Millisecond)
	require.NoError(t, r.stop())
	assert.Len(t, r.linesWith("level=ERROR"), 1)
}

// TestLeaseProblemsAreLoggedOnChange: a problem of the lease is logged when it changes.
func TestLeaseProblemsAreLoggedOnChange(t *testing.T) {
	log := &logBuffer{}
	l, err := newLease(&rest.Config{Host: "https://127.0.0.1:1"}, "garden", LeaderElection{ResourceName: "mine"}, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "mine", nil)
	for range 3 {
		l.reportFailure(t.Context(), "read", forbidden)
	}
	assert.Len(t, log.linesWith("level=ERROR", "the lease garden/mine cannot be read: ", "allow get, create and update of leases (coordination.k8s.io) in namespace garden"), 1)
	assert.ErrorContains(t, l.ready(), "the lease garden/mine cannot be read")
	for range 3 {
		_, _, err := l.Get(t.Context())
		require.Error(t, err)
	}
	assert.Len(t, log.linesWith("level=ERROR"), 2)
	assert.Len(t, log.linesWith("connection refused"), 1)
	for range 3 {
		l.reportHolder(&resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15})
	}
	assert.Len(t, log.linesWith("holder=a"), 1)
	assert.NoError(t, l.ready(), "one that waits is ready")
	l.reportHolder(&resourcelock.LeaderElectionRecord{HolderIdentity: "b", LeaseDurationSeconds: 15})
	assert.Len(t, log.linesWith("holder=b"), 1)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = l.Get(over)
	require.Error(t, err)
	assert.Len(t, log.linesWith("level=ERROR"), 2, "its end is no error")
}

// TestShutdownErrorsAreNotLogged: errors caused by a shutdown are not logged; without a shutdown
// they are.
func TestShutdownErrorsAreNotLogged(t *testing.T) {
	ending := false
	book := &logBuffer{}
	log := slog.New(electionLogHandler{slog.NewTextHandler(book, nil), func() bool { return ending }}.WithAttrs([]slog.Attr{slog.String("a", "b")}).WithGroup("g"))
	for range 2 {
		log.Error("error received after stop sequence was engaged", "err", errors.New(leaseLostMessage))
		log.Error("Unable to write event", "err", fmt.Errorf("posting: %w", context.Canceled))
		log.Error("Error retrieving lease lock", "err", errors.New("x"))
		log.Error("another error", "err", errors.New("x"))
		log.Info("context canceled")
		ending = true
	}
	assert.Len(t, book.linesWith("level=ERROR"), 4)
	assert.Len(t, book.linesWith("another error"), 2)
	assert.Len(t, book.linesWith("level=INFO"), 2)
	assert.Empty(t, book.linesWith("Error retrieving"))
}

// TestLeaseIsLost: losing the lease ends the process with a clear error.
func TestLeaseIsLost(t *testing.T) {
	s := newTestEnv(t)
	r := &runningRole{}
	log := &logBuffer{}
	c, err := ReadConfiguration(writeConfiguration(t, configurationHead+fmt.Sprintf("server: {metrics: {port: -1}, healthProbes: {port: -1}}\nsourceClientConnection: {namespaces: [%s]}\nleaderElection: {leaseDuration: 1s, renewDeadline: 500ms, retryPeriod: 50ms}\n", s.ns)))
	require.NoError(t, err)
	r.logBuffer = log
	ended := make(chan error, 1)
	go func() {
		ended <- (&Role{Configuration: c, Source: server.config, Log: slog.New(slog.NewTextHandler(log, nil))}).Run(s.ctx)
	}()
	require.Eventually(t, func() bool { return len(log.linesWith("Successfully acquired lease")) == 1 }, deadline, 20*time.Millisecond)
	leases := s.api.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace(s.ns)
	require.Eventually(t, func() bool {
		_, err := leases.Patch(s.ctx, "gardener-resource-manager", types.MergePatchType, []byte(`{"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 600, "renewTime": "2100-01-01T00:00:00.000000Z"}}`), metav1.PatchOptions{})
		select {
		case got := <-ended:
			ended <- got
			return true
		default:
			return err != nil
		}
	}, deadline, 20*time.Millisecond)
	require.ErrorContains(t, <-ended, "the lease "+s.ns+"/gardener-resource-manager is lost, because ")
}

// TestDefinitionIsMissing: without the definition of ManagedResources, a Role is not ready and says
// why; it starts once the definition exists.
func TestDefinitionIsMissing(t *testing.T) {
	config := apiserver.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	log, clock := &logBuffer{}, testingclock.NewFakeClock(time.Now())
	d, err := newDefinitionCheck(config, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	d.clock = clock
	require.ErrorContains(t, d.ready(), "is not read yet")
	watching, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.Start(watching) }()
	attempt := func() {
		require.Eventually(t, clock.HasWaiters, deadline, time.Millisecond)
		clock.Step(sourceRetryPause)
	}
	for range 3 {
		attempt()
	}
	require.ErrorContains(t, d.ready(), "the source cluster has no CustomResourceDefinition of ManagedResources (resources.gardener.cloud/v1alpha1)")
	assert.Len(t, log.linesWith("level=ERROR"), 1)
	assert.Len(t, log.linesWith("level=ERROR", "source="+config.Host, "install managedresources.resources.gardener.cloud there"), 1)

	r := startRole(ctx, t, config, "leaderElection: {leaderElect: false}\n")
	r.waitForReadiness(t, http.StatusInternalServerError, "managedresources: the source cluster has no CustomResourceDefinition of ManagedResources")
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)})
	require.NoError(t, err)
	r.waitForReadiness(t, http.StatusOK, "ok")
	assert.Len(t, r.linesWith("level=ERROR"), 1)
	assert.Len(t, r.linesWith("the source cluster serves ManagedResources now"), 1)
	attempt()
	<-d.served
	require.Eventually(t, func() bool { return d.ready() == nil }, deadline, time.Millisecond)

	// The definition is deleted again, with all ManagedResources.
	require.NoError(t, envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)}))
	require.Eventually(t, func() bool {
		if clock.HasWaiters() {
			clock.Step(definitionCheckInterval)
		}
		return d.ready() != nil
	}, deadline, 10*time.Millisecond)
	assert.Len(t, log.linesWith("level=ERROR"), 2)
	assert.ErrorContains(t, d.ready(), "has no CustomResourceDefinition")
	stop()
	require.NoError(t, <-ended)
}

// TestSourceDoesNotAnswer: an unreachable cluster is reported until ManagedResources are found;
// later, it does not count as one without their definition.
func TestSourceDoesNotAnswer(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	log, clock := &logBuffer{}, testingclock.NewFakeClock(time.Now())
	var down atomic.Bool
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(req *http.Request) (*http.Response, error) {
			if down.Load() {
				return nil, errors.New("cut off")
			}
			return next.RoundTrip(req)
		})
	})
	d, err := newDefinitionCheck(config, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	d.clock = clock
	down.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Start(ctx) }()
	asked := func() { require.Eventually(t, clock.HasWaiters, deadline, time.Millisecond) }
	asked()
	assert.ErrorContains(t, d.ready(), "cannot read the API resources of the source cluster: ")
	clock.Step(sourceRetryPause)
	asked()
	assert.Len(t, log.linesWith("level=ERROR", "cut off"), 1)
	down.Store(false)
	clock.Step(sourceRetryPause)
	asked()
	require.NoError(t, d.ready())
	down.Store(true)
	clock.Step(definitionCheckInterval)
	asked()
	require.NoError(t, d.ready())
	assert.Len(t, log.linesWith("level=ERROR"), 1)
	assert.Len(t, log.linesWith("serves ManagedResources now"), 1)
	stop()
	require.NoError(t, <-ended)
}

// roundTripFunc is a connection that a test can cut.
type roundTripFunc func(*http.Request) (*http.Response, error)

func (w roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return w(req) }
