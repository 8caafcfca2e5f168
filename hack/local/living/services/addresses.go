// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// failAnnotation is an annotation of a Service that prevents an address.
const failAnnotation = "local.pergola.dev/fail"

var errFull = errors.New("all addresses for load balancers are in use")

// addressPool has the owners of addresses.
type addressPool struct {
	prefix netip.Prefix

	mu    sync.Mutex
	owner map[netip.Addr]string
}

// recordAddress records the address of an existing Service.
func (p *addressPool) recordAddress(object any) {
	service, ok := object.(*corev1.Service)
	if !ok || service.Spec.Type != corev1.ServiceTypeLoadBalancer || len(service.Status.LoadBalancer.Ingress) != 1 {
		return
	}
	if has, err := netip.ParseAddr(service.Status.LoadBalancer.Ingress[0].IP); err == nil {
		p.claim(has, service.Namespace+"/"+service.Name)
	}
}

// claim allocates a given address to a Service if it is free.
func (p *addressPool) claim(wish netip.Addr, key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claimLocked(wish, key)
}

func (p *addressPool) claimLocked(wish netip.Addr, key string) bool {
	if !p.prefix.Contains(wish) {
		return false
	}
	if owner, used := p.owner[wish]; used && owner != key {
		return false
	}
	if p.owner == nil {
		p.owner = map[netip.Addr]string{}
	}
	p.owner[wish] = key
	return true
}

// allocate returns the address of a Service, or a free one. The search starts at a hash of the
// name, so that a Service that is created again usually gets its old address.
func (p *addressPool) allocate(key string) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for has, owner := range p.owner {
		if owner == key {
			return has, nil
		}
	}
	hash := fnv.New32a()
	hash.Write([]byte(key))
	// The first and the last address of a range resemble a network's.
	size := uint32(1)<<min(32-p.prefix.Bits(), 24) - 2
	if p.prefix.Bits() > 30 {
		return netip.Addr{}, errFull
	}
	start := hash.Sum32() % size
	for i := range size {
		if candidate := addToAddress(p.prefix.Addr(), (start+i)%size+1); p.claimLocked(candidate, key) {
			return candidate, nil
		}
	}
	return netip.Addr{}, errFull
}

func addToAddress(base netip.Addr, n uint32) netip.Addr {
	b := base.As4()
	sum := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]) + n
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// releaseAddresses frees the addresses of a Service except one.
func (p *addressPool) releaseAddresses(key string, but netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for has, owner := range p.owner {
		if owner == key && has != but {
			delete(p.owner, has)
		}
	}
}

// assignAddress allocates an address to a Service of type LoadBalancer.
func (c *Controller) assignAddress(ctx context.Context, key string) (time.Duration, error) {
	service := c.service(key)
	if service == nil || service.Spec.Type != corev1.ServiceTypeLoadBalancer || !c.isManaged(service) {
		c.pool.releaseAddresses(key, netip.Addr{})
		return 0, nil
	}
	if _, failing := service.Annotations[failAnnotation]; failing || service.DeletionTimestamp != nil {
		return 0, nil
	}
	ingress := service.Status.LoadBalancer.Ingress
	if len(ingress) == 1 {
		if has, err := netip.ParseAddr(ingress[0].IP); err == nil && c.pool.claim(has, key) {
			c.pool.releaseAddresses(key, has)
			return 0, nil
		}
	}
	given, err := netip.ParseAddr(service.Spec.LoadBalancerIP)
	if err != nil || !c.pool.claim(given, key) {
		if given, err = c.pool.allocate(key); err != nil {
			return 0, err
		}
	}
	c.pool.releaseAddresses(key, given)
	body, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": corev1.LoadBalancerStatus{
		Ingress: []corev1.LoadBalancerIngress{{IP: given.String(), IPMode: new(corev1.LoadBalancerIPModeVIP)}},
	}}})
	if err != nil {
		return 0, fmt.Errorf("writing status: %w", err)
	}
	_, err = c.Kube.CoreV1().Services(service.Namespace).Patch(ctx, service.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "local-load-balancer"}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("giving the Service the address %s: %w", given, err)
	}
	return 0, nil
}

func (c *Controller) isManaged(service *corev1.Service) bool {
	class := service.Spec.LoadBalancerClass
	return class == nil || slices.Contains(c.LoadBalancerClasses, *class)
}
