// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"cmp"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// exposureIndex are the Ingresses and VirtualServices with their backends.
type exposureIndex struct {
	ingresses map[types.NamespacedName][]backend
	// byIngress are the Ingresses that lead to a Service.
	byIngress map[types.NamespacedName]nameSet

	virtualServices map[types.NamespacedName]*virtualService
	// byVirtualService are the VirtualServices that lead to a Service.
	byVirtualService map[types.NamespacedName]nameSet
	// virtualServicesByGateway are the VirtualServices of a gateway.
	virtualServicesByGateway map[types.NamespacedName]nameSet
	// selectors are those of gateways; gatewayGroups are the pods of each selector.
	selectors     map[types.NamespacedName]string
	gatewayGroups map[string]*gatewayGroup
}

// backend is a Service port that an Ingress or VirtualService leads to.
type backend struct {
	service types.NamespacedName
	port    networkingv1.ServiceBackendPort
}

type virtualService struct {
	backends []backend
	gateways []types.NamespacedName
}

// gatewayGroup is the pods of gateways with the same selector.
type gatewayGroup struct {
	match    map[string]string
	selector labels.Selector
	// namespaces counts the pods per namespace.
	namespaces map[string]int
	gateways   nameSet
}

func newExposureIndex() exposureIndex {
	return exposureIndex{
		ingresses: map[types.NamespacedName][]backend{}, byIngress: map[types.NamespacedName]nameSet{},
		virtualServices: map[types.NamespacedName]*virtualService{}, byVirtualService: map[types.NamespacedName]nameSet{},
		virtualServicesByGateway: map[types.NamespacedName]nameSet{}, selectors: map[types.NamespacedName]string{}, gatewayGroups: map[string]*gatewayGroup{},
	}
}

// setIngress records the backends of an Ingress.
func (x *index) setIngress(key types.NamespacedName, to []backend) indexEffect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.exposures.ingresses[key]
	if slices.Equal(before, to) {
		return indexEffect{}
	}
	affected := updateBackends(x.exposures.byIngress, key, before, to)
	if delete(x.exposures.ingresses, key); len(to) > 0 {
		x.exposures.ingresses[key] = to
	}
	return indexEffect{services: affected.UnsortedList()}
}

// setVirtualService records a VirtualService; the result is nil if it was deleted.
func (x *index) setVirtualService(key types.NamespacedName, v *virtualService) indexEffect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.exposures.virtualServices[key]
	if before == nil && v == nil || before != nil && v != nil && slices.Equal(before.backends, v.backends) && slices.Equal(before.gateways, v.gateways) {
		return indexEffect{}
	}
	var from, to []backend
	if before != nil {
		from = before.backends
		for _, g := range before.gateways {
			removeFromSet(x.exposures.virtualServicesByGateway, g, key)
		}
	}
	delete(x.exposures.virtualServices, key)
	if v != nil {
		to = v.backends
		x.exposures.virtualServices[key] = v
		for _, g := range v.gateways {
			insertIntoSet(x.exposures.virtualServicesByGateway, g, key)
		}
	}
	return indexEffect{services: updateBackends(x.exposures.byVirtualService, key, from, to).UnsortedList()}
}

// updateBackends updates the Services of an object and returns the old and the new ones.
func updateBackends(by map[types.NamespacedName]nameSet, key types.NamespacedName, from, to []backend) nameSet {
	affected := nameSet{}
	for _, b := range from {
		removeFromSet(by, b.service, key)
		affected.Insert(b.service)
	}
	for _, b := range to {
		insertIntoSet(by, b.service, key)
		affected.Insert(b.service)
	}
	return affected
}

// setGateway records the selector of a gateway; the result is empty if it was deleted or selects
// every pod.
func (x *index) setGateway(key types.NamespacedName, match map[string]string) indexEffect {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, text := &x.exposures, ""
	if len(match) > 0 {
		text = labels.Set(match).String()
	}
	before, known := e.selectors[key]
	if known && before == text {
		return indexEffect{}
	}
	if g := e.gatewayGroups[before]; known && g != nil {
		if g.gateways.Delete(key); len(g.gateways) == 0 {
			delete(e.gatewayGroups, before)
		}
	}
	if delete(e.selectors, key); text != "" {
		e.selectors[key] = text
		g := e.gatewayGroups[text]
		if g == nil {
			g = &gatewayGroup{match: match, selector: labels.SelectorFromSet(match), namespaces: map[string]int{}, gateways: nameSet{}}
			e.gatewayGroups[text] = g
			for pod, set := range x.pods {
				if g.selector.Matches(set) {
					g.namespaces[pod.Namespace]++
				}
			}
		}
		g.gateways.Insert(key)
	}
	affected := nameSet{}
	e.addBackends(key, affected)
	return indexEffect{services: affected.UnsortedList()}
}

