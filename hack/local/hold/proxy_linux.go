// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// maxProxyHead limits the bytes that a client can send before its request is complete.
const maxProxyHead = 64 << 10

// serveProxy serves one client of the HTTP proxy, and only CONNECT.
func serveProxy(ctx context.Context, client *net.TCPConn, resolver string) {
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	_ = client.SetReadDeadline(time.Now().Add(dialTimeout))
	reader := bufio.NewReader(io.LimitReader(client, maxProxyHead))
	request, err := http.ReadRequest(reader)
	if err != nil {
		writeProxyError(client, http.StatusBadRequest, "not an HTTP request")
		return
	}
	if request.Method != http.MethodConnect {
		writeProxyError(client, http.StatusMethodNotAllowed, "only CONNECT is served here: use it as proxy for https")
		return
	}
	server, err := dial(ctx, request.Host, resolver)
	if err != nil {
		writeProxyError(client, http.StatusBadGateway, err.Error())
		return
	}
	// The client may have sent more than its request.
	early, _ := reader.Peek(reader.Buffered())
	_ = client.SetReadDeadline(time.Time{})
	_, err = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	if err == nil {
		_, err = server.Write(early)
	}
	if err != nil {
		_ = server.Close()
		return
	}
	copyBoth(ctx, client, server)
}

func writeProxyError(client *net.TCPConn, code int, reason string) {
	_, _ = fmt.Fprintf(client, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		code, http.StatusText(code), len(reason)+1, reason)
}
