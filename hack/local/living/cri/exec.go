// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"

	"github.com/pergola-dev/pergola/hack/local/box"
)

// maxProbeOutput is the maximum output of a probe, in bytes; the rest is dropped.
const maxProbeOutput = 16 << 10

// limitedBuffer is a buffer that drops everything after the first maxProbeOutput bytes.
type limitedBuffer struct{ bytes.Buffer }

func (l *limitedBuffer) Write(data []byte) (int, error) {
	if room := maxProbeOutput - l.Len(); room > 0 {
		l.Buffer.Write(data[:min(len(data), room)])
	}
	return len(data), nil
}

// ExecSync runs a command in a container, for exec probes and lifecycle hooks, and returns its
// output.
func (r *Runtime) ExecSync(ctx context.Context, id string, args []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	c, err := r.container(id)
	if err != nil {
		return nil, nil, err
	}
	p := c.runningProcess()
	if p == nil {
		return nil, nil, fmt.Errorf("the container does not run")
	}
	limit := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var out, errs limitedBuffer
	exit, err := p.Exec(limit, box.Command{Args: args, Env: c.spec.Env, Dir: c.spec.Dir, Stdout: &out, Stderr: &errs})
	switch {
	case ctx.Err() == nil && errors.Is(limit.Err(), context.DeadlineExceeded):
		return nil, nil, fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut, strings.Join(args, " "), timeout)
	case err != nil:
		return nil, nil, err
	case exit.Code != 0:
		err = utilexec.CodeExitError{Err: fmt.Errorf("command %q ended with %d: %s", strings.Join(args, " "), exit.Code, strings.TrimSpace(errs.String())), Code: exit.Code}
	}
	return out.Bytes(), errs.Bytes(), err
}

// Exec returns the URL at which the kubelet executes the command.
func (r *Runtime) Exec(_ context.Context, request *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if _, err := r.container(request.GetContainerId()); err != nil {
		return nil, err
	}
	return r.streams.GetExec(request)
}

// Attach returns the URL at which the kubelet reads a container's output.
func (r *Runtime) Attach(_ context.Context, request *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if _, err := r.container(request.GetContainerId()); err != nil {
		return nil, err
	}
	return r.streams.GetAttach(request)
}

// PortForward returns the URL at which the kubelet reaches a port of a pod.
func (r *Runtime) PortForward(_ context.Context, request *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	if _, err := r.sandbox(request.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return r.streams.GetPortForward(request)
}