// addBackends adds the Services that a gateway leads to.
func (e *exposureIndex) addBackends(gateway types.NamespacedName, affected nameSet) {
	for user := range e.virtualServicesByGateway[gateway] {
		for _, b := range e.virtualServices[user].backends {
			affected.Insert(b.service)
		}
	}
}

// updatePod counts a pod for the gateways that it belongs to.
func (e *exposureIndex) updatePod(x *index, namespace string, before, after labels.Set, affected nameSet) {
	for _, g := range e.gatewayGroups {
		x.comparisons++
		was, is := before != nil && g.selector.Matches(before), after != nil && g.selector.Matches(after)
		if was == is {
			continue
		}
		change := 1
		if was {
			change = -1
		}
		there := g.namespaces[namespace] > 0
		if g.namespaces[namespace] += change; g.namespaces[namespace] == 0 {
			delete(g.namespaces, namespace)
		}
		if there == (g.namespaces[namespace] > 0) {
			continue
		}
		for gateway := range g.gateways {
			e.addBackends(gateway, affected)
		}
	}
}

// servicesExposedTo returns the Services that the ingress controller or gateways of a namespace
// reach.
func (x *index) servicesExposedTo(namespace string) nameSet {
	affected := nameSet{}
	if x.ingressController != nil && x.ingressController.Namespace == namespace {
		for key := range x.exposures.byIngress {
			affected.Insert(key)
		}
	}
	for _, g := range x.exposures.gatewayGroups {
		if g.namespaces[namespace] > 0 {
			for gateway := range g.gateways {
				x.exposures.addBackends(gateway, affected)
			}
		}
	}
	return affected
}

// exposuresOf returns the ways to reach a Service without a label, in order.
func (x *index) exposuresOf(t *serviceTraffic) []exposure {
	var out []exposure
	add := func(e exposure) {
		if !slices.ContainsFunc(out, func(o exposure) bool {
			return o.via == e.via && o.namespace == e.namespace && apiequality.Semantic.DeepEqual(o.pods, e.pods) && apiequality.Semantic.DeepEqual(o.port, e.port)
		}) {
			out = append(out, e)
		}
	}
	if x.ingressController != nil {
		for key := range x.exposures.byIngress[t.key] {
			for _, b := range x.exposures.ingresses[key] {
				if port, ok := t.backendPort(b.port); ok && b.service == t.key {
					add(exposure{via: viaIngress, namespace: x.ingressController.Namespace, pods: x.ingressController.PodSelector, port: port})
				}
			}
		}
	}
	for key := range x.exposures.byVirtualService[t.key] {
		v := x.exposures.virtualServices[key]
		for _, b := range v.backends {
			port, ok := t.backendPort(b.port)
			if !ok || b.service != t.key {
				continue
			}
			for namespace, pods := range x.gatewaySelectors(v) {
				for _, match := range pods {
					add(exposure{via: viaIstio, namespace: namespace, pods: metav1.LabelSelector{MatchLabels: match}, port: port})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b exposure) int {
		return cmp.Or(cmp.Compare(a.via, b.via), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.port.Port.String(), b.port.Port.String()),
			cmp.Compare(*a.port.Protocol, *b.port.Protocol), cmp.Compare(metav1.FormatLabelSelector(&a.pods), metav1.FormatLabelSelector(&b.pods)))
	})
	return out
}

// gatewaySelectors returns the pod selectors of a VirtualService's gateways by namespace of the
// pods.
func (x *index) gatewaySelectors(v *virtualService) map[string][]map[string]string {
	out := map[string][]map[string]string{}
	seen := sets.Set[string]{}
	for _, gateway := range v.gateways {
		text := x.exposures.selectors[gateway]
		g := x.exposures.gatewayGroups[text]
		if g == nil || seen.Has(text) {
			continue
		}
		seen.Insert(text)
		for namespace := range maps.Keys(g.namespaces) {
			x.comparisons++
			out[namespace] = append(out[namespace], g.match)
		}
	}
	return out
}

func (x *index) virtualServiceKeys() []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	return sortedNames(maps.Keys(x.exposures.virtualServices))
}

func (x *index) gatewayKeys() []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	return sortedNames(maps.Keys(x.exposures.selectors))
}
