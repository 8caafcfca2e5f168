package receiver

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// sender is who shares rates and memory.
type sender struct {
	// source is an address, or a network of IPv6, of which everybody has one.
	source string
	// path is set for a source that proved to know the secret of this path before, and shows a
	// proof again: what strangers do who have the same address, as behind a proxy that is not
	// known, is not counted for it.
	path string
}

func (s sender) proven() bool { return s.path != "" }

// proofs are the headers in which forges sign, or send their token.
var proofs = []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Gitlab-Token", "Webhook-Signature", SignatureHeader}

// sender says who is counted for a request, before anything of it is proven.
func (r *Receiver) sender(req *http.Request) sender {
	s := sender{source: r.source(req)}
	for _, name := range proofs {
		if req.Header.Get(name) != "" && r.paces.delivered(req.URL.Path, s.source) {
			s.path = shorten(req.URL.Path)
			break
		}
	}
	return s
}

// source is the address that a request came from, or the network of it.
func (r *Receiver) source(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	forwarded := strings.Split(strings.Join(req.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0 && r.proxy(addr); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(forwarded[i]))
		if err != nil {
			break
		}
		addr = before
	}
	return network(addr)
}

// network is an address, or the network of it that one sender of IPv6 has.
func network(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.String()
		}
	}
	return addr.String()
}

func (r *Receiver) proxy(addr netip.Addr) bool {
	for _, p := range r.proxies {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}
