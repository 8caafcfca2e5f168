// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/resourcemanager"
	"github.com/pergola-dev/pergola/hack/testselection"
)

// maxDelay is the maximum delay of a request.
const maxDelay = 20 * time.Second

// leaderCandidate is a process that works while it has the lease.
type leaderCandidate struct {
	*transport
	elected <-chan struct{}
	ended   chan error
}

// startCandidate runs a process like pergola resource-manager, with shorter times.
func (w *testEnvironment) startCandidate() *leaderCandidate {
	w.Helper()
	c := &leaderCandidate{transport: &transport{}, ended: make(chan error, 1)}
	w.transports = append(w.transports, c.transport)
	config := rest.CopyConfig(suite.config)
	config.Wrap(c.wrapTransport)
	cluster, err := conventions.NewCluster("faulty", config, resourcemanager.SourceOptions(""))
	require.NoError(w, err)
	mgr, err := manager.New(config, manager.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: "gardener-resource-manager", LeaderElectionNamespace: w.ns, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: ptr.To(2 * time.Second), RenewDeadline: ptr.To(time.Second), RetryPeriod: ptr.To(200 * time.Millisecond),
	})
	require.NoError(w, err)
	c.elected = mgr.Elected()
	work, err := resourcemanager.New(resourcemanager.Options{Source: cluster, Target: cluster, Class: "seed", Namespace: w.ns, Log: w.log(), Timing: resourcemanager.Timing{StartupGrace: maxDelay}})
	require.NoError(w, err)
	require.NoError(w, mgr.Add(work))
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { c.ended <- mgr.Start(ctx); close(c.ended) }()
	w.Cleanup(func() {
		c.disconnect()
		cancel()
		for range c.ended {
		}
		cluster.Close()
	})
	return c
}

// TestLeaderChangesWhileApplying: the first process loses its lease with requests in flight. They
// arrive long after the second one has finished, when the declaration is different.
func TestLeaderChangesWhileApplying(t *testing.T) {
	for n := range testselection.Points(t) {
		if n > maxWrites {
			return
		}
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			if !w.changeLeader(n) {
				return // there are fewer writes
			}
			w.requireCorrectState()
			w.deleteResource("thing")
			w.requireCorrectState()
		})
		t.Run(fmt.Sprint("write ", n, ", then another declaration"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			if !w.changeLeader(n) {
				return
			}
			// The late requests must not make it forget objects that it has to delete.
			w.allowDeletion(w.objects(addedObject, immutableObjectAt(2))...)
			w.declareResource("thing", "seed", w.initialObjects())
			w.requireCorrectState()
			w.deleteResource("thing")
			w.requireCorrectState()
		})
	}
}

// changeLeader changes the leader: requests of the first one, from its n-th write on, arrive when
// the second one has done more.
func (w *testEnvironment) changeLeader(n int) bool {
	w.Helper()
	one := w.startCandidate()
	w.waitForChannel(one.elected)
	arrive, stuck, seen := make(chan struct{}), make(chan struct{}), 0
	defer func() { close(arrive); one.delayed.Wait() }()
	one.setFaults(func(req *http.Request) requestFault {
		if strings.Contains(req.URL.Path, "/leases/") {
			return requestFault{isUnsent: seen >= n}
		}
		if req.Method == http.MethodGet || strings.HasSuffix(req.URL.Path, "/events") {
			return requestFault{}
		}
		if seen++; seen == n {
			close(stuck)
		}
		if seen >= n {
			return requestFault{until: arrive}
		}
		return requestFault{}
	})
	two := w.startCandidate()
	w.declareResource("thing", "seed", w.initialObjects())
	w.waitForEvent(stuck)
	select {
	case <-stuck:
	default:
		return false
	}
	w.waitForChannel(two.elected)
	w.hasInFlightCreates = true
	elected := time.Now()
	defer func() {
		w.hasInFlightCreates = false
		assert.Less(w, time.Since(elected), maxDelay, "too slow: requests that are so late are out of question")
	}()
	assert.ErrorContains(w, <-one.ended, "leader election lost")
	one.disconnect() // a real process exits then
	w.requireCorrectState()
	w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
	w.declareResource("thing", "seed", w.changedObjects())
	w.requireCorrectState()
	return true
}
