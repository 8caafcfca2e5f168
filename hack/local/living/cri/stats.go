package cri

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ticks of the processor time in /proc in a second, on all platforms of Linux that Go knows.
const ticks = 100

// used is what a process has used: memory now, and processor time since it began. The first process
// of a container stands for all of it.
func used(pid int) (memory, nanoseconds uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, found := strings.Cut(string(text), ") ") // the name before it may have anything
	fields := strings.Fields(rest)
	if !found || len(fields) < 22 {
		return 0, 0, fmt.Errorf("/proc/%d/stat cannot be understood", pid)
	}
	var values [3]uint64
	// utime, stime, rss of proc_pid_stat(5), which counts from the first
	for i, field := range []int{11, 12, 21} {
		if values[i], err = strconv.ParseUint(fields[field], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	return values[2] * uint64(os.Getpagesize()), (values[0] + values[1]) * (1e9 / ticks), nil
}

// stats of a container; nil for one that does not run.
func (r *Runtime) stats(c *container) *runtimeapi.ContainerStats {
	p := c.running()
	if p == nil {
		return nil
	}
	memory, nanoseconds, err := used(p.PID())
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

// ContainerStats are those of one that runs.
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

// ListContainerStats are those of all that run and that a filter lets through.
func (r *Runtime) ListContainerStats(_ context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	var out []*runtimeapi.ContainerStats
	for _, c := range r.containersOf(filter.GetPodSandboxId()) {
		if filter.GetId() != "" && filter.GetId() != c.id || !selects(filter.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		if one := r.stats(c); one != nil {
			out = append(out, one)
		}
	}
	return out, nil
}

// PodSandboxStats are those of a pod: the sum of its containers.
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

// ListPodSandboxStats are those of all pods that a filter lets through.
func (r *Runtime) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	var out []*runtimeapi.PodSandboxStats
	for _, s := range r.list() {
		if filter.GetId() != "" && filter.GetId() != s.id || !selects(filter.GetLabelSelector(), s.config.GetLabels()) {
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

// ListMetricDescriptors is for metrics of cadvisor, of which there are none.
func (r *Runtime) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics has none.
func (r *Runtime) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, nil
}
