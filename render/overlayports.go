// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// portID is a port by name or number.
type portID struct{ text, protocol string }

// portProtocol is the protocol of a port with its default.
func portProtocol(port map[string]any) string {
	if protocol := textAt(port, "protocol"); protocol != "" {
		return protocol
	}
	return "TCP"
}

// requirePolicyPorts requires the ports of the pods of a NetworkPolicy, if these have any.
func (w *referenceWalk) requirePolicyPorts(object map[string]any) {
	labels := labelsIn(valueIn(object, "spec", "podSelector", "matchLabels"))
	for i, rule := range mapsIn(valueIn(object, "spec", "ingress")) {
		for j, port := range mapsIn(rule["ports"]) {
			if port["endPort"] == nil {
				w.requirePort(fieldpath.Path{"spec", "ingress", i, "ports", j, "port"}, port["port"], portProtocol(port), "pods", labels, w.portsOfPods(labels))
			}
		}
	}
}

// requireServicePort requires a port of a rendered Service: by name or number for a backend, by
// number for a webhook.
func (w *referenceWalk) requireServicePort(path fieldpath.Path, object map[string]any, namespace string) {
	name, port := textAt(object, "name"), object["port"]
	if of, is := port.(map[string]any); is {
		path = path.Append("port")
		for _, field := range []string{"name", "number"} {
			if of[field] != nil {
				port, path = of[field], path.Append(field)
			}
		}
	} else {
		path = path.Append("port")
	}
	if name == "" || port == nil {
		return
	}
	ports := func(among []Object) (all []string) {
		for _, o := range objectsNamed(among, "Service", name, namespace) {
			all = append(all, portTexts(portsOfServices([]map[string]any{o.Object}))...)
			for _, of := range mapsIn(valueIn(o.Object, "spec", "ports")) {
				all = append(all, fmt.Sprint(of["port"]))
			}
		}
		return all
	}
	wanted := fmt.Sprint(port)
	w.found = append(w.found, objectReference{
		path: path, id: fmt.Sprintf("port %s of Service %s", wanted, name),
		isMet: func(among []Object) bool { return len(ports(among)) == 0 || slices.Contains(ports(among), wanted) },
		missingMessage: func(among []Object) string {
			return fmt.Sprintf("Service %q has no port %s%s", name, wanted, alternativesHint(wanted, ports(among), "it has "))
		},
	})
}

// requirePort requires a port of the selected objects, if they have any. An empty protocol matches
// any.
func (w *referenceWalk) requirePort(path fieldpath.Path, port any, protocol, what string, labels map[string]string, ports func([]Object) []portID) {
	if port == nil || len(labels) == 0 {
		return
	}
	text := fmt.Sprint(port)
	wanted := func(p portID) bool { return p.text == text && (protocol == "" || p.protocol == protocol) }
	w.found = append(w.found, objectReference{
		path: path, id: fmt.Sprintf("port %s %s of %s %v", text, protocol, what, labels),
		isMet: func(among []Object) bool {
			all := ports(among)
			return len(all) == 0 || slices.ContainsFunc(all, wanted)
		},
		missingMessage: func(among []Object) string {
			all := ports(among)
			if i := slices.IndexFunc(all, func(p portID) bool { return p.text == text }); i >= 0 {
				return fmt.Sprintf("port %s of the selected %s uses %s, but this one uses %s: correct the protocol", text, what, all[i].protocol, protocol)
			}
			return fmt.Sprintf("the selected %s have no port %s%s", what, text, alternativesHint(text, portTexts(all), "they have "))
		},
	})
}

// portsOfPods are the ports of the pods with labels, by name and by number.
func (w *referenceWalk) portsOfPods(labels map[string]string) func([]Object) []portID {
	return func(among []Object) []portID { return portsOfPods(podsWithLabels(among, w.namespace, labels)) }
}

func portsOfPods(templates []map[string]any) (out []portID) {
	for _, template := range templates {
		for _, field := range []string{"containers", "initContainers"} {
			for _, container := range mapsIn(valueIn(template, "spec", field)) {
				for _, port := range mapsIn(container["ports"]) {
					out = append(out, portID{fmt.Sprint(port["containerPort"]), portProtocol(port)})
					if name := textAt(port, "name"); name != "" {
						out = append(out, portID{name, portProtocol(port)})
					}
				}
			}
		}
	}
	return out
}

// portsOfServices are the named ports of Services.
func portsOfServices(services []map[string]any) (out []portID) {
	for _, service := range services {
		for _, port := range mapsIn(valueIn(service, "spec", "ports")) {
			if name := textAt(port, "name"); name != "" {
				out = append(out, portID{name, portProtocol(port)})
			}
		}
	}
	return out
}

func portTexts(ports []portID) []string {
	out := make([]string, len(ports))
	for i, p := range ports {
		out[i] = p.text
	}
	return out
}
