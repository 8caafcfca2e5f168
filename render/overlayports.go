package render

import (
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// portOf is a port by name or number.
type portOf struct{ text, protocol string }

// protocolOf is the protocol of a port with its default.
func protocolOf(port map[string]any) string {
	if protocol := textAt(port, "protocol"); protocol != "" {
		return protocol
	}
	return "TCP"
}

// policyPorts requires the ports of the pods of a NetworkPolicy, if these have any.
func (w *referenceWalk) policyPorts(object map[string]any) {
	labels := labelsIn(valueIn(object, "spec", "podSelector", "matchLabels"))
	for i, rule := range mapsIn(valueIn(object, "spec", "ingress")) {
		for j, port := range mapsIn(rule["ports"]) {
			if port["endPort"] == nil {
				w.port(fieldpath.Path{"spec", "ingress", i, "ports", j, "port"}, port["port"], protocolOf(port), "pods", labels, w.portsOfPods(labels))
			}
		}
	}
}

// portOfService requires a port of a rendered Service: by name or number for a backend, by number
// for a webhook.
func (w *referenceWalk) portOfService(path fieldpath.Path, object map[string]any, namespace string) {
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
		for _, o := range withName(among, "Service", name, namespace) {
			all = append(all, textsOf(portsOfServices([]map[string]any{o.Object}))...)
			for _, of := range mapsIn(valueIn(o.Object, "spec", "ports")) {
				all = append(all, fmt.Sprint(of["port"]))
			}
		}
		return all
	}
	wanted := fmt.Sprint(port)
	w.found = append(w.found, objectReference{
		path: path, wanted: fmt.Sprintf("port %s of Service %s", wanted, name),
		met: func(among []Object) bool { return len(ports(among)) == 0 || slices.Contains(ports(among), wanted) },
		missing: func(among []Object) string {
			return fmt.Sprintf("Service %q has no port %s%s", name, wanted, instead(wanted, ports(among), "it has "))
		},
	})
}

// port requires a port of the selected objects, if they have any. An empty protocol matches any.
func (w *referenceWalk) port(path fieldpath.Path, port any, protocol, what string, labels map[string]string, ports func([]Object) []portOf) {
	if port == nil || len(labels) == 0 {
		return
	}
	text := fmt.Sprint(port)
	wanted := func(p portOf) bool { return p.text == text && (protocol == "" || p.protocol == protocol) }
	w.found = append(w.found, objectReference{
		path: path, wanted: fmt.Sprintf("port %s %s of %s %v", text, protocol, what, labels),
		met: func(among []Object) bool {
			all := ports(among)
			return len(all) == 0 || slices.ContainsFunc(all, wanted)
		},
		missing: func(among []Object) string {
			all := ports(among)
			if i := slices.IndexFunc(all, func(p portOf) bool { return p.text == text }); i >= 0 {
				return fmt.Sprintf("port %s of the %s that are selected is for %s, and this is for %s: correct the protocol", text, what, all[i].protocol, protocol)
			}
			return fmt.Sprintf("the %s that are selected have no port %s%s", what, text, instead(text, textsOf(all), "they have "))
		},
	})
}

// portsOfPods are the ports of the pods with labels, by name and by number.
func (w *referenceWalk) portsOfPods(labels map[string]string) func([]Object) []portOf {
	return func(among []Object) []portOf { return portsOfPods(podsWith(among, w.namespace, labels)) }
}

func portsOfPods(templates []map[string]any) (out []portOf) {
	for _, template := range templates {
		for _, field := range []string{"containers", "initContainers"} {
			for _, container := range mapsIn(valueIn(template, "spec", field)) {
				for _, port := range mapsIn(container["ports"]) {
					out = append(out, portOf{fmt.Sprint(port["containerPort"]), protocolOf(port)})
					if name := textAt(port, "name"); name != "" {
						out = append(out, portOf{name, protocolOf(port)})
					}
				}
			}
		}
	}
	return out
}

// portsOfServices are the named ports of Services.
func portsOfServices(services []map[string]any) (out []portOf) {
	for _, service := range services {
		for _, port := range mapsIn(valueIn(service, "spec", "ports")) {
			if name := textAt(port, "name"); name != "" {
				out = append(out, portOf{name, protocolOf(port)})
			}
		}
	}
	return out
}

func textsOf(ports []portOf) []string {
	out := make([]string, len(ports))
	for i, p := range ports {
		out[i] = p.text
	}
	return out
}
