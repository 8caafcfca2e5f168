// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/source/receiver"
)

// apiServerDeployment is the Deployment whose flag changes.
const apiServerDeployment = "virtual-garden-kube-apiserver"

// measureGarden measures a reconciliation of the Garden that changes nothing, and the time from a
// change of a flag to its API server.
func (w *environment) measureGarden(ctx context.Context, note func(string, sample, error) error) error {
	if err := w.waitUntilIdle(ctx); err != nil {
		return err
	}
	commit, err := git(ctx, "-C", w.repository.work, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	s, err := w.measureDuring(func() error {
		request, err := w.requestSync(ctx)
		if err != nil {
			return err
		}
		return w.waitUntilApplied(ctx, commit, request)
	})
	if err := note("unchanged", s, err); err != nil {
		return err
	}
	s, err = w.measureListFloor(ctx)
	if err := note("unchanged-floor", s, err); err != nil {
		return err
	}
	if w.arguments.pushes == 0 {
		return nil
	}
	floor := []time.Duration{}
	s, err = w.measureFlagPushes(ctx, &floor)
	if err := note("flag", s, err); err != nil {
		return err
	}
	return note("flag-floor", sample{Latency: latencyOf(floor), Units: len(floor), Seconds: latencyOf(floor).Median}, nil)
}

// measureListFloor is the floor of a reconciliation that changes nothing, without a cache: one list
// of each kind that the Garden has objects of.
func (w *environment) measureListFloor(ctx context.Context) (sample, error) {
	rendered, err := w.renderGarden(ctx)
	if err != nil {
		return sample{}, err
	}
	out, start, before, seen := sample{Requests: map[string]int{}}, time.Now(), cpuSeconds(), map[string]bool{}
	for _, b := range rendered {
		c := w.client
		if b.Cluster == render.ClusterVirtual {
			c = w.virtualClient
		}
		for _, o := range b.Objects {
			ref := apply.RefOf(o.Unstructured)
			key := fmt.Sprint(b.Cluster, " ", ref.APIVersion, " ", ref.Kind)
			if seen[key] {
				continue
			}
			seen[key] = true
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(ref.GVK())
			if err := c.List(ctx, list); err != nil {
				return out, fmt.Errorf("list %s: %w", key, err)
			}
			out.Requests["list"]++
		}
	}
	out.Seconds, out.CPUSeconds = time.Since(start).Seconds(), cpuSeconds()-before
	return out, nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// measureFlagPushes changes a flag of the API server in one commit after the other. It measures
// from the commit in the repository to the request to the runtime cluster to change the Deployment.
func (w *environment) measureFlagPushes(ctx context.Context, floor *[]time.Duration) (sample, error) {
	var took []time.Duration
	s, err := w.measureDuring(func() error {
		for i := range w.arguments.pushes {
			if err := w.changeFlag(i); err != nil {
				return err
			}
			applied := w.runtime.nextApply("deployments/" + apiServerDeployment)
			commit, err := w.repository.push(ctx, fmt.Sprintf("flag %d", i))
			if err != nil {
				return err
			}
			start := time.Now()
			if _, _, err := w.receiverClient.RequestSync(ctx, namespace+"/"+landscapeName+"/push", receiver.Push{Ref: "refs/heads/" + branch, Commit: commit}, nil); err != nil {
				return err
			}
			select {
			case at := <-applied:
				took = append(took, at.Sub(start))
			case <-w.operator.Done():
				return w.operator.CheckAlive()
			case <-time.After(waitTimeout):
				return fmt.Errorf("the API server is not changed")
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := w.waitUntilApplied(ctx, commit, ""); err != nil {
				return err
			}
			d, err := w.measureFlagFloor(ctx)
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

// changeFlag changes the value of a flag of the API server.
func (w *environment) changeFlag(i int) error {
	file := filepath.Join(w.repository.work, "garden.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	flag := regexp.MustCompile(`maxNonMutatingInflight: \d+`)
	if !flag.Match(data) {
		return fmt.Errorf("%s has no maxNonMutatingInflight", file)
	}
	return os.WriteFile(file, flag.ReplaceAll(data, fmt.Appendf(nil, "maxNonMutatingInflight: %d", 801+i)), 0o600)
}

// measureFlagFloor does the indispensable work: fetch the commit, render the Garden, patch the
// Deployment. The patch changes nothing: the operator has sent it before.
func (w *environment) measureFlagFloor(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	if _, err := git(ctx, "-C", w.clone, "-c", benchHeaderConfig, "fetch", "-q", "origin", branch); err != nil {
		return 0, err
	}
	rendered, err := w.renderGarden(ctx)
	if err != nil {
		return 0, err
	}
	for _, b := range rendered {
		for _, o := range b.Objects {
			if o.GetKind() == "Deployment" && o.GetName() == apiServerDeployment {
				body, err := o.MarshalJSON()
				if err != nil {
					return 0, err
				}
				live := &unstructured.Unstructured{}
				live.SetGroupVersionKind(o.GroupVersionKind())
				live.SetNamespace(o.GetNamespace())
				live.SetName(o.GetName())
				err = w.client.Patch(ctx, live, client.RawPatch(types.ApplyYAMLPatchType, body), client.FieldOwner("floor"), client.ForceOwnership, client.DryRunAll)
				return time.Since(start), err
			}
		}
	}
	return 0, fmt.Errorf("the Garden has no Deployment %s", apiServerDeployment)
}

// renderGarden loads and renders the Garden of the work tree; measurements include both.
func (w *environment) renderGarden(ctx context.Context) ([]render.Bundle, error) {
	l, _, err := landscapes.Load(ctx, w.repository.work, landscapes.Options{})
	if err != nil {
		return nil, err
	}
	return render.All(l, components.FS, nil)
}
