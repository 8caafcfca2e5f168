// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// checkDisabledComponents finds disabled components of an owner that other components need. The
// needs follow from rendered objects and from the flow:
//
//   - Others use its pods, kinds, namespaces, webhooks, addresses or kubeconfigs. This is an error,
//     unless landscape.yaml lists the object as external. The same is true if pods connect to its
//     Service and the flow makes them wait for it.
//   - Others have objects of kinds that it reconciles, connect to it, or wait for it in the flow.
//     This is a warning, because they may work without it or use a replacement.
func (c *landscapeCheck) checkDisabledComponents(in Input) {
	if c.options == nil {
		return
	}
	n := componentNeeds{owner: in.Owner, disabled: map[string]bool{}, objectUsers: map[string]map[objectID]map[string]bool{}, waiters: map[string]map[string]bool{}}
	opts := *c.options
	opts.Enabled, opts.probes, opts.OnlyComponents = maps.Clone(opts.Enabled), nil, nil
	for component, on := range c.options.Enabled {
		if !on && path.Dir(component) == in.Owner.Kind {
			n.disabled[component] = true
			delete(opts.Enabled, component)
		}
	}
	if len(n.disabled) == 0 {
		return
	}
	in.OnlyComponents = nil
	result, _ := Render(in, opts) // rendering elsewhere reports errors
	n.bundles = result.Bundles
	flow, err := LoadFlow(c.catalogue, requiredOperations[0], in)
	if err == nil { // else a landscape is not to blame
		n.collectWaiters(flow)
	}
	n.collectProvided()
	n.collectReconciled()
	n.collectUses(func(t objectID) bool {
		return slices.ContainsFunc(c.landscape.Config.Spec.External, func(e landscapev1alpha1.ExternalObject) bool {
			return crosscheck.External(e).Matches(t.kind, t.namespace, t.name)
		})
	})
	for _, component := range sortedKeys(n.disabled) {
		n.report(component, c)
	}
}

// objectID is an object that components have and use.
type objectID struct{ cluster, kind, namespace, name string }

func (t objectID) String() string { return t.kind + " " + path.Join(t.namespace, t.name) }

// componentNeeds are the needs of the components of an owner.
type componentNeeds struct {
	owner    Owner
	disabled map[string]bool
	bundles  []Bundle

	// provided are the objects that only disabled components have, with the component. kinds are
	// the kinds that these define. services are their Services by the names in client labels;
	// addresses are Services by the names of address facts.
	provided  map[objectID]string
	kinds     map[string]objectID
	services  map[string]objectID
	addresses map[string]objectID

	// objectUsers are objects of a disabled component with the components that use them. waiters
	// are the components that wait for it; clients are the components that connect to it.
	// reconciledKinds are the kinds that it reconciles, with the components that have such objects.
	objectUsers     map[string]map[objectID]map[string]bool
	waiters         map[string]map[string]bool
	clients         map[string]map[objectID]map[string]bool
	reconciledKinds map[string]map[string]map[string]bool
}

// collectWaiters notes the components that wait in the flow until a disabled component is healthy,
// directly or through nodes without bundles.
func (n *componentNeeds) collectWaiters(flow Flow) {
	of := map[string]string{}
	for _, b := range n.bundles {
		of[b.Name] = b.Component
	}
	componentsOf := func(node FlowNode) map[string]bool {
		found := map[string]bool{}
		for _, b := range node.Bundles {
			if component := of[b]; component != "" {
				found[component] = true
			}
		}
		return found
	}
	var follow func(id, component string, seen map[string]bool)
	follow = func(id, component string, seen map[string]bool) {
		for _, node := range flow.Nodes {
			if state := node.After[id]; state == "" || state == "applied" || seen[node.ID] || !node.If {
				continue
			}
			seen[node.ID] = true
			found := componentsOf(node)
			for other := range found {
				if !n.disabled[other] {
					addComponent(n.waiters, component, other)
				}
			}
			if len(node.Bundles) == 0 || found[component] {
				follow(node.ID, component, seen)
			}
		}
	}
	for _, node := range flow.Nodes {
		for component := range componentsOf(node) {
			if n.disabled[component] {
				follow(node.ID, component, map[string]bool{node.ID: true})
			}
		}
	}
}

