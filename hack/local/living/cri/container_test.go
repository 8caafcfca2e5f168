// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"

	"github.com/pergola-dev/pergola/hack/local/box"
)

// TestContainerSpec checks the environment and the arguments of a container's process.
func TestContainerSpec(t *testing.T) {
	w := newWorld(t)
	pod := w.createSandbox("p")
	_, p := w.startContainer(pod, func(c *runtimeapi.ContainerConfig) {
		c.Command, c.Args = []string{"/usr/local/bin/kube-apiserver"}, []string{"--secure-port=443"}
		c.Envs = []*runtimeapi.KeyValue{{Key: "A", Value: []byte("b=c")}, {Key: "HOME", Value: []byte("/home")}}
		c.WorkingDir = "/work"
		c.Mounts = []*runtimeapi.Mount{{HostPath: "/volumes/s", ContainerPath: "/srv/s", Readonly: true}, {HostPath: "/volumes/hosts", ContainerPath: "/etc/hosts"}, {HostPath: "/volumes/resolv", ContainerPath: "/etc/resolv.conf"}}
		c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{ReadonlyRootfs: true, Capabilities: &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN"}, DropCapabilities: []string{"ALL"}}}}
	})
	assert.Equal(t, []string{"/usr/local/bin/kube-apiserver", "--secure-port=443", "--emulated-version=1.34"}, p.spec.Args)
	assert.Equal(t, "/work", p.spec.Dir)
	assert.Equal(t, "p", p.spec.Hostname)
	assert.Equal(t, "/net/"+pod, p.spec.NetNS)
	assert.True(t, p.spec.ReadOnlyRoot)
	assert.Equal(t, []string{"NET_ADMIN"}, p.spec.Capabilities)
	assert.Contains(t, p.spec.Env, "A=b=c")
	assert.Contains(t, p.spec.Env, "HOME=/home")
	assert.NotContains(t, p.spec.Env, "HOME=/")
	assert.Contains(t, p.spec.Binds, box.Bind{Source: w.options.Executables["kube-apiserver"], Target: "/usr/local/bin/kube-apiserver", ReadOnly: true})
	assert.Contains(t, p.spec.Binds, box.Bind{Source: "/volumes/s", Target: "/srv/s", ReadOnly: true})
	assert.Contains(t, p.spec.Binds, box.Bind{Source: "/volumes/resolv", Target: "/etc/resolv.conf"}, "the kubelet's own goes before")
	assert.Len(t, p.spec.Binds, 5)
}

func TestCommandLine(t *testing.T) {
	for name, test := range map[string]struct {
		command, args, versioned, want []string
	}{
		"the image's own":              {nil, []string{"--a"}, nil, []string{"/bin/x", "--a"}},
		"the command goes before":      {[]string{"/bin/x", "run"}, []string{"--a"}, []string{"--v=1"}, []string{"/bin/x", "run", "--a", "--v=1"}},
		"who says it himself":          {[]string{"/bin/x"}, []string{"--v=2"}, []string{"--v=1"}, []string{"/bin/x", "--v=2"}},
		"in two words":                 {[]string{"/bin/x"}, []string{"--v", "2"}, []string{"--v=1"}, []string{"/bin/x", "--v", "2"}},
		"another flag that begins so":  {[]string{"/bin/x"}, []string{"--vv=2"}, []string{"--v=1"}, []string{"/bin/x", "--vv=2", "--v=1"}},
		"another program of the image": {[]string{"/bin/sh"}, []string{"-c", "x"}, []string{"--v=1"}, []string{"/bin/sh", "-c", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, commandLine([]string{"/bin/x"}, &runtimeapi.ContainerConfig{Command: test.command, Args: test.args}, test.versioned))
		})
	}
}

