package networkpolicy

import (
	"maps"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// setService records a Service; nil if it was deleted or asks for nothing.
func (x *index) setService(key types.NamespacedName, t *target) effect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.services[key]
	if before == nil && t == nil || before != nil && t != nil && apiequality.Semantic.DeepEqual(before.source, t.source) {
		if before != nil {
			before.uid = t.uid
		}
		return effect{}
	}
	if before != nil {
		for _, r := range before.rules {
			remove(x.byLocal, clients{key.Namespace, r.local}, key)
			remove(x.byForeign, r.foreign, key)
		}
		remove(x.servicesIn, key.Namespace, key)
		delete(x.services, key)
	}
	if t != nil {
		x.services[key] = t
		insert(x.servicesIn, key.Namespace, key)
		for _, r := range t.rules {
			insert(x.byLocal, clients{key.Namespace, r.local}, key)
			if len(t.namespaces) > 0 {
				insert(x.byForeign, r.foreign, key)
			}
		}
	}
	return effect{services: []types.NamespacedName{key}}
}

// setNamespace records a namespace; nil if it was deleted.
func (x *index) setNamespace(name string, ns *namespace) effect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.namespaces[name]
	if before != nil && ns != nil && before.terminating == ns.terminating && maps.Equal(before.labels, ns.labels) {
		return effect{}
	}
	handled := x.handles(name)
	if ns == nil {
		delete(x.namespaces, name)
	} else {
		x.namespaces[name] = ns
	}
	affected := keySet{}
	appears := before == nil || ns == nil || before.terminating != ns.terminating
	if appears || x.handles(name) != handled {
		x.concern(affected, x.servicesIn[name])
	}
	for label := range x.labelsIn[name] {
		x.concern(affected, x.byForeign[label])
	}
	if appears {
		x.concern(affected, x.exposedTo(name))
	}
	return effect{services: affected.UnsortedList()}
}

// setPod records the labels of a pod; nil if it was deleted.
func (x *index) setPod(key types.NamespacedName, set labels.Set) effect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before, known := x.pods[key]
	if set == nil {
		delete(x.pods, key)
	} else {
		x.pods[key] = set
	}
	if known && set != nil && maps.Equal(before, set) {
		return effect{}
	}
	affected, out := keySet{}, effect{}
	for label := range before {
		if isClient(before, label) && !isClient(set, label) {
			x.leave(clients{key.Namespace, label}, affected, &out)
		}
	}
	for label := range set {
		if isClient(set, label) && !isClient(before, label) {
			x.enter(clients{key.Namespace, label}, affected)
		}
	}
	x.exposures.movePod(x, key.Namespace, before, set, affected)
	out.services = affected.UnsortedList()
	return out
}

// isClient reports whether a label allows a pod to reach something.
func isClient(set labels.Set, label string) bool {
	return strings.HasPrefix(label, labelPrefix) && set[label] == allowed
}

func (x *index) enter(c clients, affected keySet) {
	p := x.present[c.label][c.namespace]
	if p == nil {
		p = &presence{}
		if x.present[c.label] == nil {
			x.present[c.label] = map[string]*presence{}
		}
		x.present[c.label][c.namespace] = p
		insert(x.labelsIn, c.namespace, c.label)
		x.interested(c, affected)
	}
	p.pods++
}

func (x *index) leave(c clients, affected keySet, out *effect) {
	p := x.present[c.label][c.namespace]
	if p.pods--; p.pods > 0 {
		return
	}
	p.left++
	if x.linger > 0 {
		out.gone = append(out.gone, departure{c, p.left})
		return
	}
	x.forget(c)
	x.interested(c, affected)
}

// expire ends the linger time of clients.
func (x *index) expire(d departure) effect {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.present[d.label][d.namespace]
	if p == nil || p.pods > 0 || p.left != d.left {
		return effect{} // new clients exist
	}
	x.forget(d.clients)
	affected := keySet{}
	x.interested(d.clients, affected)
	return effect{services: affected.UnsortedList()}
}

func (x *index) forget(c clients) {
	delete(x.present[c.label], c.namespace)
	if len(x.present[c.label]) == 0 {
		delete(x.present, c.label)
	}
	remove(x.labelsIn, c.namespace, c.label)
}

// interested adds the Services with a rule for clients.
func (x *index) interested(c clients, affected keySet) {
	x.concern(affected, x.byLocal[c])
	x.concern(affected, x.byForeign[c.label])
}

// concern adds Services to the affected ones.
func (x *index) concern(affected, services keySet) {
	x.examined += len(services)
	for key := range services {
		affected.Insert(key)
	}
}