// collectProvided notes the objects that only disabled components have.
func (n *componentNeeds) collectProvided() {
	n.provided, n.kinds, n.services, n.addresses = map[objectID]string{}, map[string]objectID{}, map[string]objectID{}, map[string]objectID{}
	others := map[objectID]bool{}
	n.eachObject(func(b Bundle, o Object) {
		t := objectID{b.Cluster, o.GetKind(), o.GetNamespace(), o.GetName()}
		if n.disabled[b.Component] {
			n.provided[t] = b.Component
		} else {
			others[t] = true
		}
	})
	maps.DeleteFunc(n.provided, func(t objectID, _ string) bool { return others[t] })
	n.eachObject(func(b Bundle, o Object) {
		t := objectID{b.Cluster, o.GetKind(), o.GetNamespace(), o.GetName()}
		component, provided := n.provided[t]
		if !provided || component != b.Component {
			return
		}
		switch t.kind {
		case "CustomResourceDefinition":
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			n.kinds[path.Join(t.cluster, group, kind)] = t
		case "Service":
			n.addServiceNames(t)
			n.addresses[t.name] = t
			if other, known := n.addresses[t.namespace]; !known || t.name < other.name {
				// A gateway's own namespace may have further Services with longer names.
				n.addresses[t.namespace] = t
			}
		case "Etcd": // its controller makes the Service
			client := objectID{t.cluster, "Service", t.namespace, t.name + "-client"}
			n.provided[client] = component
			n.addServiceNames(client)
		}
	})
}

// collectReconciled notes objects of kinds that only disabled components reconcile, that is, may
// change.
func (n *componentNeeds) collectReconciled() {
	plurals, workers := map[string]string{}, map[string]map[string]bool{}
	n.eachObject(func(b Bundle, o Object) {
		switch o.GetKind() {
		case "CustomResourceDefinition":
			spec, _ := o.Object["spec"].(map[string]any)
			names, _ := spec["names"].(map[string]any)
			plurals[fmt.Sprintf("%s/%s/%v", b.Cluster, spec["group"], names["kind"])] = fmt.Sprintf("%s/%s/%v", b.Cluster, spec["group"], names["plural"])
		case "ClusterRole", "Role":
			for _, rule := range mapsIn(o.Object["rules"]) {
				for _, group := range stringsIn(rule["apiGroups"]) {
					for _, resource := range stringsIn(rule["resources"]) {
						if slices.ContainsFunc(stringsIn(rule["verbs"]), func(verb string) bool { return verb == "*" || verb == "update" || verb == "patch" }) {
							// most may only write the status
							plural, _, _ := strings.Cut(resource, "/")
							addComponent(workers, path.Join(b.Cluster, group, plural), b.Component)
						}
					}
				}
			}
		}
	})
	n.reconciledKinds = map[string]map[string]map[string]bool{}
	n.eachObject(func(b Bundle, o Object) {
		gvk := o.GroupVersionKind()
		by := sortedKeys(workers[plurals[path.Join(b.Cluster, gvk.Group, gvk.Kind)]])
		if n.disabled[b.Component] || len(by) == 0 || slices.ContainsFunc(by, func(component string) bool { return !n.disabled[component] }) {
			return
		}
		for _, component := range by {
			if n.reconciledKinds[component] == nil {
				n.reconciledKinds[component] = map[string]map[string]bool{}
			}
			addComponent(n.reconciledKinds[component], gvk.Kind, b.Component)
		}
	})
}

