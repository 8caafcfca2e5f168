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

// leading follows redirects of the registry: blobs may come from another host, everything else must
// come from the registry.
type leading struct {
	// registry sends with credentials.
	registry http.RoundTripper
	// elsewhere sends without credentials.
	elsewhere guarded
	// host of the registry, as in its URL.
	host string
	// near reports whether requests to an address are permitted.
	near func(netip.Addr) bool
}

// RoundTrip implements http.RoundTripper.
func (l leading) RoundTrip(request *http.Request) (*http.Response, error) {
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
		return nil, ledAway(request)
	}
	if host := request.URL.Hostname(); !l.mayAsk(host) {
		return nil, tooNear(host)
	}
	return l.elsewhere.RoundTrip(request)
}

// mayAsk checks hosts that are addresses. Other names are checked when the connection resolves
// them; a proxy resolves them unseen.
func (l leading) mayAsk(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return l.near(netip.IPv6Loopback())
	}
	address, err := netip.ParseAddr(host)
	return err != nil || l.near(address)
}

// ledAway returns the error about a redirect of anything but a blob.
func ledAway(request *http.Request) error {
	return failure(ReasonRepositoryNotFound, "the registry sends to another host (%s), which is followed for the contents of artifacts alone: change the url of the source", printable(request.URL.Host, 100))
}

func tooNear(host string) error {
	return failure(ReasonUnreachable, "the registry sends to %s, which is an address of this machine or of its network alone, and is not asked", printable(host, 100))
}

// reach records how the registry was reached: equally near addresses are permitted for its blobs.
type reach struct {
	// address of the registry with its port, as it is dialled. With a proxy it is not dialled.
	address string
	last    atomic.Pointer[netip.Addr]
}

// dial records which address answered.
func (r *reach) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err == nil && address == r.address {
		if remote, err := netip.ParseAddrPort(connection.RemoteAddr().String()); err == nil {
			found := remote.Addr()
			r.last.Store(&found)
		}
	}
	return connection, err
}

// near reports whether an address is neither on this machine nor on its link, or as near as the
// registry's address.
func (r *reach) near(address netip.Addr) bool {
	kind := nearness(address)
	if kind == "" {
		return true
	}
	if last := r.last.Load(); last != nil {
		return nearness(*last) == kind
	}
	host, _, _ := net.SplitHostPort(r.address)
	if named, err := netip.ParseAddr(host); err == nil {
		return nearness(named) == kind
	}
	return host == "localhost" && kind == nearMachine
}

// control rejects a connection to a resolved address that is too near.
func (r *reach) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !r.near(to.Addr()) {
		return tooNear(address)
	}
	return nil
}

const (
	nearMachine = "machine"
	nearLink    = "link"
	dialTimeout = 30 * time.Second
)

// nearness is the kind of an address that is only meaningful on this machine or link; "" for
// others. Private addresses are permitted, because blob stores beside a registry have them.
func nearness(address netip.Addr) string {
	address = address.Unmap()
	switch {
	case address.IsLoopback(), address.IsUnspecified():
		return nearMachine
	case address.IsLinkLocalUnicast(), address.IsMulticast():
		return nearLink
	}
	return ""
}
