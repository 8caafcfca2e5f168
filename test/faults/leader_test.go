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
	"github.com/pergola-dev/pergola/hack/speeds"
)

// late is the maximum delay of a request.
const late = 20 * time.Second

// candidate is a process that works while it has the lease.
type candidate struct {
	*line
	elected <-chan struct{}
	ended   chan error
}

// elect runs a process like pergola resource-manager, with shorter times.
func (w *world) elect() *candidate {
	w.Helper()
	c := &candidate{line: &line{}, ended: make(chan error, 1)}
	w.lines = append(w.lines, c.line)
	config := rest.CopyConfig(suite.config)
	config.Wrap(c.to)
	cluster, err := conventions.NewCluster("faulty", config, resourcemanager.SourceOptions(""))
	require.NoError(w, err)
	mgr, err := manager.New(config, manager.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: "gardener-resource-manager", LeaderElectionNamespace: w.ns, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: ptr.To(2 * time.Second), RenewDeadline: ptr.To(time.Second), RetryPeriod: ptr.To(200 * time.Millisecond),
	})
	require.NoError(w, err)
	c.elected = mgr.Elected()
	work, err := resourcemanager.New(resourcemanager.Options{Source: cluster, Target: cluster, Class: "seed", Namespace: w.ns, Log: w.log(), Pace: resourcemanager.Pace{StartupGrace: late}})
	require.NoError(w, err)
	require.NoError(w, mgr.Add(work))
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { c.ended <- mgr.Start(ctx); close(c.ended) }()
	w.Cleanup(func() {
		c.cut()
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
	for n := range speeds.Points(t) {
		if n > lastWrite {
			return
		}
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			if !w.succeed(n) {
				return // there are fewer writes
			}
			w.settled()
			w.withdraw("thing")
			w.settled()
		})
		t.Run(fmt.Sprint("write ", n, ", then another declaration"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			if !w.succeed(n) {
				return
			}
			// The late requests must not make it forget objects that it has to delete.
			w.may(w.objects(added, fixedAt(2))...)
			w.declare("thing", "seed", w.before())
			w.settled()
			w.withdraw("thing")
			w.settled()
		})
	}
}

// succeed changes the leader: requests of the first one, from its n-th write on, arrive when the
// second one has done more.
func (w *world) succeed(n int) bool {
	w.Helper()
	one := w.elect()
	w.await(one.elected)
	arrive, stuck, seen := make(chan struct{}), make(chan struct{}), 0
	defer func() { close(arrive); one.late.Wait() }()
	one.use(func(req *http.Request) fate {
		if strings.Contains(req.URL.Path, "/leases/") {
			return fate{unreached: seen >= n}
		}
		if req.Method == http.MethodGet || strings.HasSuffix(req.URL.Path, "/events") {
			return fate{}
		}
		if seen++; seen == n {
			close(stuck)
		}
		if seen >= n {
			return fate{late: arrive}
		}
		return fate{}
	})
	two := w.elect()
	w.declare("thing", "seed", w.before())
	w.come(stuck)
	select {
	case <-stuck:
	default:
		return false
	}
	w.await(two.elected)
	w.early = true
	elected := time.Now()
	defer func() {
		w.early = false
		assert.Less(w, time.Since(elected), late, "too slow: requests that are so late are out of question")
	}()
	assert.ErrorContains(w, <-one.ended, "leader election lost")
	one.cut() // a real process exits then
	w.settled()
	w.may(w.objects(old, fixedAt(1))...)
	w.declare("thing", "seed", w.after())
	w.settled()
	return true
}
