// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"os"
	"time"
)

// Command is a command for Run.
type Command struct {
	// Path is the executable; a relative path starts at Dir.
	Path string
	// Args are the arguments, without the name of the executable.
	Args []string
	// Env is the whole environment: nothing is inherited.
	Env []string
	// Dir is the working folder; empty means the caller's.
	Dir string
	// Stdin, Stdout and Stderr are passed unchanged; nil is /dev/null.
	Stdin, Stdout, Stderr *os.File
	// Grace is the time between SIGINT and SIGKILL; ten seconds if zero.
	Grace time.Duration
}

// Forwarding is a loopback port of the machine that leads inside.
type Forwarding struct {
	Port int `json:"port"`
	// To is the address inside; it is empty for a proxy, whose clients choose it.
	To string `json:"to,omitempty"`
}

// IsProxy reports whether the port is an HTTP CONNECT proxy.
func (f Forwarding) IsProxy() bool { return f.To == "" }

// The files of a holder in its state folder.
const (
	socketFile = "hold.sock"
	recordFile = "hold.pid"
	logFile    = "hold.log"
)

// holdSubcommand is the argument that makes this program a holder; with tryFlag it only tries to
// become one.
const (
	holdSubcommand = "hold"
	tryFlag        = "--try"
)

// defaultGrace is the time between SIGTERM or SIGINT and SIGKILL.
const defaultGrace = 10 * time.Second
