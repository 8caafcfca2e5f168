package render

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// This file has references that direct traffic: labels of clients, annotations of Services, and
// objects of Istio.

// Labels and annotations of the network policies of a landscape
// (controllers/resourcemanager/networkpolicy).
const (
	clientLabel    = gardencorev1beta1.LabelNetworkPolicyToPrefix
	fromWorldPorts = "networking.resources.gardener.cloud/from-world-to-ports"
	allowedClient  = gardencorev1beta1.LabelNetworkPolicyAllowed
)

// clients requires the Services in labels of pods, if a Service has a similar name: other names may
// be those of other clusters.
func (w *referenceWalk) clients(path fieldpath.Path, template map[string]any) {
	// findings are sorted by position
	for label, value := range labelsIn(valueIn(template, "metadata", "labels")) {
		id, is := strings.CutPrefix(label, clientLabel)
		if !is || value != allowedClient {
			continue
		}
		w.found = append(w.found, objectReference{
			path: path.Append("metadata", "labels", fieldpath.Key(label)), wanted: "Service that is reached by " + id, near: true,
			met: func(among []Object) bool {
				known := reachedBy(among, w.namespace)
				return slices.Contains(known, id) || nearest(id, known) == ""
			},
			missing: func(among []Object) string {
				return fmt.Sprintf("no Service and port is reached by the label; did you mean %q?", clientLabel+nearest(id, reachedBy(among, w.namespace)))
			},
		})
	}
}

// nearest is the ID of the likely Service: a similar name, or another port of the same Service.
func nearest(id string, known []string) string {
	if hint := hintOf(id, known); strings.Contains(hint, "did you mean") {
		_, after, _ := strings.Cut(hint, `"`)
		name, _, _ := strings.Cut(after, `"`)
		return name
	}
	for _, other := range known {
		if i := strings.LastIndex(other, "-tcp-"); i > 0 && strings.HasPrefix(id, other[:i]+"-tcp-") {
			return other
		}
	}
	return ""
}

