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

// name of the runtime, as nodes show it: `local://…`.
const name = "local"

// Network makes the network namespaces of pods.
type Network interface {
	// Add makes one with an address and gives the path by which processes join it.
	Add(name string, address netip.Addr) (Namespace, error)
}

// Namespace is that of one pod.
type Namespace interface {
	Path() string
	Close() error
}

// Process is one in its box.
type Process interface {
	PID() int
	Done() <-chan struct{}
	Wait() box.Exit
	Signal(os.Signal) error
	Kill()
	Exec(ctx context.Context, command box.Command) (box.Exit, error)
}

// Options of a Runtime.
type Options struct {
	// Images are those that there are.
	Images images.Table
	// Executables are the files of the table's executables.
	Executables map[string]string
	// Folder is the runtime's own: roots of containers, generated files.
	Folder string
	// Pods is the range of which pods have their addresses.
	Pods netip.Prefix
	// Network makes their namespaces; those with hostNetwork are in the one of this process.
	Network Network
	// HostAddress is where the server of exec, attach and port-forward listens, on a port of its
	// own: the kubelet passes them on.
	HostAddress string
	// Environment is what every container has besides its own.
	Environment []string
	// Start starts a process; nil for box.Start.
	Start func(box.Spec) (Process, error)
	Clock clock.Clock
	Log   *slog.Logger
}

// Runtime is a container runtime and has images.
type Runtime struct {
	options Options
	streams streaming.Server
	// closers end what serves.
	closers []func() error
	// addresses that pods have.
	addresses pool

	mutex      sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

// New makes a runtime. What a former one has left in its folder is removed.
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
		return nil, fmt.Errorf("removing what a former runtime has left: %w", err)
	}
	if err := os.MkdirAll(options.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the runtime: %w", err)
	}
	r := &Runtime{options: options, addresses: pool{prefix: options.Pods}, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
	if err := r.serveStreams(); err != nil {
		return nil, err
	}
	return r, nil
}

// newID is one for a sandbox or a container.
func newID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

// folder of a sandbox or container.
func (r *Runtime) folder(id string) string { return filepath.Join(r.options.Folder, id) }

// Version of the runtime.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: name, RuntimeVersion: "0.1.0", RuntimeApiVersion: "v1"}, nil
}

// Status says that it is ready, which it is from the beginning.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

// UpdateRuntimeConfig takes the range of pods that the node got, which is not the one that counts
// here.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error { return nil }

// RuntimeConfig has nothing: there are no cgroups.
func (r *Runtime) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// Close asks all processes to end, ends them when the grace is over, and takes the network
// namespaces away.
func (r *Runtime) Close(ctx context.Context) error { return r.CloseIn(ctx, 0) }

// CloseIn gives the processes some time.
func (r *Runtime) CloseIn(ctx context.Context, grace time.Duration) error {
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
	for _, s := range r.list() {
		if err := r.RemovePodSandbox(ctx, s.id); err != nil {
			return err
		}
	}
	return nil
}

// GetContainerEvents is for kubelets that do not look by themselves; this one does.
func (r *Runtime) GetContainerEvents(context.Context, chan *runtimeapi.ContainerEventResponse, func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return unsupported("events of containers")
}

// CheckpointContainer cannot be done with processes.
func (r *Runtime) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return unsupported("checkpoints")
}

// UpdateContainerResources has nothing to limit with.
func (r *Runtime) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}

// UpdatePodSandboxResources has nothing to limit with.
func (r *Runtime) UpdatePodSandboxResources(context.Context, *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}
