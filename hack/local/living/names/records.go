// SPDX-License-Identifier: Apache-2.0

package names

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/kinds"
)

// DNSRecords is the resource of the names that a landscape declares.
var DNSRecords = schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "dnsrecords"}

// Records has the names of one cluster's DNSRecords. It can be a Source of several servers.
type Records struct {
	kind    *kinds.Watcher
	isStale atomic.Bool
	mu      sync.Mutex
	table   table
}

// table has the records of a name, or pattern. A name that only has names below it has an empty
// entry.
type table map[string][]dns.RR

// NewRecords returns Records; Run keeps them up to date.
func NewRecords(client dynamic.Interface, clock clock.WithTicker, log *slog.Logger) *Records {
	r := &Records{}
	r.isStale.Store(true)
	r.kind = kinds.New(client, DNSRecords, clock, log, func(*unstructured.Unstructured) { r.isStale.Store(true) })
	return r
}

// Run watches the DNSRecords until the context ends.
func (r *Records) Run(ctx context.Context) { r.kind.Run(ctx) }

// Resolve implements Source.
func (r *Records) Resolve(name string) ([]dns.RR, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isStale.Swap(false) {
		r.table = tableOf(r.kind.List())
	}
	return r.table.resolve(name)
}

func tableOf(objects []*unstructured.Unstructured) table {
	t := table{}
	for _, object := range objects {
		name, _, _ := unstructured.NestedString(object.Object, "spec", "name")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "recordType")
		values, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "values")
		if name == "" {
			continue
		}
		name = canonicalName(name)
		t[name] = append(t[name], recordsOf(name, kind, values)...)
		for above := parentName(name); above != "."; above = parentName(above) {
			if _, there := t[above]; !there {
				t[above] = nil
			}
		}
	}
	return t
}

func recordsOf(name, kind string, values []string) []dns.RR {
	var records []dns.RR
	for _, value := range values {
		switch kind {
		case "A":
			if address, err := netip.ParseAddr(value); err == nil && address.Is4() {
				records = append(records, aRecord(name, address))
			}
		case "CNAME":
			records = append(records, cnameRecord(name, value))
		case "TXT":
			records = append(records, &dns.TXT{Hdr: recordHeader(name, dns.TypeTXT), Txt: []string{value}})
		}
	}
	return records
}

// resolve finds a name. For a missing name it tries the pattern of the closest existing name above
// it.
func (t table) resolve(name string) ([]dns.RR, bool) {
	if records, there := t[name]; there {
		return records, true
	}
	for above := parentName(name); ; above = parentName(above) {
		if pattern, there := t["*."+above]; there {
			records := make([]dns.RR, 0, len(pattern))
			for _, record := range pattern {
				record = dns.Copy(record)
				record.Header().Name = name
				records = append(records, record)
			}
			return records, true
		}
		if _, there := t[above]; there || above == "." {
			return nil, false
		}
	}
}

func parentName(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	if rest == "" {
		return "."
	}
	return rest
}
