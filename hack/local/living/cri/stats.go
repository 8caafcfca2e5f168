// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ticksPerSecond is the number of ticks of processor time per second in /proc, the same on all
// Linux platforms of Go.
const ticksPerSecond = 100

// processUsage returns a process's current memory, in bytes, and processor time since its start.
// The first process represents the whole container.
func processUsage(pid int) (memory, nanoseconds uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, found := strings.Cut(string(text), ") ") // the name before it may have any characters
	fields := strings.Fields(rest)
	if !found || len(fields) < 22 {
		return 0, 0, fmt.Errorf("/proc/%d/stat cannot be understood", pid)
	}
	var values [3]uint64
	// utime, stime, rss of proc_pid_stat(5), counted from field 3
	for i, field := range []int{11, 12, 21} {
		if values[i], err = strconv.ParseUint(fields[field], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	return values[2] * uint64(os.Getpagesize()), (values[0] + values[1]) * (1e9 / ticksPerSecond), nil
}

// stats returns the stats of a container, or nil if it does not run.
func (r *Runtime) stats(c *container) *runtimeapi.ContainerStats {
	p := c.runningProcess()
	if p == nil {
		return nil
	}
	memory, nanoseconds, err := processUsage(p.PID())
	if err != nil { // it has just ended
		return nil
	}
	at := r.options.Clock.Now().UnixNano()
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations()},
		Cpu:        &runtimeapi.CpuUsage{Timestamp: at, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: nanoseconds}},
		Memory:     &runtimeapi.MemoryUsage{Timestamp: at, WorkingSetBytes: &runtimeapi.UInt64Value{Value: memory}, RssBytes: &runtimeapi.UInt64Value{Value: memory}},
	}
}

// ContainerStats returns the stats of a running container.
func (r *Runtime) ContainerStats(_ context.Context, id string) (*runtimeapi.ContainerStats, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	if out := r.stats(c); out != nil {
		return out, nil
	}
	return nil, notFound("running container", id)
}

// ListContainerStats returns the stats of running containers that match the filter.
func (r *Runtime) ListContainerStats(_ context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	var out []*runtimeapi.ContainerStats
	for _, c := range r.containersOf(filter.GetPodSandboxId()) {
		if filter.GetId() != "" && filter.GetId() != c.id || !hasLabels(filter.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		if one := r.stats(c); one != nil {
			out = append(out, one)
		}
	}
	return out, nil
}

// PodSandboxStats returns the stats of a pod: the sum of its containers.
func (r *Runtime) PodSandboxStats(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	return r.podStats(ctx, s)
}

func (r *Runtime) podStats(ctx context.Context, s *sandbox) (*runtimeapi.PodSandboxStats, error) {
	containers, err := r.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: s.id})
	if err != nil {
		return nil, err
	}
	var memory, nanoseconds uint64
	for _, c := range containers {
		memory += c.GetMemory().GetWorkingSetBytes().GetValue()
		nanoseconds += c.GetCpu().GetUsageCoreNanoSeconds().GetValue()
	}
	at := r.options.Clock.Now().UnixNano()
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{Id: s.id, Metadata: s.config.GetMetadata(), Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations()},
		Linux: &runtimeapi.LinuxPodSandboxStats{
			Cpu:        &runtimeapi.CpuUsage{Timestamp: at, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: nanoseconds}},
			Memory:     &runtimeapi.MemoryUsage{Timestamp: at, WorkingSetBytes: &runtimeapi.UInt64Value{Value: memory}},
			Containers: containers,
		},
	}, nil
}

// ListPodSandboxStats returns the stats of all pods that match the filter.
func (r *Runtime) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	var out []*runtimeapi.PodSandboxStats
	for _, s := range r.listSandboxes() {
		if filter.GetId() != "" && filter.GetId() != s.id || !hasLabels(filter.GetLabelSelector(), s.config.GetLabels()) {
			continue
		}
		one, err := r.podStats(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// ListMetricDescriptors returns nothing: there are no metrics of cadvisor.
func (r *Runtime) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics returns nothing.
func (r *Runtime) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, nil
}
