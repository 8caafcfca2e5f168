// SPDX-License-Identifier: Apache-2.0

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
	clientLabelPrefix    = gardencorev1beta1.LabelNetworkPolicyToPrefix
	worldPortsAnnotation = "networking.resources.gardener.cloud/from-world-to-ports"
	allowedClientLabel   = gardencorev1beta1.LabelNetworkPolicyAllowed
)

// requireClientServices requires the Services in labels of pods, if a Service has a similar name:
// other names may be those of other clusters.
func (w *referenceWalk) requireClientServices(path fieldpath.Path, template map[string]any) {
	// findings are sorted by position
	for label, value := range labelsIn(valueIn(template, "metadata", "labels")) {
		id, is := strings.CutPrefix(label, clientLabelPrefix)
		if !is || value != allowedClientLabel {
			continue
		}
		w.found = append(w.found, objectReference{
			path: path.Append("metadata", "labels", fieldpath.Key(label)), id: "Service that is reached by " + id, hasTypoHint: true,
			isMet: func(among []Object) bool {
				known := servicePortIDs(among, w.namespace)
				return slices.Contains(known, id) || likelyServiceID(id, known) == ""
			},
			missingMessage: func(among []Object) string {
				return fmt.Sprintf("no Service and port is reached by the label; did you mean %q?", clientLabelPrefix+likelyServiceID(id, servicePortIDs(among, w.namespace)))
			},
		})
	}
}

