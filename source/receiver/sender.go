package receiver

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// sender shares rates and memory.
type sender struct {
	// source is an address, or an IPv6 network, since everybody has a whole one.
	source string
	// path is set for a source that proved the secret of this path before and sends a proof again.
	// So strangers with the same address, for example behind an unknown proxy, do not count against
	// it.
	path string
}

func (s sender) proven() bool { return s.path != "" }

// proofs are the headers with signatures or tokens of forges.
var proofs = []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Gitlab-Token", "Webhook-Signature", SignatureHeader}

// sender returns the sender that a request counts for, before its proof is verified.
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

// source returns the address or network that a request came from.
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

// network returns an address, or for IPv6 the /64 network of one sender.
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
