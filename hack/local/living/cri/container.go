// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pergola-dev/pergola/hack/local/box"
)

// container is one process in its box, or the box before and after the process.
type container struct {
	id, sandbox    string
	config         *runtimeapi.ContainerConfig
	created        int64
	log            *logFile
	stdout, stderr *stream
	spec           box.Spec

	mutex    sync.Mutex
	state    runtimeapi.ContainerState
	started  int64
	finished int64
	exit     box.Exit
	// reason and message of the container's status after its end.
	reason, message string
	process         Process
	// done is closed when the end is recorded.
	done chan struct{}
	// isStopRequested means that a stop was requested.
	isStopRequested bool
}

// startErrorExitCode is the exit code of containers that could not start, as in other runtimes.
const startErrorExitCode = 128

// CreateContainer prepares a container. It checks the image, in case the kubelet did not.
func (r *Runtime) CreateContainer(_ context.Context, sandboxID string, config *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (id string, err error) {
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return "", err
	}
	c := &container{id: newID(), sandbox: sandboxID, config: config, created: r.options.Clock.Now().UnixNano(), state: runtimeapi.ContainerState_CONTAINER_CREATED, done: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(r.folder(c.id))
		}
	}()
	if c.spec, err = r.boxSpec(s, c); err != nil {
		return "", err
	}
	if c.log, err = openLog(filepath.Join(s.config.GetLogDirectory(), config.GetLogPath()), r.options.Clock); err != nil {
		return "", err
	}
	c.stdout, c.stderr = &stream{name: "stdout", log: c.log}, &stream{name: "stderr", log: c.log}
	c.spec.Stdout, c.spec.Stderr = c.stdout, c.stderr
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !s.ready {
		c.log.close()
		return "", fmt.Errorf("the pod is stopped")
	}
	r.containers[c.id] = c
	return c.id, nil
}

// boxSpec returns the box of a container.
func (r *Runtime) boxSpec(s *sandbox, c *container) (box.Spec, error) {
	native, versioned, err := r.options.Images.Find(c.config.GetImage().GetImage())
	if err != nil {
		return box.Spec{}, err
	}
	root := filepath.Join(r.folder(c.id), "root")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return box.Spec{}, fmt.Errorf("creating the folder of the container: %w", err)
	}
	security := c.config.GetLinux().GetSecurityContext()
	out := box.Spec{
		Root: root, ReadOnlyRoot: security.GetReadonlyRootfs(), Dir: c.config.GetWorkingDir(), Hostname: s.hostname,
		Env: r.environment(s.hostname, c.config.GetEnvs()), Args: commandLine([]string{native.Path}, c.config, versioned), Capabilities: capabilities(security),
	}
	r.mutex.Lock()
	if s.namespace != nil {
		out.NetNS = s.namespace.Path()
	}
	r.mutex.Unlock()
	out.Binds = []box.Bind{
		{Source: r.options.Executables[native.Executable], Target: native.Path, ReadOnly: true},
		{Source: filepath.Join(r.folder(s.id), "resolv.conf"), Target: "/etc/resolv.conf"},
		{Source: filepath.Join(r.folder(s.id), "hostname"), Target: "/etc/hostname"},
	}
	for _, mount := range c.config.GetMounts() {
		out.Binds = slices.DeleteFunc(out.Binds, func(b box.Bind) bool { return b.Target == mount.GetContainerPath() })
		out.Binds = append(out.Binds, box.Bind{Source: mount.GetHostPath(), Target: mount.GetContainerPath(), ReadOnly: mount.GetReadonly()})
	}
	temporary := func(b box.Bind) bool { return b.Target == "/tmp" }
	if !out.ReadOnlyRoot && !slices.ContainsFunc(out.Binds, temporary) {
		out.Tmpfs = []string{"/tmp"} // all images have it
	}
	return out, nil
}

// environment merges the container's variables into the common variables.
func (r *Runtime) environment(hostname string, own []*runtimeapi.KeyValue) []string {
	out := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "HOSTNAME=" + hostname}
	out = append(out, r.options.Environment...)
	for _, e := range own {
		out = slices.DeleteFunc(out, func(one string) bool { return strings.HasPrefix(one, e.GetKey()+"=") })
		out = append(out, e.GetKey()+"="+string(e.GetValue()))
	}
	return out
}

// commandLine returns the command of a container, with the flags that make its executable emulate
// the version of the image.
func commandLine(entrypoint []string, config *runtimeapi.ContainerConfig, versioned []string) []string {
	out := slices.Clone(config.GetCommand())
	if len(out) == 0 {
		out = slices.Clone(entrypoint)
	}
	out = append(out, config.GetArgs()...)
	for _, argument := range versioned {
		flag, _, _ := strings.Cut(argument, "=")
		if out[0] == entrypoint[0] && !slices.ContainsFunc(out, func(one string) bool { return one == flag || strings.HasPrefix(one, flag+"=") }) {
			out = append(out, argument)
		}
	}
	return out
}

// capabilities returns the requested capabilities. Ports below 1024 need none here, and all files
// belong to one user.
func capabilities(security *runtimeapi.LinuxContainerSecurityContext) []string {
	if security.GetPrivileged() {
		return []string{"ALL"}
	}
	return security.GetCapabilities().GetAddCapabilities()
}