// likelyServiceID is the ID of the likely Service: a similar name, or another port of the same
// Service.
func likelyServiceID(id string, known []string) string {
	if hint := suggestName(id, known); strings.Contains(hint, "did you mean") {
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

// servicePortIDs are the IDs of ports of Services in labels of clients:
// <service>-<protocol>-<target port>. In other namespaces the namespace of the Service comes first.
func servicePortIDs(among []Object, namespace string) (ids []string) {
	for _, o := range among {
		if o.GetKind() != "Service" {
			continue
		}
		for _, port := range mapsIn(valueIn(o.Object, "spec", "ports")) {
			target := port["targetPort"]
			if target == nil {
				target = port["port"]
			}
			id := fmt.Sprintf("%s-%s-%v", o.GetName(), strings.ToLower(portProtocol(port)), target)
			if !isSameNamespace(o.GetNamespace(), namespace) {
				id = o.GetNamespace() + "-" + id
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// requireWorldPorts requires the ports of pods that a Service opens to everyone.
func (w *referenceWalk) requireWorldPorts(o Object) {
	text := o.GetAnnotations()[worldPortsAnnotation]
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
		w.requirePort(fieldpath.Path{"metadata", "annotations", fieldpath.Key(worldPortsAnnotation)}, number, portProtocol(port), "pods", labels, w.portsOfPods(labels))
	}
}

// requireAlertmanagers requires the Services that receive alerts of a Prometheus.
func (w *referenceWalk) requireAlertmanagers(object map[string]any) {
	path := fieldpath.Path{"spec", "alerting", "alertmanagers"}
	for i, of := range mapsIn(valueIn(object, textPath(path)...)) {
		namespace := w.namespace
		if given := textAt(of, "namespace"); given != "" {
			namespace = given
		}
		w.requireObject(path.Append(i, "name"), "Service", textAt(of, "name"), namespace)
		w.requireServicePort(path.Append(i), of, namespace)
	}
}

// requireScrapeObjects requires objects that a Prometheus selects by labels.
func (w *referenceWalk) requireScrapeObjects(object map[string]any) {
	for _, kind := range sortedKeys(prometheusSelectors) {
		field := prometheusSelectors[kind]
		wanted := labelsIn(valueIn(object, "spec", field, "matchLabels"))
		if len(wanted) == 0 {
			continue
		}
		w.found = append(w.found, objectReference{
			path: fieldpath.Path{"spec", field, "matchLabels"}, id: fmt.Sprintf("%s with %v", kind, wanted),
			isMet: func(among []Object) bool {
				return slices.ContainsFunc(among, func(o Object) bool { return o.GetKind() == kind && hasLabels(o.GetLabels(), wanted) })
			},
			missingMessage: func([]Object) string {
				return fmt.Sprintf("selects nothing: no %s rendered for the cluster has the labels", kind)
			},
		})
	}
}

// jobSelectorPattern matches the selection of a job in an expression.
var jobSelectorPattern = regexp.MustCompile(`\bjob="([^"]+)"`)

// requireJobs requires the target of an alert, if something has a similar name: an alert on a
// missing job fires never, or always.
func (w *referenceWalk) requireJobs(object map[string]any) {
	known := func(among []Object) (names []string) {
		for _, o := range among {
			switch o.GetKind() {
			case "DaemonSet", "Deployment", "PodMonitor", "Probe", "ScrapeConfig", "Service", "ServiceMonitor", "StatefulSet":
				names = append(append(names, o.GetName()), relabelReplacements(o.Object)...)
			}
		}
		return names
	}
	for i, group := range mapsIn(valueIn(object, "spec", "groups")) {
		for j, rule := range mapsIn(group["rules"]) {
			for _, parts := range jobSelectorPattern.FindAllStringSubmatch(textAt(rule, "expr"), -1) {
				name := parts[1]
				w.found = append(w.found, objectReference{
					path: fieldpath.Path{"spec", "groups", i, "rules", j, "expr"}, id: "job " + name, hasTypoHint: true,
					isMet: func(among []Object) bool {
						return slices.Contains(known(among), name) || suggest.ClosestWithin(name, known(among), 2) == ""
					},
					missingMessage: func(among []Object) string {
						return fmt.Sprintf("no target has the job %q; did you mean %q?", name, suggest.ClosestWithin(name, known(among), 2))
					},
				})
			}
		}
	}
}

// relabelReplacements are the values that relabellings write, including job names.
func relabelReplacements(value any) (out []string) {
	switch v := value.(type) {
	case map[string]any:
		if text, is := v["replacement"].(string); is {
			out = append(out, text)
		}
		for _, inner := range v {
			out = append(out, relabelReplacements(inner)...)
		}
	case []any:
		for _, inner := range v {
			out = append(out, relabelReplacements(inner)...)
		}
	}
	return out
}

// requireIstioObjects requires the gateways, hosts and pods that objects of Istio name.
func (w *referenceWalk) requireIstioObjects(o Object) {
	switch o.GetKind() {
	case "VirtualService":
		gateways, _ := valueIn(o.Object, "spec", "gateways").([]any)
		for i, item := range gateways {
			if name, _ := item.(string); name != "mesh" {
				namespace, plain := w.namespace, name
				if before, after, both := strings.Cut(name, "/"); both {
					namespace, plain = before, after
				}
				w.requireObject(fieldpath.Path{"spec", "gateways", i}, "Gateway", plain, namespace)
			}
		}
		for _, protocol := range []string{"http", "tcp", "tls"} {
			for i, rule := range mapsIn(valueIn(o.Object, "spec", protocol)) {
				for j, route := range mapsIn(rule["route"]) {
					w.requireHostService(fieldpath.Path{"spec", protocol, i, "route", j, "destination", "host"}, textAt(route, "destination", "host"))
				}
			}
		}
	case "DestinationRule":
		w.requireHostService(fieldpath.Path{"spec", "host"}, textAt(o.Object, "spec", "host"))
	case "Gateway":
		if labels := labelsIn(valueIn(o.Object, "spec", "selector")); strings.HasPrefix(o.GetAPIVersion(), "networking.istio.io/") {
			anywhere := referenceWalk{}
			anywhere.requireLabels(fieldpath.Path{"spec", "selector"}, labels, podsWithLabels, "pods")
			w.found = append(w.found, anywhere.found...)
		}
	case "AuthorizationPolicy":
		w.requireLabels(fieldpath.Path{"spec", "selector", "matchLabels"}, labelsIn(valueIn(o.Object, "spec", "selector", "matchLabels")), podsWithLabels, "pods")
	}
}

// requireHostService requires the Service of a host in the cluster.
func (w *referenceWalk) requireHostService(path fieldpath.Path, host string) {
	name, rest, _ := strings.Cut(host, ".")
	namespace, domain, _ := strings.Cut(rest, ".")
	if rest == "" {
		namespace, domain = w.namespace, "svc"
	}
	if strings.HasPrefix(domain, "svc") && !strings.Contains(name, "*") {
		w.requireObject(path, "Service", name, namespace)
	}
}
