// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Registries store blobs on other hosts and redirect to URLs that are signed for a few minutes. The
// digest from the registry verifies such a blob, so its host need not be trusted. But the host must
// get no credentials, and must not make the operator send requests to its own machine or its
// cloud's metadata service.

// redirectTransport follows redirects of the registry: blobs may come from another host, everything
// else must come from the registry.
type redirectTransport struct {
	// registry sends with credentials.
	registry http.RoundTripper
	// otherHosts sends without credentials.
	otherHosts guardedTransport
	// host is the host of the registry, as in its URL.
	host string
	// isAddressAllowed reports whether requests to an address are permitted.
	isAddressAllowed func(netip.Addr) bool
}

// RoundTrip implements http.RoundTripper.
func (l redirectTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	first, left := request, request.URL.Host != l.host
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
		left = left || first.URL.Host != l.host
	}
	if !left {
		return l.registry.RoundTrip(request)
	}
	// After a redirect there are no credentials, even if the other host redirects back.
	if first.URL.Host != l.host || first.Method != http.MethodGet || path.Base(path.Dir(first.URL.Path)) != "blobs" {
		return nil, redirectError(request)
	}
	if host := request.URL.Hostname(); !l.isHostAllowed(host) {
		return nil, localAddressError(host)
	}
	return l.otherHosts.RoundTrip(request)
}

// isHostAllowed checks hosts that are addresses. Other names are checked when the connection
// resolves them; a proxy resolves them unseen.
func (l redirectTransport) isHostAllowed(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return l.isAddressAllowed(netip.IPv6Loopback())
	}
	address, err := netip.ParseAddr(host)
	return err != nil || l.isAddressAllowed(address)
}

// redirectError returns the error about a redirect of anything but a blob.
func redirectError(request *http.Request) error {
	return newError(ReasonRepositoryNotFound, "the registry redirects to another host (%s), which is allowed only for the content of artifacts: change the url of the source", boundedLine(request.URL.Host, 100))
}

func localAddressError(host string) error {
	return newError(ReasonUnreachable, "the registry redirects to %s, which is not followed: it is an address of this machine or its local network", boundedLine(host, 100))
}

// registryDialer records how the registry was reached: equally near addresses are permitted for its
// blobs.
type registryDialer struct {
	// address is the address of the registry with its port, as it is dialled. With a proxy it is
	// not dialled.
	address     string
	lastAddress atomic.Pointer[netip.Addr]
}

// dial records which address answered.
func (r *registryDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err == nil && address == r.address {
		if remote, err := netip.ParseAddrPort(connection.RemoteAddr().String()); err == nil {
			found := remote.Addr()
			r.lastAddress.Store(&found)
		}
	}
	return connection, err
}

// isAddressAllowed reports whether an address is neither on this machine nor on its link, or as
// near as the registry's address.
func (r *registryDialer) isAddressAllowed(address netip.Addr) bool {
	kind := addressScope(address)
	if kind == "" {
		return true
	}
	if last := r.lastAddress.Load(); last != nil {
		return addressScope(*last) == kind
	}
	host, _, _ := net.SplitHostPort(r.address)
	if named, err := netip.ParseAddr(host); err == nil {
		return addressScope(named) == kind
	}
	return host == "localhost" && kind == loopbackScope
}

// checkAddress rejects a connection to a resolved address that is too near.
func (r *registryDialer) checkAddress(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !r.isAddressAllowed(to.Addr()) {
		return localAddressError(address)
	}
	return nil
}

const (
	loopbackScope  = "machine"
	linkLocalScope = "link"
	dialTimeout    = 30 * time.Second
)

// addressScope is the kind of an address that is only meaningful on this machine or link; it is ""
// for others. Private addresses are permitted, because blob stores beside a registry have them.
func addressScope(address netip.Addr) string {
	address = address.Unmap()
	switch {
	case address.IsLoopback(), address.IsUnspecified():
		return loopbackScope
	case address.IsLinkLocalUnicast(), address.IsMulticast():
		return linkLocalScope
	}
	return ""
}