// TestContainerExit checks the exit of a container, and its message after a failure.
func TestContainerExit(t *testing.T) {
	w := newWorld(t)
	pod := w.createSandbox("p")
	id := w.createContainer(pod)
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_CREATED, w.status(id).GetState())
	require.NoError(t, w.StartContainer(t.Context(), id))
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, w.status(id).GetState())
	assert.Error(t, w.StartContainer(t.Context(), id), "twice")
	w.lastProcess().end(box.Exit{})
	status := w.awaitExit(id)
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, status.GetState())
	assert.Equal(t, "Completed", status.GetReason())
	assert.Equal(t, w.clock.Now().UnixNano(), status.GetFinishedAt())

	id, p := w.startContainer(pod)
	for i := range 20 {
		fmt.Fprintf(p.spec.Stderr, "line %d\n", i)
	}
	fmt.Fprint(p.spec.Stderr, `Error: unknown flag: --nonsense`)
	p.end(box.Exit{Code: 1})
	status = w.awaitExit(id)
	assert.Equal(t, int32(1), status.GetExitCode())
	assert.Equal(t, "Error", status.GetReason())
	assert.True(t, strings.HasSuffix(status.GetMessage(), "\nline 19\nError: unknown flag: --nonsense"), status.GetMessage())
	assert.True(t, strings.HasPrefix(status.GetMessage(), "line 0\nline 1\n…\nline 11\n"), status.GetMessage())

	id = w.createContainer(pod)
	w.startErr = errors.New(`starting "/bin/x" in its box: no such file`)
	assert.ErrorIs(t, w.StartContainer(t.Context(), id), w.startErr)
	status = w.awaitExit(id)
	assert.Equal(t, int32(startErrorExitCode), status.GetExitCode())
	assert.Equal(t, []string{"StartError", w.startErr.Error()}, []string{status.GetReason(), status.GetMessage()})
}

// TestLogOnAFullDisk checks that a log error is reported and the container continues.
func TestLogOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	id, p := w.startContainer(w.createSandbox("p"))
	c, err := w.container(id)
	require.NoError(t, err)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("the machine has no /dev/full")
	}
	c.log.file = full
	n, err := p.spec.Stderr.Write([]byte("no space is left\n"))
	require.NoError(t, err)
	assert.Equal(t, 17, n)
	p.end(box.Exit{Code: 1})
	assert.Regexp(t, `^no space is left\n\(its log cannot be written: .*no space left on device\)$`, w.awaitExit(id).GetMessage())
}

// TestStopContainer checks that a process gets a signal and its grace period first.
func TestStopContainer(t *testing.T) {
	w := newWorld(t)
	pod := w.createSandbox("p")
	id, p := w.startContainer(pod, func(c *runtimeapi.ContainerConfig) { c.StopSignal = runtimeapi.Signal_SIGUSR1 })
	require.NoError(t, w.StopContainer(t.Context(), id, 30))
	assert.Equal(t, []os.Signal{syscall.SIGUSR1}, p.signals)
	status := w.awaitExit(id)
	assert.Equal(t, int32(128+10), status.GetExitCode())
	assert.Empty(t, status.GetMessage(), "it did what it was told")
	require.NoError(t, w.StopContainer(t.Context(), id, 30), "it is stopped")

	id, p = w.startContainer(pod)
	p.ignoresSignals = true
	stopped := make(chan error, 1)
	go func() { stopped <- w.StopContainer(context.WithoutCancel(t.Context()), id, 30) }()
	require.Eventually(t, w.clock.HasWaiters, 10*time.Second, time.Millisecond)
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, w.status(id).GetState())
	w.clock.Step(30 * time.Second)
	require.NoError(t, <-stopped)
	assert.Equal(t, []os.Signal{syscall.SIGTERM}, p.signals)
	assert.Equal(t, int32(137), w.awaitExit(id).GetExitCode())

	_, p = w.startContainer(pod)
	require.NoError(t, w.StopPodSandbox(t.Context(), pod))
	assert.Equal(t, 137, p.Wait().Code)
	_, err := w.CreateContainer(t.Context(), pod, &runtimeapi.ContainerConfig{Image: &runtimeapi.ImageSpec{Image: "coreos/etcd"}, LogPath: "x"}, nil)
	assert.ErrorContains(t, err, "stopped")
	require.NoError(t, w.StopContainer(t.Context(), "gone", 1))
	require.NoError(t, w.RemoveContainer(t.Context(), "gone"))
}

