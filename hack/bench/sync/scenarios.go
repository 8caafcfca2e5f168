// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/hack/bench/process"
	"github.com/pergola-dev/pergola/source/receiver"
)

// sample is the result of a scenario; hack/bench reads it.
type sample struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakBytes  int64   `json:"peakBytes"`
	// OwnBytes is the peak without pages of files.
	OwnBytes int64          `json:"ownBytes,omitempty"`
	Requests map[string]int `json:"requests,omitzero"`
	// Units is the number of changes that the requests were for.
	Units   int      `json:"units,omitempty"`
	Latency *latency `json:"latency,omitempty"`
}

// latency is the latency of single changes, in seconds.
type latency struct {
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
	Count  int     `json:"count"`
}

func latencyOf(took []time.Duration) *latency {
	if len(took) == 0 {
		return nil
	}
	took = slices.Sorted(slices.Values(took))
	at := func(share float64) float64 { return took[min(len(took)-1, int(share*float64(len(took))))].Seconds() }
	return &latency{Median: at(0.5), P95: at(0.95), P99: at(0.99), Max: at(1), Count: len(took)}
}

// rarePollInterval is a polling interval without polls during a measurement.
const rarePollInterval = time.Hour

// frequentPollInterval is the polling interval where polling is measured.
const frequentPollInterval = time.Second

// idleTimeout limits the time until the operator is idle after it reports that all is applied.
const idleTimeout = 15 * time.Second

// measure runs the operator through all scenarios.
func measure(ctx context.Context, a arguments) (map[string]sample, error) {
	w, err := newEnvironment(ctx, a)
	if err != nil {
		return nil, err
	}
	defer w.close()
	out := map[string]sample{}
	note := func(name string, s sample, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out[name] = s
		fmt.Fprintf(os.Stderr, "%s: %.2f s, %.2f CPU s, peak %d MB (%d of its own)\n", name, s.Seconds, s.CPUSeconds, s.PeakBytes>>20, s.OwnBytes>>20)
		return nil
	}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	if err := w.waitUntilIdle(ctx); err != nil {
		return nil, err
	}
	s, err := w.measureDuring(func() error { return w.createAndWaitUntilApplied(ctx) })
	if err := note("first", s, err); err != nil {
		return nil, err
	}
	if a.garden {
		if err := w.measureGarden(ctx, note); err != nil {
			return nil, err
		}
		return out, w.operator.Stop(ctx)
	}
	if err := w.measureIdle(ctx, rarePollInterval, note, "idle"); err != nil {
		return nil, err
	}
	if a.pushes > 0 {
		if err := w.measurePushes(ctx, note); err != nil {
			return nil, err
		}
	}
	if err := w.requireReview(ctx); err != nil {
		return nil, err
	}
	s, err = w.measureDuring(func() error { return w.pushOverlay(ctx) })
	if err := note("reviewed", s, err); err != nil {
		return nil, err
	}
	s, err = w.restart(ctx)
	if err := note("restart", s, err); err != nil {
		return nil, err
	}
	return out, w.operator.Stop(ctx)
}

// measurePushes measures pushes with webhook and polling, and polling while nothing changes.
func (w *environment) measurePushes(ctx context.Context, note func(string, sample, error) error) error {
	floor := &[]time.Duration{}
	s, err := w.pushRepeatedly(ctx, floor, func(commit string) error {
		_, followed, err := w.receiverClient.RequestSync(ctx, namespace+"/"+landscapeName+"/push", receiver.Push{Ref: "refs/heads/" + branch, Commit: commit}, nil)
		if err == nil && !followed {
			err = fmt.Errorf("the push was ignored")
		}
		return err
	})
	if err := note("webhook", s, err); err != nil {
		return err
	}
	if err := note("floor", sample{Latency: latencyOf(*floor), Units: len(*floor), Seconds: latencyOf(*floor).Median}, nil); err != nil {
		return err
	}
	if err := w.setPollInterval(ctx, frequentPollInterval); err != nil {
		return err
	}
	s, err = w.pushRepeatedly(ctx, nil, func(string) error { return nil })
	if err := note("polling", s, err); err != nil {
		return err
	}
	if err := w.measureIdle(ctx, frequentPollInterval, note, "polls"); err != nil {
		return err
	}
	return w.setPollInterval(ctx, rarePollInterval)
}

// measureDuring measures CPU time, memory and requests of the operator during do.
func (w *environment) measureDuring(do func() error) (sample, error) {
	pid := w.operator.PID()
	if err := process.ResetPeak(pid); err != nil {
		return sample{}, err
	}
	before, err := process.CPUSeconds(pid)
	if err != nil {
		return sample{}, err
	}
	requests, start := w.countRequests(), time.Now()
	if err := do(); err != nil {
		return sample{}, err
	}
	out := sample{Seconds: time.Since(start).Seconds(), Requests: subtractCounts(w.countRequests(), requests)}
	after, err := process.CPUSeconds(pid)
	if err != nil {
		return sample{}, err
	}
	used, err := process.ReadMemory(pid)
	out.CPUSeconds, out.PeakBytes, out.OwnBytes = after-before, used.Peak, used.WithoutFilePages
	return out, err
}

// countRequests returns the number of requests so far, to both clusters and to the Git server.
func (w *environment) countRequests() map[string]int {
	out := w.repository.snapshot()
	for _, d := range []*countingProxy{w.runtime, w.virtual} {
		for key, n := range d.snapshot() {
			out[key] += n
		}
	}
	return out
}

func subtractCounts(now, before map[string]int) map[string]int {
	out := map[string]int{}
	for key, n := range now {
		if d := n - before[key]; d > 0 {
			out[key] = d
		}
	}
	return out
}

