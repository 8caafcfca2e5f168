// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHServer serves the repositories of a folder with git-upload-pack.
type SSHServer struct {
	// Address is host and port; URL is the prefix of repository paths.
	Address, URL string
	// KnownHosts is the known_hosts line of this server; Identity is an accepted private key.
	KnownHosts, Identity []byte
	root                 string

	mutex       sync.Mutex
	connections int
	listener    net.Listener
	open        map[net.Conn]bool
	done        sync.WaitGroup
}

// ServeSSH serves a folder over SSH.
func ServeSSH(t testing.TB, root string) *SSHServer {
	t.Helper()
	host, _ := NewKey(t)
	client, identity := NewKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, errors.New("another key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	s := &SSHServer{Address: address, URL: "ssh://git@" + address, KnownHosts: []byte(knownhosts.Line([]string{address}, host.PublicKey()) + "\n"),
		Identity: identity, root: root, listener: listener, open: map[net.Conn]bool{}}
	s.done.Add(1)
	go s.accept(config)
	t.Cleanup(s.close)
	return s
}

// NewKey creates a key pair; the second value is the private key in OpenSSH format.
func NewKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	return signer, pem.EncodeToMemory(block)
}

// Connections returns the number of accepted connections.
func (s *SSHServer) Connections() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.connections
}

func (s *SSHServer) close() {
	_ = s.listener.Close()
	s.mutex.Lock()
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mutex.Unlock()
	s.done.Wait()
}

func (s *SSHServer) accept(config *ssh.ServerConfig) {
	defer s.done.Done()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mutex.Lock()
		s.connections++
		s.open[conn] = true
		s.mutex.Unlock()
		s.done.Add(1)
		go func() {
			defer s.done.Done()
			defer conn.Close()
			s.serve(conn, config)
		}()
	}
}

func (s *SSHServer) serve(conn net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		if channel.ChannelType() != "session" {
			_ = channel.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		session, requests, err := channel.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			if request.Type != "exec" {
				_ = request.Reply(false, nil)
				continue
			}
			var command struct{ Line string }
			_ = ssh.Unmarshal(request.Payload, &command)
			_ = request.Reply(true, nil)
			s.exec(session, command.Line)
			break
		}
		_ = session.Close()
	}
}

func (s *SSHServer) exec(session ssh.Channel, line string) {
	status := uint32(0)
	path, ok := strings.CutPrefix(line, "git-upload-pack '")
	if !ok {
		_, _ = io.WriteString(session.Stderr(), "only git-upload-pack\n")
		return
	}
	command := exec.Command("git-upload-pack", filepath.Join(s.root, strings.TrimSuffix(path, "'")))
	command.Env = IsolatedEnvironment()
	stdin, err := command.StdinPipe()
	if err != nil {
		return
	}
	command.Stdout, command.Stderr = session, session.Stderr()
	go func() {
		_, _ = io.Copy(stdin, session)
		_ = stdin.Close()
	}()
	if err := command.Run(); err != nil {
		status = 128
	}
	_, _ = session.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}
