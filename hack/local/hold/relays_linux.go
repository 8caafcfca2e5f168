// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// relays are the loopback ports of the machine that lead inside. Their listeners were created
// outside and stay there, wherever the accepting process is.
type relays struct {
	ctx context.Context
	// connectionSlots limit the connections of all relays; further connections wait in the kernel.
	connectionSlots chan struct{}
	// isInside means that this process is inside, and the listeners are outside.
	isInside bool

	mu       sync.Mutex
	byPort   map[int]*relay
	resolver string
}

type relay struct {
	Forwarding
	// listeners are the listener outside and, for a proxy, one with the same address inside: a
	// kubeconfig that names it works on both sides.
	listeners []net.Listener
	cancel    context.CancelFunc
}

func (r *relay) close() {
	for _, listener := range r.listeners {
		_ = listener.Close()
	}
}

func newRelays(ctx context.Context, connections int) *relays {
	return &relays{ctx: ctx, connectionSlots: make(chan struct{}, connections), byPort: map[int]*relay{}}
}

// maxConnections derives the limit from half of the allowed open files. A connection has two
// sockets and a pipe for each direction.
func maxConnections() int {
	const filesOfOne, plenty = 6, 4096
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 64
	}
	return int(max(16, min(plenty, limit.Cur/(2*filesOfOne))))
}

// setTarget changes the target of a port and reports whether the port exists.
func (r *relays) setTarget(port int, to string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.byPort[port]
	if found {
		known.To = to
	}
	return found
}

// listen adds a port.
func (r *relays) listen(port int, to string, file *os.File) error {
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("taking over the listener on port %d: %w", port, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, found := r.byPort[port]; found {
		// This should not happen, as the port was free for the new listener.
		old.cancel()
	}
	ctx, cancel := context.WithCancel(r.ctx)
	added := &relay{Forwarding: Forwarding{Port: port, To: to}, listeners: []net.Listener{listener}, cancel: cancel}
	if r.isInside && added.IsProxy() {
		same, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			cancel()
			_ = listener.Close()
			return fmt.Errorf("serving the proxy inside, too: %w", err)
		}
		added.listeners = append(added.listeners, same)
	}
	r.byPort[port] = added
	context.AfterFunc(ctx, added.close)
	for _, one := range added.listeners {
		go r.accept(ctx, added, one)
	}
	return nil
}

// remove closes a port and its connections.
func (r *relays) remove(port int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, found := r.byPort[port]; found {
		delete(r.byPort, port)
		// Closing now, not only in the goroutine of the context, frees the port for the caller.
		known.close()
		known.cancel()
	}
}

func (r *relays) list() []Forwarding {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Forwarding
	for _, known := range r.byPort {
		all = append(all, known.Forwarding)
	}
	slices.SortFunc(all, func(a, b Forwarding) int { return cmp.Compare(a.Port, b.Port) })
	return all
}

func (r *relays) setResolver(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resolver = server
}

// currentTarget returns the current target of a relay and the current DNS server.
func (r *relays) currentTarget(of *relay) (to Forwarding, resolver string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return of.Forwarding, r.resolver
}

func (r *relays) accept(ctx context.Context, from *relay, listener net.Listener) {
	pause := backOff{}
	for {
		select {
		case r.connectionSlots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := listener.Accept()
		if err != nil {
			<-r.connectionSlots
			if ctx.Err() != nil {
				return
			}
			log.Printf("accepting on port %d: %v", from.Port, err)
			pause.wait(ctx)
			continue
		}
		pause.reset()
		go func() {
			defer func() { <-r.connectionSlots }()
			client := conn.(*net.TCPConn)
			defer client.Close()
			to, resolver := r.currentTarget(from)
			if to.IsProxy() {
				serveProxy(ctx, client, resolver)
				return
			}
			server, err := dial(ctx, to.To, resolver)
			if err != nil {
				// The client sees a refused connection, as without the relay.
				_ = client.SetLinger(0)
				return
			}
			copyBoth(ctx, client, server)
		}()
	}
}

// backOff increases the delay of a loop while an operation fails, such as accept without free
// files.
type backOff struct{ last time.Duration }

func (b *backOff) reset() { b.last = 0 }

func (b *backOff) wait(ctx context.Context) {
	const first, longest = 5 * time.Millisecond, time.Second
	b.last = min(max(first, 2*b.last), longest)
	select {
	case <-time.After(b.last):
	case <-ctx.Done():
	}
}
