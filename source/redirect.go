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

// Registries keep their blobs in stores of objects on other hosts and send there, with addresses
// that are signed for a few minutes. What comes from there is compared with the digest that the
// registry named, so it need not be trusted; but it must get no credentials, and must not make the
// operator ask its own machine, or the metadata service of its cloud.

// leading sends requests to where the registry leads: blobs may come from another host, everything
// else is the registry's own.
type leading struct {
	// registry sends with credentials.
	registry http.RoundTripper
	// elsewhere sends without any.
	elsewhere guarded
	// host of the registry, as it is in its url.
	host string
	// near tells whether an address is as near as the registry itself.
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
	// Whoever was led away stays without credentials, even if the other host leads back.
	if first.URL.Host != l.host || first.Method != http.MethodGet || path.Base(path.Dir(first.URL.Path)) != "blobs" {
		return nil, ledAway(request)
	}
	if host := request.URL.Hostname(); !l.mayAsk(host) {
		return nil, tooNear(host)
	}
	return l.elsewhere.RoundTrip(request)
}

// mayAsk looks at hosts that tell their address. Other names are looked up by the connection or,
// unseen from here, by a proxy.
func (l leading) mayAsk(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return l.near(netip.IPv6Loopback())
	}
	address, err := netip.ParseAddr(host)
	return err != nil || l.near(address)
}

// ledAway refuses another host for what only the registry, or only its server of tokens, may
// answer.
func ledAway(request *http.Request) error {
	return failure(ReasonRepositoryNotFound, "the registry sends to another host (%s), which is followed for the contents of artifacts alone: change the url of the source", printable(request.URL.Host, 100))
}

func tooNear(host string) error {
	return failure(ReasonUnreachable, "the registry sends to %s, which is an address of this machine or of its network alone, and is not asked", printable(host, 100))
}

// reach is how a registry was reached: what is as near as it may be asked for its blobs as well.
type reach struct {
	// address of the registry with its port, as connections are made to it. With a proxy there are
	// none.
	address string
	last    atomic.Pointer[netip.Addr]
}

// dial notes which address answered.
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

// near tells whether an address is none of this machine or of its link, or one just as the
// registry's.
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

// control refuses a connection to what a name turned out to be.
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

// nearness of addresses that mean something else, or nothing, from elsewhere. Private ones are not
// among them: stores beside a registry have them.
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
