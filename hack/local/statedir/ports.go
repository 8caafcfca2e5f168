// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

// Ports are below the range for outgoing connections, so that a port stays free between down and
// up. They are random, so that parallel starts in other folders rarely choose the same one.
const (
	firstPort = 20000
	lastPort  = 30000
)

// FreePort returns a loopback port that is not in use and not in taken.
func FreePort(taken []int) (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if !slices.Contains(taken, port) && IsPortFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("finding a free port on 127.0.0.1 between %d and %d: none of 200 tried was free", firstPort, lastPort)
}

// IsPortFree reports whether the loopback port is not in use now.
func IsPortFree(port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// WaitForPort waits a moment until a port is free, because its previous process may be ending.
func WaitForPort(port int) (free bool) {
	const attempts, pause = 40, 50 * time.Millisecond
	for range attempts {
		if IsPortFree(port) {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

// Ports lists all ports in the state.
func (s *State) Ports() []int {
	ports := []int{s.EtcdPort, s.EtcdPeerPort}
	if s.ProxyPort != 0 {
		ports = append(ports, s.ProxyPort)
	}
	for _, cluster := range s.Clusters {
		ports = append(ports, cluster.Port)
	}
	return ports
}