// container returns the container with this id.
func (r *Runtime) container(id string) (*container, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, notFound("container", id)
}

// containersOf returns the containers of a pod, or of all pods if sandbox is empty, newest first.
func (r *Runtime) containersOf(sandbox string) []*container {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var out []*container
	for _, c := range r.containers {
		if sandbox == "" || c.sandbox == sandbox {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *container) int {
		return cmp.Or(cmp.Compare(b.created, a.created), strings.Compare(a.id, b.id))
	})
	return out
}

// StartContainer starts the process. A container that cannot start ends with the reason.
func (r *Runtime) StartContainer(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED {
		return fmt.Errorf("the container was started before")
	}
	c.started = r.options.Clock.Now().UnixNano()
	process, err := r.options.Start(c.spec)
	if err != nil {
		c.recordEnd(r, box.Exit{Code: startErrorExitCode}, "StartError", err.Error())
		return err
	}
	c.process, c.state = process, runtimeapi.ContainerState_CONTAINER_RUNNING
	go func() {
		exit := process.Wait()
		c.stdout.flush()
		c.stderr.flush()
		c.mutex.Lock()
		defer c.mutex.Unlock()
		reason, message := "Completed", ""
		if exit.Code != 0 {
			reason, message = "Error", c.log.failureMessage()
			if c.isStopRequested {
				message = "" // it ended as requested
			}
		}
		c.recordEnd(r, exit, reason, message)
	}()
	return nil
}

// recordEnd records the end. The caller has the mutex.
func (c *container) recordEnd(r *Runtime, exit box.Exit, reason, message string) {
	c.state, c.exit, c.reason, c.message, c.finished = runtimeapi.ContainerState_CONTAINER_EXITED, exit, reason, message, r.options.Clock.Now().UnixNano()
	c.log.close()
	close(c.done)
}

// runningProcess returns the process, or nil if it does not run.
func (c *container) runningProcess() Process {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	return c.process
}

// kill ends the process at once.
func (c *container) kill() {
	if p := c.runningProcess(); p != nil {
		c.markStopRequested()
		p.Kill()
		<-c.done
	}
}

// markStopRequested records that a stop was requested.
func (c *container) markStopRequested() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.isStopRequested = true
}

// StopContainer sends the stop signal and kills the process after the seconds. A missing container
// counts as stopped.
func (r *Runtime) StopContainer(ctx context.Context, id string, seconds int64) error {
	c, err := r.container(id)
	if err != nil {
		return nil
	}
	p := c.runningProcess()
	if p == nil {
		return nil
	}
	c.markStopRequested()
	if seconds > 0 {
		if err := p.Signal(stopSignal(c.config.GetStopSignal())); err != nil {
			r.options.Log.Debug("a process could not be asked to end", "container", id, "error", err)
		}
		grace := r.options.Clock.NewTimer(time.Duration(seconds) * time.Second)
		defer grace.Stop()
		select {
		case <-c.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-grace.C():
		}
	}
	p.Kill()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopSignal returns the stop signal of the container's lifecycle, by default SIGTERM. The CRI's
// numbers do not distinguish real-time signals.
func stopSignal(wanted runtimeapi.Signal) os.Signal {
	for signal := syscall.Signal(1); signal < 32; signal++ {
		if name := unix.SignalName(signal); name != "" && name == wanted.String() {
			return signal
		}
	}
	return syscall.SIGTERM
}

// RemoveContainer removes a container and its files. A missing container counts as removed.
func (r *Runtime) RemoveContainer(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return nil
	}
	c.kill()
	c.log.close()
	if err := os.RemoveAll(r.folder(id)); err != nil {
		return fmt.Errorf("removing the folder of the container: %w", err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.containers, id)
	return nil
}

// ReopenContainerLog opens a new log file after the kubelet has moved the old one.
func (r *Runtime) ReopenContainerLog(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	if c.runningProcess() == nil {
		return fmt.Errorf("the container does not run")
	}
	return c.log.reopen()
}

// ListContainers returns the containers that match the filter.
func (r *Runtime) ListContainers(_ context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var out []*runtimeapi.Container
	for _, c := range r.containersOf(filter.GetPodSandboxId()) {
		c.mutex.Lock()
		state := c.state
		c.mutex.Unlock()
		if filter.GetId() != "" && filter.GetId() != c.id || filter.GetState() != nil && filter.GetState().GetState() != state || !hasLabels(filter.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		out = append(out, &runtimeapi.Container{
			Id: c.id, PodSandboxId: c.sandbox, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(), ImageRef: c.config.GetImage().GetImage(), ImageId: c.config.GetImage().GetImage(),
			State: state, CreatedAt: c.created, Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	return out, nil
}

// ContainerStatus returns the status of a container. After a failure its message has the first and
// the last lines of the output.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	image := c.config.GetImage()
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state, CreatedAt: c.created, StartedAt: c.started, FinishedAt: c.finished, ExitCode: int32(c.exit.Code),
		Image: image, ImageRef: image.GetImage(), ImageId: image.GetImage(), Reason: c.reason, Message: c.message, Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		Mounts: c.config.GetMounts(), LogPath: c.log.path,
	}}, nil
}
