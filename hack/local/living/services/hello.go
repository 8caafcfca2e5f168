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

// helloPatience limits the wait for a client's first message.
const helloPatience = 10 * time.Second

var errHeard = errors.New("heard enough")

// hello reads the first message of a TLS client. It returns the server name, and all bytes read,
// for the server behind.
func hello(conn net.Conn) (name string, read []byte, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(helloPatience)); err != nil {
		return "", nil, fmt.Errorf("listening to a TLS client: %w", err)
	}
	defer conn.SetReadDeadline(time.Time{})
	var record bytes.Buffer
	err = tls.Server(listening{Conn: conn, reader: io.TeeReader(conn, &record)}, &tls.Config{
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			name = info.ServerName
			return nil, errHeard
		},
	}).Handshake()
	if !errors.Is(err, errHeard) {
		return "", nil, fmt.Errorf("listening to a TLS client: %w", err)
	}
	return name, record.Bytes(), nil
}

// listening is a connection that only reads.
type listening struct {
	net.Conn
	reader io.Reader
}

func (l listening) Read(p []byte) (int, error)     { return l.reader.Read(p) }
func (listening) Write(p []byte) (int, error)      { return len(p), nil }
func (listening) Close() error                     { return nil }
func (listening) SetDeadline(time.Time) error      { return nil }
func (listening) SetWriteDeadline(time.Time) error { return nil }
