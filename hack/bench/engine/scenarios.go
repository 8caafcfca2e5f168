// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/hack/bench/process"
)

// contender is a program that applies bundles.
type contender interface {
	// prepare creates the objects that the contender finds when it starts.
	prepare(ctx context.Context) error
	// start starts the contender and returns when all bundles were done. The contender keeps
	// running.
	start(ctx context.Context) (time.Time, error)
	// reconcileAll makes the running contender reconcile all bundles, and returns when it was done.
	reconcileAll(ctx context.Context) (time.Time, error)
	// change declares another value in one bundle.
	change(ctx context.Context, i int, value string) error
	// repair asks the contender to repair a bundle, unless it detects drift; value is the declared
	// value.
	repair(ctx context.Context, i int, value string) error
	// usage returns the CPU time of the process so far, and its peak memory since forget.
	usage() (cpuSeconds float64, used process.Memory, err error)
	resetPeak() error
	// stop stops the contender.
	stop(ctx context.Context) error
}

// base has the common fields of contenders.
type base struct {
	arguments
	server  *server
	process *process.Process
}

func (b *base) usage() (float64, process.Memory, error) {
	if b.process == nil {
		return 0, process.Memory{}, nil
	}
	cpu, err := process.CPUSeconds(b.process.PID())
	if err != nil {
		return 0, process.Memory{}, err
	}
	used, err := process.ReadMemory(b.process.PID())
	return cpu, used, err
}

func (b *base) resetPeak() error {
	if b.process == nil {
		return nil
	}
	return process.ResetPeak(b.process.PID())
}

func (b *base) stop(ctx context.Context) error {
	if b.process == nil {
		return nil
	}
	p := b.process
	b.process = nil
	return p.Stop(ctx)
}

// names returns the names of all bundles.
func (b *base) names() []string {
	var out []string
	for i := range b.bundles {
		out = append(out, bundleName(i))
	}
	return out
}

type scenarios struct {
	arguments
	server    *server
	contender contender
}

// run runs all scenarios, one after the other in one cluster.
func (s scenarios) run(ctx context.Context) (samples map[string]sample, err error) {
	defer func() {
		if stopped := s.contender.stop(context.WithoutCancel(ctx)); err == nil {
			err = stopped
		}
	}()
	samples = map[string]sample{}
	if err := s.contender.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	for _, scenario := range []struct {
		name string
		do   func(context.Context) (sample, error)
	}{{"empty", s.measureEmpty}, {"restart", s.measureRestart}, {"again", s.measureAgain}, {"change", s.measureChanges}, {"drift", s.measureRepair}} {
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.arguments.contender, scenario.name)
		limited, cancel := context.WithTimeout(ctx, s.patience)
		samples[scenario.name], err = scenario.do(limited)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", scenario.name, err)
		}
	}
	return samples, nil
}

func (s scenarios) measureEmpty(ctx context.Context) (sample, error) {
	took, err := s.measure(ctx, true, s.bundles, s.contender.start)
	if err != nil {
		return took, err
	}
	return took, s.server.verify(ctx, s.bundles)
}

func (s scenarios) measureRestart(ctx context.Context) (sample, error) {
	if err := s.contender.stop(ctx); err != nil {
		return sample{}, err
	}
	if err := s.waitUntilQuiet(ctx); err != nil {
		return sample{}, err
	}
	return s.measure(ctx, true, s.bundles, s.contender.start)
}

func (s scenarios) measureAgain(ctx context.Context) (sample, error) {
	return s.measure(ctx, false, s.bundles, s.contender.reconcileAll)
}

// measure measures the time of do and the CPU time of the API server in this time. Requests and
// CPU time of the contender count until no more requests are sent.
func (s scenarios) measure(ctx context.Context, starts bool, units int, do func(context.Context) (time.Time, error)) (sample, error) {
	requests, err := s.server.countRequests(ctx)
	if err != nil {
		return sample{}, err
	}
	var cpu float64
	if !starts {
		if err := s.contender.resetPeak(); err != nil {
			return sample{}, err
		}
		if cpu, _, err = s.contender.usage(); err != nil {
			return sample{}, err
		}
	}
	servers, err := s.serverCPU()
	if err != nil {
		return sample{}, err
	}
	begin := time.Now()
	done, err := do(ctx)
	if err != nil {
		return sample{}, err
	}
	out := sample{Seconds: done.Sub(begin).Seconds(), Units: units}
	after, err := s.serverCPU()
	if err != nil {
		return sample{}, err
	}
	out.ServerCPUSeconds = after - servers
	if err := s.waitUntilQuiet(ctx); err != nil {
		return sample{}, err
	}
	total, used, err := s.contender.usage()
	if err != nil {
		return sample{}, err
	}
	out.CPUSeconds, out.PeakBytes, out.OwnBytes = total-cpu, used.Peak, used.WithoutFilePages
	all, err := s.server.countRequests(ctx)
	out.Requests = all.subtract(requests)
	return out, err
}