// reachedBy are the IDs of ports of Services in labels of clients: <service>-<protocol>-<target
// port>. In other namespaces the namespace of the Service comes first.
func reachedBy(among []Object, namespace string) (ids []string) {
	for _, o := range among {
		if o.GetKind() != "Service" {
			continue
		}
		for _, port := range mapsIn(valueIn(o.Object, "spec", "ports")) {
			target := port["targetPort"]
			if target == nil {
				target = port["port"]
			}
			id := fmt.Sprintf("%s-%s-%v", o.GetName(), strings.ToLower(protocolOf(port)), target)
			if !sameNamespace(o.GetNamespace(), namespace) {
				id = o.GetNamespace() + "-" + id
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// worldPorts requires the ports of pods that a Service opens to everybody.
func (w *referenceWalk) worldPorts(o Object) {
	text := o.GetAnnotations()[fromWorldPorts]
	var ports []map[string]any
	if text == "" || json.Unmarshal([]byte(text), &ports) != nil {
		return // another check reports it
	}
	labels := labelsIn(valueIn(o.Object, "spec", "selector"))
	for _, port := range ports {
		number := port["port"]
		if f, is := number.(float64); is {
			number = int64(f)
		}
		w.port(fieldpath.Path{"metadata", "annotations", fieldpath.Key(fromWorldPorts)}, number, protocolOf(port), "pods", labels, w.portsOfPods(labels))
	}
}

// alertmanagers requires the Services that receive alerts of a Prometheus.
func (w *referenceWalk) alertmanagers(object map[string]any) {
	path := fieldpath.Path{"spec", "alerting", "alertmanagers"}
	for i, of := range mapsIn(valueIn(object, textPath(path)...)) {
		namespace := w.namespace
		if given := textAt(of, "namespace"); given != "" {
			namespace = given
		}
		w.name(path.Append(i, "name"), "Service", textAt(of, "name"), namespace)
		w.portOfService(path.Append(i), of, namespace)
	}
}

// scrapes requires objects that a Prometheus selects by labels.
func (w *referenceWalk) scrapes(object map[string]any) {
	for _, kind := range sortedKeys(selectors) {
		field := selectors[kind]
		wanted := labelsIn(valueIn(object, "spec", field, "matchLabels"))
		if len(wanted) == 0 {
			continue
		}
		w.found = append(w.found, objectReference{
			path: fieldpath.Path{"spec", field, "matchLabels"}, wanted: fmt.Sprintf("%s with %v", kind, wanted),
			met: func(among []Object) bool {
				return slices.ContainsFunc(among, func(o Object) bool { return o.GetKind() == kind && hasLabels(o.GetLabels(), wanted) })
			},
			missing: func([]Object) string {
				return fmt.Sprintf("selects nothing: no %s that is rendered for the cluster has the labels", kind)
			},
		})
	}
}

// jobForm matches the selection of a job in an expression.
var jobForm = regexp.MustCompile(`\bjob="([^"]+)"`)

// jobs requires the target of an alert, if something has a similar name: an alert on a missing job
// fires never, or always.
func (w *referenceWalk) jobs(object map[string]any) {
	known := func(among []Object) (names []string) {
		for _, o := range among {
			switch o.GetKind() {
			case "DaemonSet", "Deployment", "PodMonitor", "Probe", "ScrapeConfig", "Service", "ServiceMonitor", "StatefulSet":
				names = append(append(names, o.GetName()), replacements(o.Object)...)
			}
		}
		return names
	}
	for i, group := range mapsIn(valueIn(object, "spec", "groups")) {
		for j, rule := range mapsIn(group["rules"]) {
			for _, parts := range jobForm.FindAllStringSubmatch(textAt(rule, "expr"), -1) {
				name := parts[1]
				w.found = append(w.found, objectReference{
					path: fieldpath.Path{"spec", "groups", i, "rules", j, "expr"}, wanted: "job " + name, near: true,
					met: func(among []Object) bool {
						return slices.Contains(known(among), name) || suggest.Within(name, known(among), 2) == ""
					},
					missing: func(among []Object) string {
						return fmt.Sprintf("no target has the job %q; did you mean %q?", name, suggest.Within(name, known(among), 2))
					},
				})
			}
		}
	}
}

// replacements are the values that relabellings write, including job names.
func replacements(value any) (out []string) {
	switch v := value.(type) {
	case map[string]any:
		if text, is := v["replacement"].(string); is {
			out = append(out, text)
		}
		for _, inner := range v {
			out = append(out, replacements(inner)...)
		}
	case []any:
		for _, inner := range v {
			out = append(out, replacements(inner)...)
		}
	}
	return out
}

// istio requires the gateways, hosts and pods that objects of Istio name.
func (w *referenceWalk) istio(o Object) {
	switch o.GetKind() {
	case "VirtualService":
		gateways, _ := valueIn(o.Object, "spec", "gateways").([]any)
		for i, item := range gateways {
			if name, _ := item.(string); name != "mesh" {
				namespace, plain := w.namespace, name
				if before, after, both := strings.Cut(name, "/"); both {
					namespace, plain = before, after
				}
				w.name(fieldpath.Path{"spec", "gateways", i}, "Gateway", plain, namespace)
			}
		}
		for _, protocol := range []string{"http", "tcp", "tls"} {
			for i, rule := range mapsIn(valueIn(o.Object, "spec", protocol)) {
				for j, route := range mapsIn(rule["route"]) {
					w.host(fieldpath.Path{"spec", protocol, i, "route", j, "destination", "host"}, textAt(route, "destination", "host"))
				}
			}
		}
	case "DestinationRule":
		w.host(fieldpath.Path{"spec", "host"}, textAt(o.Object, "spec", "host"))
	case "Gateway":
		if labels := labelsIn(valueIn(o.Object, "spec", "selector")); strings.HasPrefix(o.GetAPIVersion(), "networking.istio.io/") {
			anywhere := referenceWalk{}
			anywhere.labels(fieldpath.Path{"spec", "selector"}, labels, podsWith, "pods")
			w.found = append(w.found, anywhere.found...)
		}
	case "AuthorizationPolicy":
		w.labels(fieldpath.Path{"spec", "selector", "matchLabels"}, labelsIn(valueIn(o.Object, "spec", "selector", "matchLabels")), podsWith, "pods")
	}
}

// host requires the Service of a host in the cluster.
func (w *referenceWalk) host(path fieldpath.Path, host string) {
	name, rest, _ := strings.Cut(host, ".")
	namespace, domain, _ := strings.Cut(rest, ".")
	if rest == "" {
		namespace, domain = w.namespace, "svc"
	}
	if strings.HasPrefix(domain, "svc") && !strings.Contains(name, "*") {
		w.name(path, "Service", name, namespace)
	}
}
