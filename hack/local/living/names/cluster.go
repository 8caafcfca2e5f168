// SPDX-License-Identifier: Apache-2.0

package names

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	byService   = "service"
	byAddress   = "address"
	byNamespace = cache.NamespaceIndex
	reverseZone = "in-addr.arpa."
)

// clusterSource is the Source of the names in a cluster.
type clusterSource struct {
	domain   string // with a trailing dot
	factory  informers.SharedInformerFactory
	services cache.SharedIndexInformer
	slices   cache.SharedIndexInformer
}

func newCluster(kube kubernetes.Interface, domain string) (*clusterSource, error) {
	c := &clusterSource{domain: canonicalName(domain), factory: informers.NewSharedInformerFactory(kube, 0)}
	c.services, c.slices = c.factory.Core().V1().Services().Informer(), c.factory.Discovery().V1().EndpointSlices().Informer()
	if err := c.services.AddIndexers(cache.Indexers{byAddress: func(object any) ([]string, error) {
		if service, ok := object.(*corev1.Service); ok && !isHeadless(service) {
			return service.Spec.ClusterIPs, nil
		}
		return nil, nil
	}}); err != nil {
		return nil, fmt.Errorf("indexing Services: %w", err)
	}
	if err := c.slices.AddIndexers(cache.Indexers{
		byService: func(object any) ([]string, error) {
			if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
				return []string{serviceKey(slice)}, nil
			}
			return nil, nil
		},
		byAddress: func(object any) ([]string, error) {
			var all []string
			if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
				for _, endpoint := range slice.Endpoints {
					all = append(all, endpoint.Addresses...)
				}
			}
			return all, nil
		},
	}); err != nil {
		return nil, fmt.Errorf("indexing EndpointSlices: %w", err)
	}
	return c, nil
}

func (c *clusterSource) start(ctx context.Context) bool {
	c.factory.StartWithContext(ctx)
	return cache.WaitForCacheSync(ctx.Done(), c.services.HasSynced, c.slices.HasSynced)
}

func serviceKey(slice *discoveryv1.EndpointSlice) string {
	return slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
}

func isHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

// Resolve implements Source.
func (c *clusterSource) Resolve(name string) ([]dns.RR, bool) {
	if strings.HasSuffix(name, "."+reverseZone) {
		return c.resolvePointer(name)
	}
	rest, ours := strings.CutSuffix(name, c.domain)
	if !ours || rest != "" && !strings.HasSuffix(rest, ".") {
		return nil, false
	}
	if rest == "dns-version." {
		return []dns.RR{&dns.TXT{Hdr: recordHeader(name, dns.TypeTXT), Txt: []string{"1.1.0"}}}, true
	}
	labels := dns.SplitDomainName(rest)
	slices.Reverse(labels)
	switch {
	case len(labels) == 0:
		return nil, true
	case labels[0] != "svc":
		return nil, false
	case len(labels) == 1:
		return nil, true
	case len(labels) == 2:
		objects, _ := c.services.GetIndexer().ByIndex(byNamespace, labels[1])
		return nil, len(objects) > 0
	}
	object, _, _ := c.services.GetStore().GetByKey(labels[1] + "/" + labels[2])
	service, _ := object.(*corev1.Service)
	if service == nil {
		return nil, false
	}
	return c.resolveBelowService(name, service, labels[3:])
}

// resolveBelowService resolves a name below a Service's name; labels are ordered from the Service
// outwards.
func (c *clusterSource) resolveBelowService(name string, service *corev1.Service, below []string) ([]dns.RR, bool) {
	switch {
	case len(below) == 0 && service.Spec.Type == corev1.ServiceTypeExternalName:
		return []dns.RR{cnameRecord(name, service.Spec.ExternalName)}, true
	case len(below) == 0:
		return c.addressRecords(name, service), true
	case strings.HasPrefix(below[0], "_") && len(below) <= 2:
		return c.srvRecords(name, service, below)
	case len(below) == 1 && isHeadless(service):
		var records []dns.RR
		for _, e := range c.endpoints(service) {
			if e.host == below[0] {
				records = append(records, aRecord(name, e.address))
			}
		}
		return records, len(records) > 0
	}
	return nil, false
}

