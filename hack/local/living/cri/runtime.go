// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/box"
	"github.com/pergola-dev/pergola/hack/local/living/images"
)

// runtimeName is the name of the runtime, as nodes show it: `local://…`.
const runtimeName = "local"

// Network creates the network namespaces of pods.
type Network interface {
	// Add creates a namespace with an address.
	Add(name string, address netip.Addr) (Namespace, error)
}

// Namespace is the network namespace of one pod.
type Namespace interface {
	Path() string
	Close() error
}

// Process is a process in its box.
type Process interface {
	PID() int
	Done() <-chan struct{}
	Wait() box.Exit
	Signal(os.Signal) error
	Kill()
	Exec(ctx context.Context, command box.Command) (box.Exit, error)
}

// Options configure a Runtime.
type Options struct {
	// Images are the available images.
	Images images.Table
	// Executables map the names in Images to files.
	Executables map[string]string
	// Folder belongs to the runtime: roots of containers, generated files.
	Folder string
	// Pods is the address range of pods.
	Pods netip.Prefix
	// Network creates pods' namespaces; pods with hostNetwork use this process's.
	Network Network
	// HostAddress is the address of the server for exec, attach and port-forward, on a random port;
	// the kubelet proxies requests to it.
	HostAddress string
	// Environment has the variables of all containers besides their own.
	Environment []string
	// Start starts a process; box.Start if nil.
	Start func(box.Spec) (Process, error)
	Clock clock.Clock
	Log   *slog.Logger
}

// Runtime is a container runtime with images.
type Runtime struct {
	options Options
	streams streaming.Server
	// closers stop the servers.
	closers []func() error
	// addresses are the addresses of pods.
	addresses addressPool

	mutex      sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

// New returns a runtime. It removes files that an earlier one left in its folder.
func New(options Options) (*Runtime, error) {
	if options.Start == nil {
		options.Start = func(spec box.Spec) (Process, error) {
			p, err := box.Start(spec)
			if err != nil {
				return nil, err
			}
			return p, nil
		}
	}
	if err := os.RemoveAll(options.Folder); err != nil {
		return nil, fmt.Errorf("removing the files of a previous runtime: %w", err)
	}
	if err := os.MkdirAll(options.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the runtime: %w", err)
	}
	r := &Runtime{options: options, addresses: addressPool{prefix: options.Pods}, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
	if err := r.serveStreams(); err != nil {
		return nil, err
	}
	return r, nil
}

// newID returns an id for a sandbox or a container.
func newID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// folder returns the folder of a sandbox or container.
func (r *Runtime) folder(id string) string { return filepath.Join(r.options.Folder, id) }

// Version returns the version of the runtime.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: runtimeName, RuntimeVersion: "0.1.0", RuntimeApiVersion: "v1"}, nil
}

// Status always reports that the runtime is ready.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

// UpdateRuntimeConfig ignores the node's pod range: Options.Pods applies.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error { return nil }

// RuntimeConfig names a cgroup driver, though there are no cgroups.
func (r *Runtime) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// Close stops all processes without a grace period and removes the network namespaces.
func (r *Runtime) Close(ctx context.Context) error { return r.CloseWithGrace(ctx, 0) }

// CloseWithGrace is Close with a grace period for the processes.
func (r *Runtime) CloseWithGrace(ctx context.Context, grace time.Duration) error {
	for _, closer := range r.closers {
		_ = closer()
	}
	var group sync.WaitGroup
	for _, c := range r.containersOf("") {
		group.Go(func() {
			if err := r.StopContainer(ctx, c.id, int64(grace/time.Second)); err != nil {
				r.options.Log.Error("a container could not be stopped", "container", c.config.GetMetadata().GetName(), "error", err)
			}
		})
	}
	group.Wait()
	for _, s := range r.listSandboxes() {
		if err := r.RemovePodSandbox(ctx, s.id); err != nil {
			return err
		}
	}
	return nil
}

// GetContainerEvents is for kubelets with evented PLEG; this one polls.
func (r *Runtime) GetContainerEvents(context.Context, chan *runtimeapi.ContainerEventResponse, func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return unsupportedError("events of containers")
}

// CheckpointContainer is not supported for processes.
func (r *Runtime) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return unsupportedError("checkpoints")
}

// UpdateContainerResources does nothing: there are no limits.
func (r *Runtime) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}

// UpdatePodSandboxResources does nothing: there are no limits.
func (r *Runtime) UpdatePodSandboxResources(context.Context, *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}