func stringsIn(list any) []string {
	items, _ := list.([]any)
	var out []string
	for _, item := range items {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// addServiceNames notes the names of a Service in the labels of its clients.
func (n *componentNeeds) addServiceNames(service objectID) {
	n.services[service.name] = service
	n.services[service.namespace+"-"+service.name] = service
}

func (n *componentNeeds) eachObject(visit func(Bundle, Object)) {
	for _, b := range n.bundles {
		for _, o := range b.Objects {
			visit(b, o)
		}
	}
}

// collectUses notes the provided objects that other components need, unless they exist externally.
func (n *componentNeeds) collectUses(external func(objectID) bool) {
	n.clients = map[string]map[objectID]map[string]bool{}
	for _, b := range n.bundles {
		if n.disabled[b.Component] {
			continue
		}
		use := func(in map[string]map[objectID]map[string]bool, t objectID) {
			component, provided := n.provided[t]
			if !provided || external(t) {
				return
			}
			if in[component] == nil {
				in[component] = map[objectID]map[string]bool{}
			}
			addComponent(in[component], t, b.Component)
		}
		if b.Delivery.ServedBy != "" {
			use(n.objectUsers, objectID{ClusterRuntime, "Deployment", n.owner.ControlPlaneNamespace, b.Delivery.ServedBy})
		}
		for _, fact := range b.Unresolved {
			if name, ok := strings.CutPrefix(fact, "address "); ok {
				use(n.objectUsers, n.addresses[name])
			}
		}
		for _, o := range b.Objects {
			// the runtime namespace exists before the Garden
			if ns := o.GetNamespace(); b.Cluster != ClusterRuntime || ns != n.owner.ControlPlaneNamespace {
				use(n.objectUsers, objectID{b.Cluster, "Namespace", "", ns})
			}
			gvk := o.GroupVersionKind()
			use(n.objectUsers, n.kinds[path.Join(b.Cluster, gvk.Group, gvk.Kind)])
			for _, server := range serversOf(o.Unstructured) {
				use(n.objectUsers, objectID{b.Cluster, "Service", server.namespace, server.name})
			}
			for _, spec := range podSpecs(o.Unstructured) {
				account, _ := spec["serviceAccountName"].(string)
				class, _ := spec["priorityClassName"].(string)
				use(n.objectUsers, objectID{b.Cluster, "ServiceAccount", o.GetNamespace(), account})
				use(n.objectUsers, objectID{b.Cluster, "PriorityClass", "", class})
			}
			eachReference(o.Unstructured, func(kind, name string) string {
				use(n.objectUsers, objectID{b.Cluster, kind, o.GetNamespace(), name})
				return name
			})
			for _, template := range podTemplates(o.Unstructured) {
				labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
				for label := range labels {
					if service, ok := n.services[serviceInLabel(label)]; ok && (service.namespace == o.GetNamespace() || strings.Contains(label, service.namespace+"-")) {
						if n.waiters[n.provided[service]][b.Component] {
							use(n.objectUsers, service)
						} else {
							use(n.clients, service)
						}
					}
				}
			}
		}
	}
}

// serviceInLabel is the Service that a label lets pods connect to (network policies of namespaces);
// it is empty for another label.
func serviceInLabel(label string) string {
	name, ok := strings.CutPrefix(label, "networking.resources.gardener.cloud/to-")
	if at := strings.LastIndex(name, "-tcp-"); ok && at > 0 {
		return name[:at]
	}
	return ""
}

func addComponent[K comparable](in map[K]map[string]bool, key K, component string) {
	if in[key] == nil {
		in[key] = map[string]bool{}
	}
	in[key][component] = true
}

// report reports the components that need a disabled one.
func (n *componentNeeds) report(component string, c *landscapeCheck) {
	field := fmt.Sprintf("spec.components.%s.%s.enabled", path.Dir(component), path.Base(component))
	told := map[string]bool{}
	if uses := n.objectUsers[component]; len(uses) > 0 {
		for _, by := range uses {
			maps.Copy(told, by)
		}
		c.configError(field, ruleComponentNeeded, schemas.TypeForbidden, "%s is off, but its objects are needed: %s; switch it on, switch the others off, or list objects from outside the landscape in spec.external",
			component, formatUses(uses))
	}
	var parts []string
	if works := n.reconciledKinds[component]; len(works) > 0 {
		parts = append(parts, "it reconciles objects of others: "+formatUses(works))
	}
	if calls := unreportedUses(n.clients[component], told); len(calls) > 0 {
		parts = append(parts, "pods connect to its Services: "+formatUses(calls))
	}
	waits := maps.Clone(n.waiters[component])
	maps.DeleteFunc(waits, func(other string, _ bool) bool { return told[other] })
	if len(waits) > 0 {
		parts = append(parts, "components that wait until it is healthy: "+strings.Join(sortedKeys(waits), ", "))
	}
	if len(parts) > 0 {
		c.configWarning(field, ruleComponentAwaited, schemas.TypeInvalid, "%s is off: %s; provide a replacement for it", component, strings.Join(parts, "; "))
	}
}

// unreportedUses skips components that were already reported.
func unreportedUses(uses map[objectID]map[string]bool, told map[string]bool) map[objectID]map[string]bool {
	left := map[objectID]map[string]bool{}
	for t, by := range uses {
		for component := range by {
			if !told[component] {
				addComponent(left, t, component)
			}
		}
	}
	return left
}

// formatUses are objects or kinds, each with its users.
func formatUses[K comparable](uses map[K]map[string]bool) string {
	var parts []string
	for t, by := range uses {
		parts = append(parts, fmt.Sprintf("%v by %s", t, strings.Join(sortedKeys(by), ", ")))
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "; ")
}
