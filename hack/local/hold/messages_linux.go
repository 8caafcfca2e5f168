// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// request is the first message on a connection, from the client. Only a run has a second one: an
// empty request, which interrupts the command like the end of the connection.
type request struct {
	Op       operation     `json:"op"`
	Path     string        `json:"path,omitempty"`
	Args     []string      `json:"args,omitempty"`
	Env      []string      `json:"env,omitempty"`
	Dir      string        `json:"dir,omitempty"`
	Grace    time.Duration `json:"grace,omitempty"`
	Port     int           `json:"port,omitempty"`
	To       string        `json:"to,omitempty"`
	Resolver string        `json:"resolver,omitempty"`
}

type operation string

const (
	opPing      operation = "ping"
	opRun       operation = "run"     // with three files
	opForward   operation = "forward" // with a listener, unless the port is already forwarded
	opUnforward operation = "unforward"
	opList      operation = "list"
	opResolver  operation = "resolver"
	opStop      operation = "stop"
)

// response is the holder's only answer.
type response struct {
	Error string `json:"error,omitempty"`
	// Ending means that the holder accepts no further requests.
	Ending bool `json:"ending,omitempty"`
	// NeedListener asks for the same request with a listener.
	NeedListener bool         `json:"needListener,omitempty"`
	Code         int          `json:"code,omitempty"`
	Forwardings  []Forwarding `json:"forwardings,omitempty"`
}

const (
	// maxMessage limits the holder's memory per message; only environments of commands are long.
	maxMessage = 8 << 20
	// maxFiles is the maximum number of files in one message.
	maxFiles = 3
)

// send writes a message: its length, with the files attached, and its JSON.
func send(conn *net.UnixConn, message any, files ...uintptr) error {
	data, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encoding message: %w", err)
	}
	if len(data) > maxMessage {
		return fmt.Errorf("message of %d bytes is longer than %d", len(data), maxMessage)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, file := range files {
			fds[i] = int(file)
		}
		rights = unix.UnixRights(fds...)
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	// The files go with the first byte, so that a short write does not lose them.
	n, _, err := conn.WriteMsgUnix(head, rights, nil)
	if err == nil {
		_, err = conn.Write(append(head[n:], data...))
	}
	if err != nil {
		return fmt.Errorf("sending message: %w", err)
	}
	return nil
}

// receive reads a message and returns its files, also with an error; the caller closes them. It
// returns io.EOF if the connection ends between two messages.
func receive(conn *net.UnixConn, message any) (files []int, err error) {
	head := make([]byte, 4)
	rights := make([]byte, unix.CmsgSpace(maxFiles*4))
	n, nRights, _, _, err := conn.ReadMsgUnix(head, rights)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("receiving message: %w", err)
	}
	if n == 0 {
		return nil, io.EOF
	}
	if files, err = parseRights(rights[:nRights]); err != nil {
		return files, err
	}
	if _, err := io.ReadFull(conn, head[n:]); err != nil {
		return files, fmt.Errorf("receiving message: %w", err)
	}
	length := binary.BigEndian.Uint32(head)
	if length > maxMessage {
		return files, fmt.Errorf("message of %d bytes is longer than %d", length, maxMessage)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(conn, data); err != nil {
		return files, fmt.Errorf("receiving message: %w", err)
	}
	if err := json.Unmarshal(data, message); err != nil {
		return files, fmt.Errorf("decoding message: %w", err)
	}
	return files, nil
}

func parseRights(data []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(data)
	if err != nil {
		return nil, fmt.Errorf("reading files of message: %w", err)
	}
	var files []int
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, fmt.Errorf("reading files of message: %w", err)
		}
		files = append(files, fds...)
	}
	return files, nil
}

func closeAll(files []int) {
	for _, file := range files {
		_ = unix.Close(file)
	}
}

// socketPath returns a short path of the socket in an open folder, however long the folder's path
// is: the kernel takes 107 bytes.
func socketPath(folder *os.File) string {
	return "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())) + "/" + socketFile
}

// peerUser returns the user id of the peer.
func peerUser(conn *net.UnixConn) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("reading the user at the other end of the socket: %w", err)
	}
	var credentials *unix.Ucred
	var optErr error
	err = raw.Control(func(fd uintptr) {
		credentials, optErr = unix.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, optErr); err != nil {
		return 0, fmt.Errorf("reading the user at the other end of the socket: %w", err)
	}
	return credentials.Uid, nil
}