func (s scenarios) serverCPU() (float64, error) {
	var sum float64
	for _, pid := range []int{s.server.apiserver, s.server.etcd} {
		cpu, err := process.CPUSeconds(pid)
		if err != nil {
			return 0, fmt.Errorf("CPU time of the API server: %w", err)
		}
		sum += cpu
	}
	return sum, nil
}

// waitUntilQuiet waits until only the benchmark has sent requests for a second.
func (s scenarios) waitUntilQuiet(ctx context.Context) error {
	before := -1
	for same := 0; same < 2; {
		now, err := s.server.countRequests(ctx)
		if err != nil {
			return err
		}
		if same++; now.total() != before {
			same, before = 0, now.total()
		}
		select {
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("requests do not come to an end: %w", ctx.Err())
		}
	}
	return nil
}

// measureChanges measures single changes, one after the other: from before the declaration is
// written until the object has changed.
func (s scenarios) measureChanges(ctx context.Context) (sample, error) {
	objects, err := s.server.follow(ctx, "ConfigMap")
	if err != nil {
		return sample{}, err
	}
	defer objects.stop()
	var took []time.Duration
	out, err := s.measure(ctx, false, s.changes, func(ctx context.Context) (time.Time, error) {
		for n := range s.changes {
			i, value := n*7919%s.bundles, fmt.Sprintf("changed-%d", n)
			begin := time.Now()
			if err := s.contender.change(ctx, i, value); err != nil {
				return begin, err
			}
			done, err := objects.waitUntil(ctx, []string{bundleName(i)}, func(o *unstructured.Unstructured) bool { return valueOf(o) == value })
			if err != nil {
				return begin, err
			}
			took = append(took, latest(done).Sub(begin))
			if err := s.waitUntilQuiet(ctx); err != nil {
				return begin, err
			}
		}
		return time.Now(), nil
	})
	if err != nil {
		return out, err
	}
	out.Latency = latencyOf(took)
	out.Seconds = out.Latency.Median // the total has the pauses in it
	out.ServerCPUSeconds = 0         // and so has the CPU time of the API server
	return s.clearSharedValues(out), nil
}

// measureRepair measures the repair of objects that are changed all at once: from before each
// change until it is undone.
func (s scenarios) measureRepair(ctx context.Context) (sample, error) {
	objects, err := s.server.follow(ctx, "ConfigMap")
	if err != nil {
		return sample{}, err
	}
	defer objects.stop()
	n := min(s.drift, s.bundles)
	before, begins, names := objects.snapshot(), make([]time.Time, n), make([]string, n)
	var took []time.Duration
	out, err := s.measure(ctx, false, n, func(ctx context.Context) (time.Time, error) {
		err := forEachParallel(n, func(k int) error {
			i := s.bundles - 1 - k
			names[k], begins[k] = bundleName(i), time.Now()
			if err := s.server.patch(ctx, "ConfigMap", names[k], map[string]any{"data": map[string]any{"value": "drifted"}}); err != nil {
				return err
			}
			return s.contender.repair(ctx, i, valueOf(before[names[k]]))
		})
		if err != nil {
			return time.Time{}, err
		}
		done, err := objects.waitUntil(ctx, names, func(o *unstructured.Unstructured) bool {
			old := before[o.GetName()]
			return o.GetResourceVersion() != old.GetResourceVersion() && valueOf(o) == valueOf(old)
		})
		for k, name := range names {
			took = append(took, done[name].Sub(begins[k]))
		}
		return latest(done), err
	})
	if err != nil {
		return out, err
	}
	out.Latency = latencyOf(took)
	return s.clearSharedValues(out), nil
}

// clearSharedValues clears values that include the benchmark's own work: it sends the single
// changes of the floor.
func (s scenarios) clearSharedValues(out sample) sample {
	if s.arguments.contender == "floor" {
		out.CPUSeconds, out.PeakBytes, out.OwnBytes, out.Requests = 0, 0, 0, nil
	}
	return out
}
