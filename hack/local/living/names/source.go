// SPDX-License-Identifier: Apache-2.0

package names

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// Source resolves names.
type Source interface {
	// Resolve returns all records of a name, which is in lower case and ends with a dot. A name may
	// exist without records. The records have the requested name.
	Resolve(name string) (records []dns.RR, exists bool)
}

// ttl is short: Pods come and go.
const ttl = 5

func recordHeader(name string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

func aRecord(name string, address netip.Addr) dns.RR {
	return &dns.A{Hdr: recordHeader(name, dns.TypeA), A: address.AsSlice()}
}

func cnameRecord(name, target string) dns.RR {
	return &dns.CNAME{Hdr: recordHeader(name, dns.TypeCNAME), Target: canonicalName(target)}
}

func canonicalName(name string) string { return strings.ToLower(dns.Fqdn(name)) }
