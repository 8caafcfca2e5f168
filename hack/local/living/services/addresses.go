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

// fail is an annotation of a Service that prevents an address.
const fail = "local.pergola.dev/fail"

var errFull = errors.New("all addresses for load balancers are in use")

// pool has the owners of addresses.
type pool struct {
	prefix netip.Prefix

	mu    sync.Mutex
	owner map[netip.Addr]string
}

// remember records the address of an existing Service.
func (p *pool) remember(object any) {
	service, ok := object.(*corev1.Service)
	if !ok || service.Spec.Type != corev1.ServiceTypeLoadBalancer || len(service.Status.LoadBalancer.Ingress) != 1 {
		return
	}
	if has, err := netip.ParseAddr(service.Status.LoadBalancer.Ingress[0].IP); err == nil {
		p.take(has, service.Namespace+"/"+service.Name)
	}
}

// take allocates a given address to a Service if it is free.
func (p *pool) take(wish netip.Addr, key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked(wish, key)
}

func (p *pool) takeLocked(wish netip.Addr, key string) bool {
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

// any returns the address of a Service, or a free one. The search starts at a hash of the name, so
// that a Service that is created again usually gets its old address.
func (p *pool) any(key string) (netip.Addr, error) {
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
		if candidate := plus(p.prefix.Addr(), (start+i)%size+1); p.takeLocked(candidate, key) {
			return candidate, nil
		}
	}
	return netip.Addr{}, errFull
}

func plus(base netip.Addr, n uint32) netip.Addr {
	b := base.As4()
	sum := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]) + n
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// release frees the addresses of a Service except one.
func (p *pool) release(key string, but netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for has, owner := range p.owner {
		if owner == key && has != but {
			delete(p.owner, has)
		}
	}
}

// assign allocates an address to a Service of type LoadBalancer.
func (c *Controller) assign(ctx context.Context, key string) (time.Duration, error) {
	service := c.service(key)
	if service == nil || service.Spec.Type != corev1.ServiceTypeLoadBalancer || !c.ours(service) {
		c.pool.release(key, netip.Addr{})
		return 0, nil
	}
	if _, failing := service.Annotations[fail]; failing || service.DeletionTimestamp != nil {
		return 0, nil
	}
	ingress := service.Status.LoadBalancer.Ingress
	if len(ingress) == 1 {
		if has, err := netip.ParseAddr(ingress[0].IP); err == nil && c.pool.take(has, key) {
			c.pool.release(key, has)
			return 0, nil
		}
	}
	given, err := netip.ParseAddr(service.Spec.LoadBalancerIP)
	if err != nil || !c.pool.take(given, key) {
		if given, err = c.pool.any(key); err != nil {
			return 0, err
		}
	}
	c.pool.release(key, given)
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

func (c *Controller) ours(service *corev1.Service) bool {
	class := service.Spec.LoadBalancerClass
	return class == nil || slices.Contains(c.LoadBalancerClasses, *class)
}
