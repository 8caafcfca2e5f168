// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// address is a listening address of a Service.
type address struct {
	protocol corev1.Protocol
	addrPort netip.AddrPort
}

func (a address) String() string { return fmt.Sprintf("%s %s", a.protocol, a.addrPort) }

// target is the target of an address.
type target struct {
	port     destination
	balancer *balancer
	// routes are the routes of a gateway that does not run; it is nil if there is none.
	routes []route
}

// listener is one listening address.
type listener struct {
	io.Closer
	target atomic.Pointer[target]
}

// syncListeners makes the listeners of the Service with the key match its spec.
func (c *Controller) syncListeners(ctx context.Context, key string) (time.Duration, error) {
	wanted := map[address]*target{}
	service := c.service(key)
	if service != nil {
		wanted = c.wantedTargets(service)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, l := range c.listeners {
		if l.target.Load().port.key() == key && wanted[at] == nil {
			l.Close()
			delete(c.listeners, at)
		}
	}
	if service == nil {
		for port := range c.balancers {
			if port.key() == key {
				delete(c.balancers, port)
			}
		}
	}
	var troubles []error
	for at, t := range wanted {
		if err := c.listen(ctx, at, t); err != nil {
			troubles = append(troubles, err)
		}
	}
	return 0, errors.Join(troubles...)
}

func (c *Controller) listen(ctx context.Context, at address, t *target) error {
	if l := c.listeners[at]; l != nil {
		if other := l.target.Load().port.key(); other != t.port.key() {
			return fmt.Errorf("%s is in use by Service %s", at, other)
		}
		l.target.Store(t)
		return nil
	}
	l := &listener{}
	l.target.Store(t)
	var err error
	switch at.protocol {
	case corev1.ProtocolTCP:
		l.Closer, err = listenTCP(ctx, at.addrPort, &c.openConnections, func(ctx context.Context, from *net.TCPConn) { c.forwardConnection(ctx, from, l.target.Load()) })
	case corev1.ProtocolUDP:
		l.Closer, err = listenUDP(ctx, at.addrPort,
			func(from netip.Addr) []netip.AddrPort { return l.target.Load().balancer.candidates(from) },
			func(from netip.Addr, endpoint netip.AddrPort) {
				l.target.Load().balancer.recordEndpoint(from, endpoint)
			})
	}
	if err != nil {
		return fmt.Errorf("listening at %s: %w", at, err)
	}
	c.listeners[at] = l
	return nil
}

// wantedTargets returns the addresses of a Service and their targets. It omits ports without
// endpoints, so that clients are refused at once.
func (c *Controller) wantedTargets(service *corev1.Service) map[address]*target {
	all := map[address]*target{}
	hosts := serviceAddresses(service)
	if len(hosts) == 0 {
		return all
	}
	var sticky time.Duration
	if service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		sticky = time.Duration(corev1.DefaultClientIPServiceAffinitySeconds) * time.Second
		if config := service.Spec.SessionAffinityConfig; config != nil && config.ClientIP != nil && config.ClientIP.TimeoutSeconds != nil {
			sticky = time.Duration(*config.ClientIP.TimeoutSeconds) * time.Second
		}
	}
	for _, port := range service.Spec.Ports {
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		endpoints := c.endpoints(service, port)
		if len(endpoints) == 0 || port.Protocol == corev1.ProtocolSCTP {
			continue
		}
		t := &target{port: destination{service.Namespace, service.Name, port.Port}}
		t.balancer = c.balancer(t.port, port.Protocol)
		t.balancer.set(endpoints, sticky)
		if c.Dynamic != nil && port.Protocol == corev1.ProtocolTCP && isPlayed(endpoints[0]) {
			t.routes = routesOf(service, port, c.gateways.List(), c.virtualServices.List())
		}
		for _, host := range hosts {
			all[address{port.Protocol, netip.AddrPortFrom(host, uint16(port.Port))}] = t
		}
	}
	return all
}

func serviceAddresses(service *corev1.Service) []netip.Addr {
	if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	texts := append([]string{service.Spec.ClusterIP}, service.Spec.ExternalIPs...)
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			texts = append(texts, ingress.IP)
		}
	}
	var hosts []netip.Addr
	for _, text := range texts {
		if host, err := netip.ParseAddr(text); err == nil && host.Is4() {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// balancer returns the balancer of a port of a Service; it exists as long as the Service.
func (c *Controller) balancer(port destination, protocol corev1.Protocol) *balancer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if protocol == corev1.ProtocolUDP {
		port.port = -port.port // TCP may have the same number
	}
	b := c.balancers[port]
	if b == nil {
		b = &balancer{clock: c.Clock}
		c.balancers[port] = b
	}
	return b
}

// forwardConnection forwards one connection.
func (c *Controller) forwardConnection(ctx context.Context, from *net.TCPConn, t *target) {
	if t.routes != nil {
		c.forwardByServerName(ctx, from, t)
		return
	}
	peer := from.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
	to, endpoint, err := dialFirst(ctx, t.balancer.candidates(peer))
	if err != nil {
		c.Log.Debug("No endpoint answers", "service", t.port.key(), "port", t.port.port, "error", err)
		resetConnection(from)
		return
	}
	t.balancer.recordEndpoint(peer, endpoint)
	c.join(from, to)
}

// forwardByServerName forwards a TLS connection by its server name, like a gateway.
func (c *Controller) forwardByServerName(ctx context.Context, from *net.TCPConn, t *target) {
	name, read, err := readClientHello(from)
	if err != nil {
		c.Log.Debug("Not a TLS client", "service", t.port.key(), "error", err)
		resetConnection(from)
		return
	}
	behind, ok := findRoute(t.routes, name)
	if !ok {
		c.Log.Debug("No route for a name", "service", t.port.key(), "name", name)
		resetConnection(from)
		return
	}
	to, _, err := dialFirst(ctx, c.endpointsAt(behind))
	if err != nil {
		c.Log.Debug("No endpoint answers", "service", behind.key(), "name", name, "error", err)
		resetConnection(from)
		return
	}
	if _, err := to.Write(read); err != nil {
		resetConnection(from)
		to.Close()
		return
	}
	c.join(from, to)
}

// endpointsAt returns the endpoints of a route's destination.
func (c *Controller) endpointsAt(to destination) []netip.AddrPort {
	service := c.service(to.key())
	if service == nil {
		return nil
	}
	for _, port := range service.Spec.Ports {
		if port.Port == to.port || to.port == 0 && len(service.Spec.Ports) == 1 {
			return c.endpoints(service, port)
		}
	}
	return nil
}

func (c *Controller) join(from, to *net.TCPConn) {
	if !c.openConnections.add(to) {
		resetConnection(from)
		to.Close()
		return
	}
	defer c.openConnections.remove(to)
	copyBoth(from, to)
}

// ServiceAt returns the Service, as namespace/name, that gets TCP connections to an address.
// For a gateway it is the target of connections with the server name.
func (c *Controller) ServiceAt(at netip.AddrPort, name string) (service string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listeners[address{corev1.ProtocolTCP, at}]
	if l == nil {
		return "", false
	}
	t := l.target.Load()
	if t.routes == nil {
		return t.port.key(), true
	}
	behind, ok := findRoute(t.routes, name)
	return behind.key(), ok
}
