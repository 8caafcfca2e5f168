// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/proxy"
)

// sshWire runs git-upload-pack on a server, with one connection for each request.
type sshWire struct {
	address string
	path    string
	user    string
	hosts   *knownhosts.HostKeyDB
	signer  ssh.Signer
	proxy   *url.URL
}

func newSSHWire(options Options, location *url.URL) (*sshWire, error) {
	hosts, err := hostKeys(options.Credentials.KnownHosts)
	if err != nil {
		return nil, err
	}
	port := location.Port()
	if port == "" {
		port = "22"
	}
	user := location.User.Username()
	if user == "" {
		user = "git"
	}
	path := location.Path
	if strings.HasPrefix(path, "/~") {
		path = path[1:]
	}
	w := &sshWire{address: net.JoinHostPort(location.Hostname(), port), path: path, user: user, hosts: hosts, signer: options.Credentials.Identity, proxy: options.Proxy.address}
	if len(hosts.HostKeyAlgorithms(w.address)) == 0 {
		return nil, newError(ReasonHostKeyMismatch, "known_hosts has no key of %s: add its keys from `ssh-keyscan -p %s %s` after comparing them", w.address, port, location.Hostname())
	}
	return w, nil
}

// hostKeys parses known_hosts with a temporary file, because the library requires one.
func hostKeys(data []byte) (*knownhosts.HostKeyDB, error) {
	file, err := os.CreateTemp("", "known_hosts")
	if err != nil {
		return nil, fmt.Errorf("store known_hosts: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		return nil, fmt.Errorf("store known_hosts: %w", err)
	}
	keys, err := knownhosts.NewDB(file.Name())
	if err != nil {
		return nil, newError(ReasonInvalid, "known_hosts of the Secret cannot be read: each line has to be a host, the kind of a key and the key")
	}
	return keys, nil
}

// uploadPack is a running git-upload-pack.
type uploadPack struct {
	stdin  io.WriteCloser
	stdout io.Reader
	stderr *boundedBuffer
	// waitForExit waits until the command exits and stderr is complete, at most exitTimeout,
	// because a server may keep it open.
	waitForExit func()
	close       func() error
}

// exitTimeout is how long a command may take to exit after it closed its output.
const exitTimeout = 5 * time.Second

func (w *sshWire) references(ctx context.Context) (*packp.AdvRefs, error) {
	running, err := w.start(ctx)
	if err != nil {
		return nil, err
	}
	defer running.close()
	advertised, err := w.readReferences(running)
	if err != nil {
		return nil, err
	}
	_, _ = running.stdin.Write(pktline.FlushPkt)
	return advertised, nil
}

func (w *sshWire) pack(ctx context.Context, request *packp.UploadPackRequest) (*pack, error) {
	running, err := w.start(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := w.readReferences(running); err != nil {
		_ = running.close()
		return nil, err
	}
	if err := writeRequest(running.stdin, request); err != nil {
		_ = running.close()
		return nil, err
	}
	return readPack(request, readCloser{running.stdout, running.close})
}

func (w *sshWire) readReferences(running *uploadPack) (*packp.AdvRefs, error) {
	advertised, err := readReferences(running.stdout)
	if err != nil && ReasonOf(err) == "" {
		// A server without the repository writes that to stderr before it closes, possibly after
		// the end of stdout.
		running.waitForExit()
		if said := running.stderr.String(); said != "" {
			return nil, refusalError(said)
		}
	}
	return advertised, err
}

// start connects, verifies the server's key, and runs the command. The connection ends with the
// context.
func (w *sshWire) start(ctx context.Context) (*uploadPack, error) {
	conn, err := dialServer(ctx, w.proxy, w.address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	abandon := func(err error) (*uploadPack, error) {
		stop()
		_ = conn.Close()
		return nil, err
	}
	var mismatch error
	check := w.hosts.HostKeyCallback()
	connection, channels, requests, err := ssh.NewClientConn(conn, w.address, &ssh.ClientConfig{
		User: w.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(w.signer)}, HostKeyAlgorithms: w.hosts.HostKeyAlgorithms(w.address),
		ClientVersion: "SSH-2.0-Pergola",
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			mismatch = check(host, remote, key)
			return mismatch
		},
	})
	switch {
	case mismatch != nil:
		return abandon(newError(ReasonHostKeyMismatch, "the SSH server %s has a key that is not in known_hosts: compare it with the server's, then change known_hosts; someone may intercept the connection", w.address))
	case err != nil && strings.Contains(err.Error(), "no common algorithm for host key"):
		return abandon(newError(ReasonHostKeyMismatch, "the SSH server %s has no key of a kind that known_hosts has: compare its keys, then change known_hosts", w.address))
	case err != nil && strings.Contains(err.Error(), "unable to authenticate"):
		return abandon(newError(ReasonAuthenticationFailed, "the SSH server %s rejects the key %s of user %s", w.address, ssh.FingerprintSHA256(w.signer.PublicKey()), w.user))
	case err != nil:
		return abandon(err)
	}
	client := ssh.NewClient(connection, channels, requests)
	end := sync.OnceValue(func() error {
		stop()
		err := client.Close()
		_ = client.Wait()
		return err
	})
	session, err := client.NewSession()
	if err != nil {
		_ = end()
		return nil, err
	}
	stdin, err := session.StdinPipe()
	if err != nil {
		_ = end()
		return nil, err
	}
	stdout, err := session.StdoutPipe()
	if err != nil {
		_ = end()
		return nil, err
	}
	said := &boundedBuffer{}
	session.Stderr = said
	if err := session.Start("git-upload-pack " + shellQuote(w.path)); err != nil {
		_ = end()
		return nil, err
	}
	ended := func() {
		over := make(chan struct{})
		go func() { _ = session.Wait(); close(over) }()
		select {
		case <-over:
		case <-ctx.Done():
		case <-time.After(exitTimeout):
		}
	}
	return &uploadPack{stdin: stdin, stdout: stdout, stderr: said, waitForExit: ended, close: end}, nil
}

// shellQuote quotes a word for a shell.
func shellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func (w *sshWire) close() error { return nil }

// boundedBuffer stores the beginning of a stream.
type boundedBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if room := 2048 - b.text.Len(); room > 0 {
		b.text.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (b *boundedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return strings.TrimSpace(b.text.String())
}

// dialServer connects to a server, through a proxy if there is one.
func dialServer(ctx context.Context, by *url.URL, address string) (net.Conn, error) {
	if by == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if by.Scheme == "socks5" {
		var auth *proxy.Auth
		if by.User != nil {
			password, _ := by.User.Password()
			auth = &proxy.Auth{User: by.User.Username(), Password: password}
		}
		dialer, err := proxy.SOCKS5("tcp", by.Host, auth, &net.Dialer{})
		if err != nil {
			return nil, err
		}
		return dialer.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", by.Host)
	if err != nil {
		return nil, fmt.Errorf("reach the proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if by.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: by.Hostname(), MinVersion: tls.VersionTLS12})
	}
	tunnelled, err := connectThroughProxy(conn, by, address)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return tunnelled, nil
}

// connectThroughProxy requests a connection from an HTTP proxy.
func connectThroughProxy(conn net.Conn, by *url.URL, address string) (net.Conn, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if by.User != nil {
		password, _ := by.User.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(by.User.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return nil, fmt.Errorf("ask the proxy: %w", err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, fmt.Errorf("ask the proxy: %w", err)
	}
	_ = response.Body.Close()
	switch {
	case response.StatusCode == http.StatusProxyAuthRequired:
		return nil, newError(ReasonAuthenticationFailed, "the proxy rejects its credentials (407)")
	case response.StatusCode != http.StatusOK:
		return nil, newError(ReasonUnreachable, "the proxy does not connect to %s: status %d", address, response.StatusCode)
	}
	// An SSH server speaks first: its first bytes may arrive with the proxy's answer.
	return bufferedConn{conn, reader}, nil
}

// bufferedConn is a connection whose first bytes are buffered.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (b bufferedConn) Read(p []byte) (int, error) { return b.reader.Read(p) }
