// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echoServer echoes its input until the client has finished.
func echoServer(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener
}

// relayTo adds a relay on a listener.
func relayTo(t *testing.T, all *relays, to string) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	require.NoError(t, err)
	defer file.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, all.listen(port, to, file))
	return port
}

func TestRelaysLeaveNoGoroutines(t *testing.T) {
	echo := echoServer(t)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all := newRelays(ctx, 100)
	port := relayTo(t, all, echo.Addr().String())
	proxy := relayTo(t, all, "")
	for range 50 {
		answer, err := exchangeText(connect(t, port), "text")
		require.NoError(t, err)
		require.Equal(t, "text", answer)
	}
	for _, end := range []func(*net.TCPConn){
		func(conn *net.TCPConn) { _ = conn.Close() },
		func(conn *net.TCPConn) { _ = conn.SetLinger(0); _ = conn.Close() },
		func(conn *net.TCPConn) { _ = conn.CloseWrite(); _, _ = io.ReadAll(conn); _ = conn.Close() },
	} {
		for _, through := range []int{port, proxy} {
			conn := connect(t, through)
			_, err := io.WriteString(conn, "CONNECT "+echo.Addr().String()+" HTTP/1.1\r\nHost: x\r\n\r\n")
			require.NoError(t, err)
			_, err = io.ReadFull(conn, make([]byte, 10))
			require.NoError(t, err)
			end(conn)
		}
	}
	assert.Eventually(t, func() bool { return len(all.connectionSlots) == 2 }, testTimeout, time.Millisecond, "one each waits to accept")
	idle := connect(t, port)
	defer idle.Close()
	_, err := io.WriteString(idle, "x")
	require.NoError(t, err)
	waiting := connect(t, proxy)
	defer waiting.Close()
	cancel()
	// Eventually would add goroutines of its own.
	for deadline := time.Now().Add(testTimeout); time.Now().Before(deadline) && runtime.NumGoroutine() > before; {
		time.Sleep(time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before, "open connections end with the relays")
	assert.Empty(t, all.connectionSlots)
}

func TestConnectionsAreBounded(t *testing.T) {
	echo := echoServer(t)
	all := newRelays(t.Context(), 3)
	port := relayTo(t, all, echo.Addr().String())
	talk := func(conn *net.TCPConn) error {
		if _, err := io.WriteString(conn, "x"); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	}
	var open []*net.TCPConn
	for range 3 {
		conn := connect(t, port)
		require.NoError(t, talk(conn))
		open = append(open, conn)
	}
	next := connect(t, port)
	defer next.Close()
	require.NoError(t, next.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	require.Error(t, talk(next), "it waits")
	require.NoError(t, next.SetReadDeadline(time.Now().Add(testTimeout)))
	require.NoError(t, open[0].Close())
	assert.NoError(t, talk(next), "its turn has come")
	for _, conn := range open {
		_ = conn.Close()
	}
}

// failingListener fails several times before it accepts, as without free files.
type failingListener struct {
	net.Listener
	failuresLeft atomic.Int32
}

func (f *failingListener) Accept() (net.Conn, error) {
	if f.failuresLeft.Add(-1) >= 0 {
		return nil, errors.New("too many open files")
	}
	return f.Listener.Accept()
}

func TestAcceptSurvivesErrors(t *testing.T) {
	echo := echoServer(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	flaky := &failingListener{Listener: listener}
	flaky.failuresLeft.Store(3)
	ctx, cancel := context.WithCancel(t.Context())
	all := newRelays(ctx, 3)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.accept(ctx, &relay{Forwarding: Forwarding{To: echo.Addr().String()}}, flaky)
	}()
	answer, err := exchangeText(connect(t, listener.Addr().(*net.TCPAddr).Port), "text")
	require.NoError(t, err)
	assert.Equal(t, "text", answer)
	cancel()
	require.NoError(t, listener.Close())
	<-ended
}
