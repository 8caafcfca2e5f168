// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/hack/bench/process"
)

// floor sends server-side apply patches and does nothing else: no bundle, no inventory, no status,
// no order.
type floor struct {
	base
	cpuSeconds  float64
	memoryUsage process.Memory
}

func (f *floor) prepare(ctx context.Context) error {
	return f.server.createNamespace(ctx, bundleNamespace)
}

// start patches all objects in a separate process, which ends afterwards.
func (f *floor) start(ctx context.Context) (time.Time, error) {
	self, err := os.Executable()
	if err != nil {
		return time.Time{}, err
	}
	p, err := process.Start(f.log, nil, self, "patch", "-kubeconfig", f.server.kubeconfig, "-bundles", fmt.Sprint(f.bundles))
	if err != nil {
		return time.Time{}, err
	}
	defer p.Kill()
	for {
		// Memory can be read while the process runs, CPU time once it has ended.
		if now, err := process.ReadMemory(p.PID()); err == nil {
			f.memoryUsage = process.Memory{Peak: max(f.memoryUsage.Peak, now.Peak), WithoutFilePages: max(f.memoryUsage.WithoutFilePages, now.WithoutFilePages)}
		}
		select {
		case <-p.Done():
			cpu, err := p.Result()
			f.cpuSeconds += cpu
			return time.Now(), err
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}

func (f *floor) reconcileAll(ctx context.Context) (time.Time, error) { return f.start(ctx) }

func (f *floor) change(ctx context.Context, i int, value string) error {
	list, err := bundleObjects(i, value)
	if err != nil {
		return err
	}
	return f.server.apply(ctx, list[0])
}

func (f *floor) repair(ctx context.Context, i int, value string) error {
	return f.change(ctx, i, value)
}

func (f *floor) usage() (float64, process.Memory, error) { return f.cpuSeconds, f.memoryUsage, nil }

func (f *floor) resetPeak() error {
	f.memoryUsage = process.Memory{}
	return nil
}

func (s *server) apply(ctx context.Context, o *unstructured.Unstructured) error {
	_, err := s.resource(o.GetKind(), o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "floor", Force: true})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// patchCommand is the process of the floor: it patches the objects of all bundles.
func patchCommand(ctx context.Context, a arguments) error {
	s, err := newServer(a)
	if err != nil {
		return err
	}
	return forEachParallel(a.bundles, func(i int) error {
		list, err := bundleObjects(i, initialValue)
		if err != nil {
			return err
		}
		for _, o := range list {
			if err := s.apply(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
}
