// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// sender shares rates and memory.
type sender struct {
	// source is an address, or an IPv6 network, because everyone has a whole one.
	source string
	// path is set for a source that proved the secret of this path before and sends a proof again.
	// So strangers with the same address, for example behind an unknown proxy, do not count against
	// it.
	path string
}

func (s sender) isProven() bool { return s.path != "" }

// proofHeaders are the headers with signatures or tokens of forges.
var proofHeaders = []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Gitlab-Token", "Webhook-Signature", SignatureHeader}

// senderOf returns the sender that a request counts for, before its proof is verified.
func (r *Receiver) senderOf(req *http.Request) sender {
	s := sender{source: r.sourceOf(req)}
	for _, name := range proofHeaders {
		if req.Header.Get(name) != "" && r.rateLimits.isProvenSource(req.URL.Path, s.source) {
			s.path = shortenPath(req.URL.Path)
			break
		}
	}
	return s
}

// sourceOf returns the address or network that a request came from.
func (r *Receiver) sourceOf(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	forwarded := strings.Split(strings.Join(req.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0 && r.isProxy(addr); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(forwarded[i]))
		if err != nil {
			break
		}
		addr = before
	}
	return networkOf(addr)
}

// networkOf returns an address, or for IPv6 the /64 network of one sender.
func networkOf(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.String()
		}
	}
	return addr.String()
}

func (r *Receiver) isProxy(addr netip.Addr) bool {
	for _, p := range r.proxies {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}
