package hold

import (
	"os"
	"time"
)

// Command is what Run runs inside.
type Command struct {
	// Path is the executable; a relative one is looked up from Dir.
	Path string
	// Args are its arguments, without its name.
	Args []string
	// Env is its whole environment: nothing is inherited.
	Env []string
	// Dir is its working folder; the caller's, if empty.
	Dir string
	// Stdin, Stdout and Stderr are handed over as they are; nil is /dev/null.
	Stdin, Stdout, Stderr *os.File
	// Grace is how long the command has to end after SIGINT before it is killed; ten seconds, if
	// zero.
	Grace time.Duration
}

// Forwarding is a loopback port of the machine through which the inside is reached.
type Forwarding struct {
	Port int `json:"port"`
	// To is the address inside; empty for a proxy, whose clients say where they want to go.
	To string `json:"to,omitempty"`
}

// Proxy says that the port is that of an HTTP CONNECT proxy.
func (f Forwarding) Proxy() bool { return f.To == "" }

// The files of a holder in its state folder.
const (
	socketFile = "hold.sock"
	recordFile = "hold.pid"
	logFile    = "hold.log"
)

// subcommand is the argument that makes this program a holder; tryFlag after it makes it one that
// only tries whether it could be.
const (
	subcommand = "hold"
	tryFlag    = "--try"
)

// defaultGrace is how long processes have to end before they are killed.
const defaultGrace = 10 * time.Second
