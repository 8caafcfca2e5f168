// SPDX-License-Identifier: Apache-2.0

package domains

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/kinds"
)

var (
	gardens  = schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"}
	clusters = schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "clusters"}
)

// ttl is short: control planes come and go.
const ttl = 5

// Source resolves the names of API servers whose control planes are in one cluster.
type Source struct {
	gardens, clusters *kinds.Watcher
	factory           informers.SharedInformerFactory
	services          corelisters.ServiceLister
}

// New returns a Source; Run keeps it up to date.
func New(kube kubernetes.Interface, client dynamic.Interface, clk clock.WithTicker, log *slog.Logger) *Source {
	// few objects, searched for each question
	nothing := func(*unstructured.Unstructured) {}
	s := &Source{gardens: kinds.New(client, gardens, clk, log, nothing), clusters: kinds.New(client, clusters, clk, log, nothing), factory: informers.NewSharedInformerFactory(kube, 0)}
	s.services = s.factory.Core().V1().Services().Lister()
	return s
}

// Run watches until the context ends.
func (s *Source) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { s.gardens.Run(ctx) })
	group.Go(func() { s.clusters.Run(ctx) })
	s.factory.Start(ctx.Done())
	group.Wait()
	s.factory.Shutdown()
}

// serviceKey is the key of a Service.
type serviceKey struct{ namespace, name string }

// Resolve returns the address of the Service for a name.
func (s *Source) Resolve(name string) ([]dns.RR, bool) {
	to, found := s.findService(strings.TrimSuffix(name, "."))
	if !found {
		return nil, false
	}
	service, err := s.services.Services(to.namespace).Get(to.name)
	if err != nil {
		return nil, true // the Service does not exist yet
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil || !address.Is4() {
		return nil, true
	}
	return []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}, A: address.AsSlice()}}, true
}

// findService returns the API server's Service for a name.
func (s *Source) findService(name string) (serviceKey, bool) {
	for _, garden := range s.gardens.List() {
		domains, _, _ := unstructured.NestedSlice(garden.Object, "spec", "virtualCluster", "dns", "domains")
		for _, one := range domains {
			domain, _ := one.(map[string]any)
			if isAPIServerName(name, domain["name"]) {
				return serviceKey{"garden", "virtual-garden-kube-apiserver"}, true
			}
		}
	}
	for _, cluster := range s.clusters.List() {
		domain, _, _ := unstructured.NestedFieldNoCopy(cluster.Object, "spec", "shoot", "spec", "dns", "domain")
		if isAPIServerName(name, domain) {
			return serviceKey{cluster.GetName(), "kube-apiserver"}, true
		}
	}
	return serviceKey{}, false
}

// isAPIServerName reports whether a name is the API server's name in a domain.
func isAPIServerName(name string, domain any) bool {
	text, _ := domain.(string)
	return text != "" && strings.EqualFold(name, "api."+text)
}