// createAndWaitUntilApplied creates the Landscape and waits until all is applied.
func (w *environment) createAndWaitUntilApplied(ctx context.Context) error {
	commit, err := git(ctx, "-C", w.repository.work, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if err := w.createLandscape(ctx, rarePollInterval); err != nil {
		return err
	}
	return w.waitUntilApplied(ctx, commit, "")
}

// measureIdle measures the operator while nothing changes, once it is idle.
func (w *environment) measureIdle(ctx context.Context, interval time.Duration, note func(string, sample, error) error, name string) error {
	if interval > w.idle {
		if err := w.waitUntilIdle(ctx); err != nil {
			return err
		}
	}
	s, err := w.measureDuring(func() error { return sleep(ctx, w.idle) })
	return note(name, s, err)
}

// waitUntilIdle waits until the operator is idle, at most for settling: it judges conditions
// repeatedly, which takes no requests.
func (w *environment) waitUntilIdle(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	_, err := w.operator.WaitUntilIdle(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// pushRepeatedly changes one Shoot after the other. It measures from the commit in the repository
// to the request to the virtual garden to apply the Shoot.
func (w *environment) pushRepeatedly(ctx context.Context, floor *[]time.Duration, tell func(commit string) error) (sample, error) {
	var took []time.Duration
	s, err := w.measureDuring(func() error {
		for i := range w.arguments.pushes {
			d, commit, err := w.pushChange(ctx, tell)
			if err != nil {
				return fmt.Errorf("push %d: %w", i+1, err)
			}
			took = append(took, d)
			if err := w.waitUntilApplied(ctx, commit, ""); err != nil {
				return err
			}
			if floor == nil {
				// Push at different moments between two polls.
				if err := sleep(ctx, time.Duration(i*370)*time.Millisecond%frequentPollInterval); err != nil {
					return err
				}
				continue
			}
			d, err = w.measurePushFloor(ctx, i)
			if err != nil {
				return err
			}
			*floor = append(*floor, d)
		}
		return nil
	})
	if err != nil {
		return sample{}, err
	}
	s.Latency, s.Units = latencyOf(took), len(took)
	s.Seconds = s.Latency.Median
	return s, nil
}

func (w *environment) pushChange(ctx context.Context, tell func(commit string) error) (time.Duration, string, error) {
	w.changes++
	if err := w.repository.change(w.changes); err != nil {
		return 0, "", err
	}
	applied := w.virtual.nextApply("shoots")
	commit, err := w.repository.push(ctx, fmt.Sprintf("change %d", w.changes))
	if err != nil {
		return 0, "", err
	}
	start := time.Now()
	if err := tell(commit); err != nil {
		return 0, "", err
	}
	select {
	case at := <-applied:
		return at.Sub(start), commit, nil
	case <-w.operator.Done():
		return 0, "", w.operator.CheckAlive()
	case <-time.After(waitTimeout):
		return 0, "", fmt.Errorf("no Shoot is applied")
	case <-ctx.Done():
		return 0, "", ctx.Err()
	}
}

// measurePushFloor does the indispensable work: fetch the commit, and send one patch.
func (w *environment) measurePushFloor(ctx context.Context, i int) (time.Duration, error) {
	start := time.Now()
	if _, err := git(ctx, "-C", w.clone, "-c", benchHeaderConfig, "fetch", "-q", "origin", branch); err != nil {
		return 0, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "floor"}}
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"floor"},"data":{"change":"%d"}}`, i)
	err := w.virtualClient.Patch(ctx, cm, client.RawPatch(types.ApplyYAMLPatchType, body), client.FieldOwner("floor"), client.ForceOwnership)
	return time.Since(start), err
}

// pushOverlay pushes an overlay of all Shoots and waits until it is applied. To find what a
// reviewer could see, the operator renders all Shoots, before and after.
func (w *environment) pushOverlay(ctx context.Context) error {
	for name, text := range map[string]string{
		"kustomization.yaml": "patches: [{path: patch.yaml}]\n",
		"patch.yaml":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kube-scheduler, annotations: {bench: everywhere}}\n",
	} {
		if err := w.repository.writeFile(filepath.Join("components", "shoot", "kube-scheduler", name), text); err != nil {
			return err
		}
	}
	commit, err := w.repository.push(ctx, "an overlay of all Shoots")
	if err != nil {
		return err
	}
	if _, _, err := w.receiverClient.RequestSync(ctx, namespace+"/"+landscapeName+"/push", receiver.Push{Ref: "refs/heads/" + branch, Commit: commit}, nil); err != nil {
		return err
	}
	return w.waitUntilApplied(ctx, commit, "")
}

// restart starts a new process, for which nothing has changed.
func (w *environment) restart(ctx context.Context) (sample, error) {
	if err := w.operator.Stop(ctx); err != nil {
		return sample{}, err
	}
	commit, err := git(ctx, "-C", w.repository.work, "rev-parse", "HEAD")
	if err != nil {
		return sample{}, err
	}
	// The status of the previous process says nothing about this one: request a sync.
	request, err := w.requestSync(ctx)
	if err != nil {
		return sample{}, err
	}
	requests, start := w.countRequests(), time.Now()
	if err := w.start(ctx); err != nil {
		return sample{}, err
	}
	if err := w.waitUntilApplied(ctx, commit, request); err != nil {
		return sample{}, err
	}
	out := sample{Seconds: time.Since(start).Seconds(), Requests: subtractCounts(w.countRequests(), requests)}
	if out.CPUSeconds, err = process.CPUSeconds(w.operator.PID()); err != nil {
		return sample{}, err
	}
	used, err := process.ReadMemory(w.operator.PID())
	out.PeakBytes, out.OwnBytes = used.Peak, used.WithoutFilePages
	return out, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