func (c *clusterSource) addressRecords(name string, service *corev1.Service) []dns.RR {
	var records []dns.RR
	if isHeadless(service) {
		for _, e := range c.endpoints(service) {
			if one := aRecord(name, e.address); !slices.ContainsFunc(records, func(r dns.RR) bool { return dns.IsDuplicate(r, one) }) {
				records = append(records, one)
			}
		}
		return records
	}
	if address, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && address.Is4() {
		records = append(records, aRecord(name, address))
	}
	return records
}

// srvRecords returns the SRV records of one named port.
func (c *clusterSource) srvRecords(name string, service *corev1.Service, below []string) ([]dns.RR, bool) {
	protocol := strings.ToUpper(strings.TrimPrefix(below[0], "_"))
	var records []dns.RR
	some := false
	add := func(port int32, target string) {
		records = append(records, &dns.SRV{Hdr: recordHeader(name, dns.TypeSRV), Priority: 0, Weight: 100, Port: uint16(port), Target: target})
	}
	named := func(portName, portProtocol string) bool {
		if portProtocol != protocol || portName == "" {
			return false
		}
		some = true
		return len(below) == 2 && below[1] == "_"+strings.ToLower(portName)
	}
	own := c.nameOf(service)
	if !isHeadless(service) {
		for _, port := range service.Spec.Ports {
			if named(port.Name, string(cmp.Or(port.Protocol, corev1.ProtocolTCP))) {
				add(port.Port, own)
			}
		}
	} else {
		for _, e := range c.endpoints(service) {
			for _, port := range e.ports {
				if port.Name != nil && port.Port != nil && named(*port.Name, string(*cmp.Or(port.Protocol, new(corev1.ProtocolTCP)))) {
					add(*port.Port, e.host+"."+own)
				}
			}
		}
	}
	return records, some && (len(below) == 1 || len(records) > 0)
}

func (c *clusterSource) nameOf(service *corev1.Service) string {
	return service.Name + "." + service.Namespace + ".svc." + c.domain
}

type endpoint struct {
	host    string
	address netip.Addr
	ports   []discoveryv1.EndpointPort
}

// endpoints returns the ready endpoints of a Service. If the Service publishes unready addresses,
// their slices report them as ready.
func (c *clusterSource) endpoints(service *corev1.Service) []endpoint {
	objects, _ := c.slices.GetIndexer().ByIndex(byService, service.Namespace+"/"+service.Name)
	var all []endpoint
	for _, object := range objects {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
			all = append(all, endpointsIn(slice)...)
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int { return a.address.Compare(b.address) })
	return all
}

func endpointsIn(slice *discoveryv1.EndpointSlice) []endpoint {
	var all []endpoint
	for _, e := range slice.Endpoints {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready {
			continue
		}
		for _, text := range e.Addresses {
			address, err := netip.ParseAddr(text)
			if err != nil || !address.Is4() {
				continue
			}
			host := strings.ReplaceAll(text, ".", "-")
			if e.Hostname != nil && *e.Hostname != "" {
				host = strings.ToLower(*e.Hostname)
			}
			all = append(all, endpoint{host, address, slice.Ports})
		}
	}
	return all
}

// resolvePointer resolves an address to the name of a Service, or of a Pod behind a headless one.
// etcd authenticates peers by these names.
func (c *clusterSource) resolvePointer(name string) ([]dns.RR, bool) {
	labels := dns.SplitDomainName(strings.TrimSuffix(name, "."+reverseZone))
	slices.Reverse(labels)
	address, err := netip.ParseAddr(strings.Join(labels, "."))
	if err != nil {
		return nil, false
	}
	var records []dns.RR
	add := func(target string) {
		records = append(records, &dns.PTR{Hdr: recordHeader(name, dns.TypePTR), Ptr: target})
	}
	objects, _ := c.services.GetIndexer().ByIndex(byAddress, address.String())
	for _, object := range objects {
		add(c.nameOf(object.(*corev1.Service)))
	}
	objects, _ = c.slices.GetIndexer().ByIndex(byAddress, address.String())
	for _, object := range objects {
		slice := object.(*discoveryv1.EndpointSlice)
		found, _, _ := c.services.GetStore().GetByKey(serviceKey(slice))
		service, ok := found.(*corev1.Service)
		if !ok || !isHeadless(service) {
			continue
		}
		for _, e := range endpointsIn(slice) {
			if e.address == address {
				add(e.host + "." + c.nameOf(service))
			}
		}
	}
	return records, len(records) > 0
}
