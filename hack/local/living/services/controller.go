// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/kinds"
	"github.com/pergola-dev/pergola/hack/local/living/queue"
)

// Options configure a Controller.
type Options struct {
	Kube kubernetes.Interface
	// Dynamic reads Istio's kinds; without it there are no gateways.
	Dynamic dynamic.Interface
	// KubernetesEndpoint is the address of the cluster's API server, the target of the Service
	// default/kubernetes. If it is invalid, that Service is like any other.
	KubernetesEndpoint netip.AddrPort
	// LoadBalancers is the address range of load balancers; there are none if it is invalid.
	LoadBalancers netip.Prefix
	// LoadBalancerClasses are served besides Services without a class.
	LoadBalancerClasses []string
	// Clock is the real clock if nil.
	Clock clock.WithTicker
	// Log is the default logger if nil.
	Log *slog.Logger
}

// Controller implements the Services of a cluster.
type Controller struct {
	Options
	factory         informers.SharedInformerFactory
	services        cache.SharedIndexInformer
	slices          cache.SharedIndexInformer
	gateways        *kinds.Watcher
	virtualServices *kinds.Watcher
	forwarding      *queue.Queue
	addresses       *queue.Queue
	pool            addressPool

	openConnections connections

	mu        sync.Mutex
	listeners map[address]*listener
	balancers map[destination]*balancer
}

const byService = "service"

// New returns a Controller; Run starts it.
func New(options Options) (*Controller, error) {
	c := &Controller{Options: options, listeners: map[address]*listener{}, balancers: map[destination]*balancer{}}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = c.Log.With("controller", "services")
	c.forwarding, c.addresses = queue.New(c.Clock, c.Log, c.syncListeners), queue.New(c.Clock, c.Log, c.assignAddress)
	c.pool.prefix = c.LoadBalancers.Masked()
	c.factory = informers.NewSharedInformerFactory(c.Kube, 0)
	c.services = c.factory.Core().V1().Services().Informer()
	c.slices = c.factory.Discovery().V1().EndpointSlices().Informer()
	if err := c.slices.AddIndexers(cache.Indexers{byService: func(object any) ([]string, error) {
		if key := serviceKey(object); key != "" {
			return []string{key}, nil
		}
		return nil, nil
	}}); err != nil {
		return nil, fmt.Errorf("indexing EndpointSlices: %w", err)
	}
	if c.Dynamic != nil {
		all := func(*unstructured.Unstructured) { c.forEachService(c.forwarding.AddObject) }
		c.gateways = kinds.New(c.Dynamic, gatewayResource, c.Clock, c.Log, all)
		c.virtualServices = kinds.New(c.Dynamic, virtualServiceResource, c.Clock, c.Log, all)
	}
	return c, nil
}

func serviceKey(object any) string {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok || slice.Labels[discoveryv1.LabelServiceName] == "" {
		return ""
	}
	return slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
}

// Run listens and forwards until the context ends, and then closes everything.
func (c *Controller) Run(ctx context.Context) error {
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		c.services: queue.ObjectHandler(func(object any) {
			c.forwarding.AddObject(object)
			c.addresses.AddObject(object)
		}),
		c.slices: queue.ObjectHandler(func(object any) {
			if key := serviceKey(object); key != "" {
				c.forwarding.Add(key)
			}
		}),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching Services: %w", err)
		}
	}
	c.factory.StartWithContext(ctx)
	defer c.factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), c.services.HasSynced, c.slices.HasSynced) {
		return nil
	}
	var group sync.WaitGroup
	if c.Dynamic != nil {
		group.Go(func() { c.gateways.Run(ctx) })
		group.Go(func() { c.virtualServices.Run(ctx) })
	}
	if c.LoadBalancers.IsValid() {
		c.forEachService(c.pool.recordAddress)
		group.Go(func() { c.addresses.Run(ctx) })
	}
	c.forwarding.Run(ctx)
	group.Wait()
	c.mu.Lock()
	for at, l := range c.listeners {
		l.Close()
		delete(c.listeners, at)
	}
	c.mu.Unlock()
	c.openConnections.closeAll()
	return nil
}

func (c *Controller) forEachService(do func(service any)) {
	for _, object := range c.services.GetStore().List() {
		do(object)
	}
}

// service returns the Service with the key, or nil.
func (c *Controller) service(key string) *corev1.Service {
	object, _, _ := c.services.GetStore().GetByKey(key)
	service, _ := object.(*corev1.Service)
	return service
}

// endpoints returns the current endpoints of a port of a Service.
func (c *Controller) endpoints(service *corev1.Service, port corev1.ServicePort) []netip.AddrPort {
	if service.Namespace == "default" && service.Name == "kubernetes" && c.KubernetesEndpoint.IsValid() {
		return []netip.AddrPort{c.KubernetesEndpoint}
	}
	objects, err := c.slices.GetIndexer().ByIndex(byService, service.Namespace+"/"+service.Name)
	if err != nil {
		return nil
	}
	all := make([]*discoveryv1.EndpointSlice, 0, len(objects))
	for _, object := range objects {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
			all = append(all, slice)
		}
	}
	return selectEndpoints(all, port)
}