// TestListContainers checks filters, and the objects that disappear with a pod.
func TestListContainers(t *testing.T) {
	w := newWorld(t)
	a, b := w.createSandbox("a"), w.createSandbox("b")
	one, _ := w.startContainer(a)
	two := w.createContainer(b, func(c *runtimeapi.ContainerConfig) { c.Labels = map[string]string{"container": "two"} })
	for name, test := range map[string]struct {
		filter *runtimeapi.ContainerFilter
		want   []string
	}{
		"all":            {nil, []string{one, two}},
		"of a pod":       {&runtimeapi.ContainerFilter{PodSandboxId: b}, []string{two}},
		"that run":       {&runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}, []string{one}},
		"that are made":  {&runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{}}, []string{two}},
		"by label":       {&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"container": "two"}}, []string{two}},
		"by id":          {&runtimeapi.ContainerFilter{Id: one}, []string{one}},
		"nothing is one": {&runtimeapi.ContainerFilter{Id: one, PodSandboxId: b}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := w.ListContainers(t.Context(), test.filter)
			require.NoError(t, err)
			var got []string
			for _, c := range list {
				got = append(got, c.GetId())
			}
			assert.ElementsMatch(t, test.want, got)
		})
	}
	require.NoError(t, w.RemovePodSandbox(t.Context(), a))
	list, err := w.ListContainers(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.NoDirExists(t, w.folder(a))
	assert.NoDirExists(t, w.folder(one))
	_, err = w.ContainerStatus(t.Context(), one, false)
	assert.ErrorContains(t, err, "not found")
}

// TestExecSync checks exit code, output and timeout of a command.
func TestExecSync(t *testing.T) {
	w := newWorld(t)
	id, p := w.startContainer(w.createSandbox("p"))
	p.exec = func(_ context.Context, c box.Command) (box.Exit, error) {
		assert.Equal(t, []string{"check", "it"}, c.Args)
		fmt.Fprint(c.Stdout, strings.Repeat("x", 3*maxProbeOutput))
		fmt.Fprint(c.Stderr, "it is ill")
		return box.Exit{Code: 3}, nil
	}
	out, errs, err := w.ExecSync(t.Context(), id, []string{"check", "it"}, time.Second)
	var exit utilexec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.ExitStatus())
	assert.Len(t, out, maxProbeOutput)
	assert.Equal(t, "it is ill", string(errs))
	p.exec = func(ctx context.Context, _ box.Command) (box.Exit, error) {
		<-ctx.Done()
		return box.Exit{Code: 137}, ctx.Err()
	}
	_, _, err = w.ExecSync(t.Context(), id, []string{"sleep"}, time.Millisecond)
	assert.ErrorIs(t, err, remote.ErrCommandTimedOut)
	p.end(box.Exit{})
	w.awaitExit(id)
	_, _, err = w.ExecSync(t.Context(), id, []string{"sleep"}, time.Millisecond)
	assert.ErrorContains(t, err, "does not run")
}

// TestContainerLog checks the CRI format, and a new file after the kubelet has moved the old one.
func TestContainerLog(t *testing.T) {
	w := newWorld(t)
	id, p := w.startContainer(w.createSandbox("p"))
	file := filepath.Join(w.dir, "logs", "p", "one", "0.log")
	assert.Equal(t, file, w.status(id).GetLogPath())
	fmt.Fprint(p.spec.Stdout, "first\nsec")
	fmt.Fprint(p.spec.Stdout, "ond\n"+strings.Repeat("y", maxLineLength+5)+"\n")
	require.NoError(t, os.Rename(file, file+".1"))
	require.NoError(t, w.ReopenContainerLog(t.Context(), id))
	fmt.Fprint(p.spec.Stderr, "third")
	p.end(box.Exit{})
	w.awaitExit(id)
	const at = "2026-11-23T12:00:00.000000000Z "
	old, err := os.ReadFile(file + ".1")
	require.NoError(t, err)
	assert.Equal(t, at+"stdout F first\n"+at+"stdout F second\n"+at+"stdout P "+strings.Repeat("y", maxLineLength)+"\n"+at+"stdout F yyyyy\n", string(old))
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, at+"stderr F third\n", string(now))
	assert.Error(t, w.ReopenContainerLog(t.Context(), id), "it does not run")
}
