// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"maps"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// setService records a Service; the result is nil if it was deleted or asks for nothing.
func (x *index) setService(key types.NamespacedName, t *serviceTraffic) indexEffect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.services[key]
	if before == nil && t == nil || before != nil && t != nil && apiequality.Semantic.DeepEqual(before.inputs, t.inputs) {
		if before != nil {
			before.uid = t.uid
		}
		return indexEffect{}
	}
	if before != nil {
		for _, r := range before.portRules {
			removeFromSet(x.byLocalLabel, clientGroup{key.Namespace, r.localLabel}, key)
			removeFromSet(x.byForeignLabel, r.foreignLabel, key)
		}
		removeFromSet(x.servicesByNamespace, key.Namespace, key)
		delete(x.services, key)
	}
	if t != nil {
		x.services[key] = t
		insertIntoSet(x.servicesByNamespace, key.Namespace, key)
		for _, r := range t.portRules {
			insertIntoSet(x.byLocalLabel, clientGroup{key.Namespace, r.localLabel}, key)
			if len(t.namespaces) > 0 {
				insertIntoSet(x.byForeignLabel, r.foreignLabel, key)
			}
		}
	}
	return indexEffect{services: []types.NamespacedName{key}}
}

// setNamespace records a namespace; the result is nil if it was deleted.
func (x *index) setNamespace(name string, ns *namespace) indexEffect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.namespaces[name]
	if before != nil && ns != nil && before.terminating == ns.terminating && maps.Equal(before.labels, ns.labels) {
		return indexEffect{}
	}
	handled := x.isManagedNamespace(name)
	if ns == nil {
		delete(x.namespaces, name)
	} else {
		x.namespaces[name] = ns
	}
	affected := nameSet{}
	appears := before == nil || ns == nil || before.terminating != ns.terminating
	if appears || x.isManagedNamespace(name) != handled {
		x.addServices(affected, x.servicesByNamespace[name])
	}
	for label := range x.labelsByNamespace[name] {
		x.addServices(affected, x.byForeignLabel[label])
	}
	if appears {
		x.addServices(affected, x.servicesExposedTo(name))
	}
	return indexEffect{services: affected.UnsortedList()}
}

// setPod records the labels of a pod; the result is nil if it was deleted.
func (x *index) setPod(key types.NamespacedName, set labels.Set) indexEffect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before, known := x.pods[key]
	if set == nil {
		delete(x.pods, key)
	} else {
		x.pods[key] = set
	}
	if known && set != nil && maps.Equal(before, set) {
		return indexEffect{}
	}
	affected, out := nameSet{}, indexEffect{}
	for label := range before {
		if isClient(before, label) && !isClient(set, label) {
			x.removeClient(clientGroup{key.Namespace, label}, affected, &out)
		}
	}
	for label := range set {
		if isClient(set, label) && !isClient(before, label) {
			x.addClient(clientGroup{key.Namespace, label}, affected)
		}
	}
	x.exposures.updatePod(x, key.Namespace, before, set, affected)
	out.services = affected.UnsortedList()
	return out
}

// isClient reports whether a label allows a pod to reach something.
func isClient(set labels.Set, label string) bool {
	return strings.HasPrefix(label, labelPrefix) && set[label] == labelAllowed
}

func (x *index) addClient(c clientGroup, affected nameSet) {
	p := x.clientCounts[c.label][c.namespace]
	if p == nil {
		p = &clientCount{}
		if x.clientCounts[c.label] == nil {
			x.clientCounts[c.label] = map[string]*clientCount{}
		}
		x.clientCounts[c.label][c.namespace] = p
		insertIntoSet(x.labelsByNamespace, c.namespace, c.label)
		x.addServicesOf(c, affected)
	}
	p.pods++
}

func (x *index) removeClient(c clientGroup, affected nameSet, out *indexEffect) {
	p := x.clientCounts[c.label][c.namespace]
	if p.pods--; p.pods > 0 {
		return
	}
	p.generation++
	if x.linger > 0 {
		out.departed = append(out.departed, clientDeparture{c, p.generation})
		return
	}
	x.dropClients(c)
	x.addServicesOf(c, affected)
}

// endLingerPeriod ends the linger time of clients.
func (x *index) endLingerPeriod(d clientDeparture) indexEffect {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.clientCounts[d.label][d.namespace]
	if p == nil || p.pods > 0 || p.generation != d.generation {
		return indexEffect{} // new clients exist
	}
	x.dropClients(d.clientGroup)
	affected := nameSet{}
	x.addServicesOf(d.clientGroup, affected)
	return indexEffect{services: affected.UnsortedList()}
}

func (x *index) dropClients(c clientGroup) {
	delete(x.clientCounts[c.label], c.namespace)
	if len(x.clientCounts[c.label]) == 0 {
		delete(x.clientCounts, c.label)
	}
	removeFromSet(x.labelsByNamespace, c.namespace, c.label)
}

// addServicesOf adds the Services with a rule for clients.
func (x *index) addServicesOf(c clientGroup, affected nameSet) {
	x.addServices(affected, x.byLocalLabel[c])
	x.addServices(affected, x.byForeignLabel[c.label])
}

// addServices adds Services to the affected ones.
func (x *index) addServices(affected, services nameSet) {
	x.comparisons += len(services)
	for key := range services {
		affected.Insert(key)
	}
}
