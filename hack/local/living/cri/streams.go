// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/pergola-dev/pergola/hack/local/box"
)

// serveStreams starts the server for exec, attach and port-forward on a free port. Each URL is
// valid for one connection within a minute.
func (r *Runtime) serveStreams() error {
	listener, err := net.Listen("tcp", net.JoinHostPort(r.options.HostAddress, "0"))
	if err != nil {
		return fmt.Errorf("listening for exec and port-forward: %w", err)
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	if r.streams, err = streaming.NewServer(config, streamingRuntime{r}); err != nil {
		_ = listener.Close()
		return fmt.Errorf("serving exec and port-forward: %w", err)
	}
	server := &http.Server{Handler: r.streams} //nolint:gosec // streams have no end that could be known
	r.closers = append(r.closers, server.Close)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.options.Log.Error("exec and port-forward are no longer served", "error", err)
		}
	}()
	return nil
}

// streamingRuntime implements the requests of the streaming server.
type streamingRuntime struct{ *Runtime }

// Exec runs a command in a container. There are no terminals: a request for a terminal gets pipes.
func (s streamingRuntime) Exec(ctx context.Context, id string, args []string, in io.Reader, out, errs io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	c, err := s.container(id)
	if err != nil {
		return err
	}
	p := c.runningProcess()
	if p == nil {
		return errors.New("the container does not run")
	}
	command := box.Command{Args: args, Env: c.spec.Env, Dir: c.spec.Dir, Stdin: in}
	if out != nil {
		command.Stdout, command.Stderr = out, out
	}
	if errs != nil {
		command.Stderr = errs
	}
	exit, err := p.Exec(ctx, command)
	if err == nil && exit.Code != 0 {
		err = utilexec.CodeExitError{Err: fmt.Errorf("it ended with %d", exit.Code), Code: exit.Code}
	}
	return err
}

// Attach copies a container's output until the container ends or the client disconnects. Containers
// have no input.
func (s streamingRuntime) Attach(ctx context.Context, id string, _ io.Reader, out, errs io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	c, err := s.container(id)
	if err != nil {
		return err
	}
	if out != nil {
		defer c.stdout.addWatcher(out)()
	}
	if errs == nil {
		errs = out
	}
	if errs != nil {
		defer c.stderr.addWatcher(errs)()
	}
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	return nil
}

// PortForward connects a stream to a port of a pod.
func (s streamingRuntime) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	pod, err := s.sandbox(id)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	host, ready := s.options.HostAddress, pod.ready
	if pod.address.IsValid() {
		host = pod.address.String()
	}
	s.mutex.Unlock()
	if !ready {
		return errors.New("the pod is stopped")
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer connection.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(connection, stream) // the sender sees the error, too
		if half, ok := connection.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err = io.Copy(stream, connection)
	_ = stream.Close()
	<-sent
	return err
}
