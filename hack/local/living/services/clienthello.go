// SPDX-License-Identifier: Apache-2.0

package services

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// clientHelloTimeout limits the wait for a client's first message.
const clientHelloTimeout = 10 * time.Second

var errHelloComplete = errors.New("heard enough")

// readClientHello reads the first message of a TLS client. It returns the server name, and all
// bytes read, for the server behind.
func readClientHello(conn net.Conn) (name string, read []byte, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(clientHelloTimeout)); err != nil {
		return "", nil, fmt.Errorf("reading from a TLS client: %w", err)
	}
	defer conn.SetReadDeadline(time.Time{})
	var record bytes.Buffer
	err = tls.Server(readOnlyConn{Conn: conn, reader: io.TeeReader(conn, &record)}, &tls.Config{
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			name = info.ServerName
			return nil, errHelloComplete
		},
	}).Handshake()
	if !errors.Is(err, errHelloComplete) {
		return "", nil, fmt.Errorf("reading from a TLS client: %w", err)
	}
	return name, record.Bytes(), nil
}

// readOnlyConn is a connection that only reads.
type readOnlyConn struct {
	net.Conn
	reader io.Reader
}

func (l readOnlyConn) Read(p []byte) (int, error)     { return l.reader.Read(p) }
func (readOnlyConn) Write(p []byte) (int, error)      { return len(p), nil }
func (readOnlyConn) Close() error                     { return nil }
func (readOnlyConn) SetDeadline(time.Time) error      { return nil }
func (readOnlyConn) SetWriteDeadline(time.Time) error { return nil }
