// SPDX-License-Identifier: Apache-2.0

package podnet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// gateway is main's address in every pod, and the source of main's connections to pods.
var gateway = netip.MustParseAddr("169.254.1.1")

// Network has the networks of the pods of one node.
type Network struct {
	folder string
	// mainNamespace is the main namespace.
	mainNamespace *os.File

	mu          sync.Mutex
	localRanges []netip.Prefix
}

// Open prepares the network namespace of this process for pods. folder has a file per pod, its
// namespace; each node of a holder has its own folder.
func Open(folder string) (*Network, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("resolving folder of network namespaces: %w", err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("creating folder of network namespaces: %w", err)
	}
	if err := applySettings(mainSettings); err != nil {
		return nil, err
	}
	loopback, err := upLoopback()
	if err != nil {
		return nil, err
	}
	address := &netlink.Addr{IPNet: ipNet(hostPrefix(gateway)), Scope: unix.RT_SCOPE_HOST}
	if err := netlink.AddrReplace(loopback, address); err != nil {
		return nil, fmt.Errorf("adding address %s: %w", gateway, err)
	}
	main, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("opening own network namespace: %w", err)
	}
	return &Network{folder: folder, mainNamespace: main}, nil
}

// AddLocalRange makes all addresses of a range local addresses of main: programs there can listen
// on them, and pods reach them. Pods cannot have them.
func (n *Network) AddLocalRange(prefix netip.Prefix) error {
	if !prefix.IsValid() || !prefix.Addr().Is4() {
		return fmt.Errorf("range %s is not one of IPv4", prefix)
	}
	prefix = prefix.Masked()
	route, err := localRoute(prefix)
	if err != nil {
		return err
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("making %s local: %w", prefix, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.localRanges, prefix) {
		n.localRanges = append(n.localRanges, prefix)
	}
	return nil
}

// PodNames returns the pods that have a namespace, including pods of an earlier process.
func (n *Network) PodNames() ([]string, error) {
	entries, err := os.ReadDir(n.folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading folder of network namespaces: %w", err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// Close removes all pods and local ranges; it may be called twice. The gateway stays: pods of other
// nodes may need it.
func (n *Network) Close() error {
	names, err := n.PodNames()
	for _, name := range names {
		err = errors.Join(err, n.Remove(name))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, prefix := range n.localRanges {
		route, routeErr := localRoute(prefix)
		if routeErr == nil {
			routeErr = netlink.RouteDel(route)
		}
		if routeErr != nil && !errors.Is(routeErr, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("making %s no longer local: %w", prefix, routeErr))
		}
	}
	n.localRanges = nil
	_ = os.Remove(n.folder) // empty, unless something failed
	if closeErr := n.mainNamespace.Close(); !errors.Is(closeErr, os.ErrClosed) {
		err = errors.Join(err, closeErr)
	}
	return err
}

// localRangeOf returns the local range that contains an address.
func (n *Network) localRangeOf(ip netip.Addr) (netip.Prefix, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, prefix := range n.localRanges {
		if prefix.Contains(ip) {
			return prefix, true
		}
	}
	return netip.Prefix{}, false
}

// path returns the namespace file of a pod.
func (n *Network) path(name string) string { return filepath.Join(n.folder, name) }

// device returns the name of a pod's device in main; names of devices have at most 15 bytes.
func (n *Network) device(name string) string {
	sum := sha256.Sum256([]byte(n.path(name)))
	return "v" + hex.EncodeToString(sum[:7])
}

func localRoute(prefix netip.Prefix) (*netlink.Route, error) {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("finding the loopback device: %w", err)
	}
	return &netlink.Route{
		LinkIndex: loopback.Attrs().Index, Dst: ipNet(prefix),
		Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
	}, nil
}

// upLoopback brings up the loopback device of the thread's namespace.
func upLoopback() (netlink.Link, error) {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("finding the loopback device: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return nil, fmt.Errorf("bringing the loopback device up: %w", err)
	}
	return loopback, nil
}

// hostPrefix returns the prefix of one address.
func hostPrefix(ip netip.Addr) netip.Prefix { return netip.PrefixFrom(ip, ip.BitLen()) }

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}
