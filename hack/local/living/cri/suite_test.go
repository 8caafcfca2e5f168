// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/hack/local/box"
	"github.com/pergola-dev/pergola/hack/local/living/images"
)

// testRuntime is a runtime with fake processes.
type testRuntime struct {
	*testing.T
	*Runtime
	clock *clocktesting.FakeClock
	dir   string

	mutex sync.Mutex
	// processes are in starting order; networks are the existing networks.
	processes []*fakeProcess
	networks  map[string]netip.Addr
	// startErr is the error of all starts.
	startErr error
}

// fakeProcess is a fake process that a test controls.
type fakeProcess struct {
	spec    box.Spec
	done    chan struct{}
	exit    box.Exit
	mutex   sync.Mutex
	signals []os.Signal
	// ignoresSignals: it ignores signals.
	ignoresSignals bool
	exec           func(ctx context.Context, command box.Command) (box.Exit, error)
}

func (p *fakeProcess) PID() int              { return os.Getpid() }
func (p *fakeProcess) Done() <-chan struct{} { return p.done }
func (p *fakeProcess) Wait() box.Exit {
	<-p.done
	return p.exit
}

func (p *fakeProcess) end(exit box.Exit) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	select {
	case <-p.done:
	default:
		p.exit = exit
		close(p.done)
	}
}

func (p *fakeProcess) Signal(signal os.Signal) error {
	p.mutex.Lock()
	p.signals = append(p.signals, signal)
	deaf := p.ignoresSignals
	p.mutex.Unlock()
	if !deaf {
		p.end(box.Exit{Code: 128 + int(signal.(syscall.Signal)), Signal: signal.(syscall.Signal)})
	}
	return nil
}

func (p *fakeProcess) Kill() { p.end(box.Exit{Code: 137, Signal: syscall.SIGKILL}) }

func (p *fakeProcess) Exec(ctx context.Context, command box.Command) (box.Exit, error) {
	return p.exec(ctx, command)
}

// namespace is a fake pod network.
type namespace struct {
	w    *testRuntime
	name string
}

func (n namespace) Path() string { return "/net/" + n.name }
func (n namespace) Close() error {
	n.w.mutex.Lock()
	defer n.w.mutex.Unlock()
	delete(n.w.networks, n.name)
	return nil
}

// Add adds a fake network.
func (w *testRuntime) Add(name string, address netip.Addr) (Namespace, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.networks[name] = address
	return namespace{w, name}, nil
}

func newWorld(t *testing.T) *testRuntime {
	t.Helper()
	w := &testRuntime{T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)), dir: t.TempDir(), networks: map[string]netip.Addr{}}
	server := filepath.Join(w.dir, "server")
	require.NoError(t, os.WriteFile(server, []byte("#!/bin/sh\necho Kubernetes v1.36.3\n"), 0o700))
	executables := map[string]string{"kube-apiserver": server, "etcd": "/bin/the-etcd"}
	table, err := images.NewTable(t.Context(), executables)
	require.NoError(t, err)
	w.Runtime, err = New(Options{
		Images: table, Executables: executables, Folder: filepath.Join(w.dir, "containers"),
		Pods: netip.MustParsePrefix("10.160.1.0/24"), Network: w, HostAddress: "127.0.0.1", Clock: w.clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Start: func(spec box.Spec) (Process, error) {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			if w.startErr != nil {
				return nil, w.startErr
			}
			p := &fakeProcess{spec: spec, done: make(chan struct{}), exec: func(context.Context, box.Command) (box.Exit, error) {
				return box.Exit{}, errors.New("nothing to execute")
			}}
			w.processes = append(w.processes, p)
			return p, nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close(context.Background())) })
	return w
}

// createSandbox creates a sandbox.
func (w *testRuntime) createSandbox(name string, change ...func(*runtimeapi.PodSandboxConfig)) string {
	w.Helper()
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "garden", Uid: name}, Hostname: name, LogDirectory: filepath.Join(w.dir, "logs", name),
		DnsConfig: &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: []string{"garden.svc.cluster.local", "cluster.local"}, Options: []string{"ndots:5"}},
		Labels:    map[string]string{"name": name},
	}
	for _, f := range change {
		f(config)
	}
	id, err := w.RunPodSandbox(w.Context(), config, "")
	require.NoError(w, err)
	return id
}

// createContainer creates a container without starting it.
func (w *testRuntime) createContainer(pod string, change ...func(*runtimeapi.ContainerConfig)) string {
	w.Helper()
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "one"}, Image: &runtimeapi.ImageSpec{Image: "registry.k8s.io/kube-apiserver:v1.34.1"}, LogPath: "one/0.log",
		Labels: map[string]string{"container": "one"},
	}
	for _, f := range change {
		f(config)
	}
	id, err := w.CreateContainer(w.Context(), pod, config, nil)
	require.NoError(w, err)
	return id
}

// startContainer creates and starts a container and returns its process.
func (w *testRuntime) startContainer(pod string, change ...func(*runtimeapi.ContainerConfig)) (string, *fakeProcess) {
	w.Helper()
	id := w.createContainer(pod, change...)
	require.NoError(w, w.StartContainer(w.Context(), id))
	return id, w.lastProcess()
}

// lastProcess returns the process that was started last.
func (w *testRuntime) lastProcess() *fakeProcess {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.processes[len(w.processes)-1]
}

// status returns the status of a container.
func (w *testRuntime) status(id string) *runtimeapi.ContainerStatus {
	w.Helper()
	response, err := w.ContainerStatus(w.Context(), id, false)
	require.NoError(w, err)
	return response.GetStatus()
}

// awaitExit waits until the end of a container is recorded and returns its status.
func (w *testRuntime) awaitExit(id string) *runtimeapi.ContainerStatus {
	w.Helper()
	c, err := w.container(id)
	require.NoError(w, err)
	select {
	case <-c.done:
	case <-time.After(10 * time.Second):
		require.Fail(w, "the container does not end")
	}
	return w.status(id)
}
