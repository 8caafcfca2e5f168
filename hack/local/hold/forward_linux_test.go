// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// serveInside starts a server inside that appends its name to its answers.
func serveInside(t *testing.T, holder *Holder, address, name string) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	go func() {
		// The command ends with the holder.
		_, _ = holder.Run(context.Background(), Command{
			Path: testExecutable(t), Args: []string{address, name}, Env: []string{"HOLD_PART=serve"}, Stdout: write, Stderr: os.Stderr})
		_ = write.Close()
	}()
	line := make([]byte, len("ready"))
	_, err = io.ReadFull(read, line)
	require.NoError(t, err)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func connect(t *testing.T, port int) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(testTimeout)))
	return conn.(*net.TCPConn)
}

// exchangeText sends a text, closes the sending half and returns the answer.
func exchangeText(conn *net.TCPConn, text string) (string, error) {
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	if err := conn.CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func TestForward(t *testing.T) {
	holder, _ := startTestHolder(t)
	serveInside(t, holder, "127.0.0.1:443", "one")
	serveInside(t, holder, "127.0.0.2:443", "two")
	port := freePort(t)
	for _, test := range []struct{ to, want string }{
		{"127.0.0.1:443", "TEXTone"}, {"127.0.0.1:443", "TEXTone"}, {"127.0.0.2:443", "TEXTtwo"}, {"localhost:443", "TEXTone"},
	} {
		require.NoError(t, holder.Forward(t.Context(), port, test.to))
		answer, err := exchangeText(connect(t, port), "text")
		require.NoError(t, err)
		assert.Equal(t, test.want, answer)
		all, err := holder.Forwardings(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []Forwarding{{Port: port, To: test.to}}, all)
	}

	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			text := strings.Repeat("x", i*1000)
			answer, err := exchangeText(connect(t, port), text)
			assert.NoError(t, err)
			assert.Equal(t, strings.ToUpper(text)+"one", answer)
		})
	}
	all.Wait()

	require.NoError(t, holder.Forward(t.Context(), port, "127.0.0.1:1"))
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err == nil {
		_, err = io.ReadAll(conn)
		require.NoError(t, conn.Close())
	}
	assert.ErrorContains(t, err, "reset", "nobody listens there")

	require.NoError(t, holder.Forward(t.Context(), port, "127.0.0.1:443"))
	open := connect(t, port)
	defer open.Close()
	_, err = io.WriteString(open, "text")
	require.NoError(t, err)
	require.NoError(t, holder.Unforward(t.Context(), port))
	require.NoError(t, holder.Unforward(t.Context(), port), "twice is harmless")
	_, err = net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	assert.ErrorContains(t, err, "refused")
	_, err = io.ReadAll(open)
	assert.False(t, os.IsTimeout(err), "an open connection ends, too")
	none, err := holder.Forwardings(t.Context())
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestForwardPortInUse(t *testing.T) {
	holder, _ := startTestHolder(t)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	port := other.Addr().(*net.TCPAddr).Port
	assert.EqualError(t, holder.Forward(t.Context(), port, "10.0.0.1:443"),
		fmt.Sprintf("forwarding port %d: 127.0.0.1:%d is in use by another program", port, port))
	assert.ErrorContains(t, holder.Forward(t.Context(), port, "10.0.0.1"), "missing port")
	require.NoError(t, other.Close())
	require.NoError(t, holder.Forward(t.Context(), port, "10.0.0.1:443"))
	require.NoError(t, holder.Stop(t.Context()))
	again, err := net.Listen("tcp", other.Addr().String())
	require.NoError(t, err, "free with the end of the holder")
	require.NoError(t, again.Close())
}

func TestConcurrentForward(t *testing.T) {
	holder, _ := startTestHolder(t)
	port := freePort(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { assert.NoError(t, holder.Forward(t.Context(), port, "10.0.0.1:443")) })
	}
	all.Wait()
}

func TestProxy(t *testing.T) {
	holder, _ := startTestHolder(t)
	serveInside(t, holder, "127.1.2.3:443", "inside")
	port := freePort(t)
	require.NoError(t, holder.Proxy(t.Context(), port))
	all, err := holder.Forwardings(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Forwarding{{Port: port}}, all)
	assert.True(t, all[0].IsProxy())

	conn := connect(t, port)
	answer, err := exchangeText(conn, "CONNECT 127.1.2.3:443 HTTP/1.1\r\nHost: 127.1.2.3:443\r\n\r\nearly")
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 200 Connection established\r\n\r\nEARLYinside", answer)

	within := freePort(t)
	require.NoError(t, holder.Forward(t.Context(), within, "127.0.0.1:"+strconv.Itoa(port)))
	answer, err = exchangeText(connect(t, within), "CONNECT 127.1.2.3:443 HTTP/1.1\r\nHost: 127.1.2.3:443\r\n\r\nearly")
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 200 Connection established\r\n\r\nEARLYinside", answer, "it has the same address inside")

	proxy, err := url.Parse("http://127.0.0.1:" + strconv.Itoa(port))
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	defer client.CloseIdleConnections()
	_, err = client.Get("https://api.example.com")
	assert.ErrorContains(t, err, "Bad Gateway", "no DNS server is set")
	_, err = client.Get("https://127.0.0.1:1")
	assert.ErrorContains(t, err, "Bad Gateway")
	got, err := client.Get("http://127.1.2.3:443/")
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	assert.Equal(t, http.StatusMethodNotAllowed, got.StatusCode)
	answer, err = exchangeText(connect(t, port), "nonsense\r\n\r\n")
	require.NoError(t, err)
	assert.Contains(t, answer, "400 Bad Request")

	assert.ErrorContains(t, holder.SetResolver(t.Context(), "10.0.0.10"), "missing port")
	require.NoError(t, holder.SetResolver(t.Context(), "127.0.0.1:53"))
	require.NoError(t, holder.SetResolver(t.Context(), ""))
}

// TestProxyNames uses a DNS server that knows one name.
func TestProxyNames(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	go func() {
		buffer := make([]byte, 512)
		for {
			n, client, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var message dnsmessage.Message
			if message.Unpack(buffer[:n]) != nil {
				continue
			}
			question := message.Questions[0]
			message.Response, message.Additionals = true, nil
			switch {
			case question.Name.String() != "api.example.com.":
				message.RCode = dnsmessage.RCodeNameError
			case question.Type == dnsmessage.TypeA:
				message.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: 5},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			data, _ := message.Pack()
			_, _ = server.WriteTo(data, client)
		}
	}()
	target, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer target.Close()
	port := strconv.Itoa(target.Addr().(*net.TCPAddr).Port)
	conn, err := dial(t.Context(), "api.example.com:"+port, server.LocalAddr().String())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	_, err = dial(t.Context(), "other.example.com:"+port, server.LocalAddr().String())
	assert.ErrorContains(t, err, "no such host")
	_, err = dial(t.Context(), "api.example.com:"+port, "")
	assert.ErrorContains(t, err, errNoResolver.Error())
}
