package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/render/strict"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// objectReference is a reference of an object to others: names, keys, labels, ports. API servers
// accept it even if the others do not exist. Then pods do not start, and selectors have no effect.
type objectReference struct {
	path fieldpath.Path
	// kind and name are set if the reference is to a single object.
	kind, name string
	// wanted identifies the reference.
	wanted string
	// met reports whether objects satisfy the reference.
	met func([]Object) bool
	// missing describes the missing object.
	missing func([]Object) string
	// alone means that any other object can break the reference, near that any other one can show a
	// typo. Both check all objects of the owner in the cluster, even if the component satisfies the
	// reference.
	alone, near bool
	// rule makes it an error; else it is a warning.
	rule string
}

// openReference is a reference that nothing in the component satisfies, or that others can break.
// Objects of other components decide.
type openReference struct {
	objectReference
	// cluster is the cluster of the wanted object.
	cluster string
	// at finds the faulty part of the overlay, if any.
	at func(message string) (finding, bool)
}

// references leaves new references of the overlay open if nothing in the component satisfies them.
// References of the component itself are satisfied elsewhere.
func (c *overlayCheck) references(k kustomization, objects []Object, bundles []Bundle) {
	known := map[string]bool{}
	for _, o := range c.objects[:c.own] {
		for _, r := range referencesOf(o) {
			known[r.wanted] = known[r.wanted] || r.alone || r.near || !r.met(c.objects[:c.own])
		}
	}
	broken := func(o Object, among []Object) []objectReference {
		return slices.DeleteFunc(referencesOf(o), func(r objectReference) bool { return known[r.wanted] || !r.alone && !r.near && r.met(among) })
	}
	clusters := map[string]string{}
	for _, b := range bundles {
		// without a name there is only one bundle
		clusters[b.Name], clusters[""] = b.Cluster, b.Cluster
	}
	for _, o := range objects {
		found := broken(o, objects)
		if len(found) == 0 {
			continue
		}
		o := Object{o.DeepCopy(), o.Origin} // its marks are removed later
		for _, r := range found {
			c.open(openReference{r, clusters[o.GetAnnotations()[bundleAnnotation]], func(message string) (finding, bool) {
				wrong := structure.Finding{Path: r.path, Type: "NotFound", Message: message}
				if r.alone {
					wrong.Type = string(schemas.TypeDuplicate)
				}
				at, _, ok := c.culprit(k, o, wrong, func(o Object, among []Object) bool {
					return slices.ContainsFunc(broken(o, among), func(b objectReference) bool { return b.wanted == r.wanted })
				})
				f := objectFinding(at, o.Unstructured, wrong)
				f.rule, f.warning = cmp.Or(r.rule, ruleOverlayReference), r.rule == ""
				return f, ok
			}})
		}
	}
}

// referencesOf lists the references of an object.
func referencesOf(o Object) []objectReference {
	w := referenceWalk{namespace: o.GetNamespace()}
	w.onlyOne(o)
	if !slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, w.namespace) {
		w.name(fieldpath.Path{"metadata", "namespace"}, "Namespace", w.namespace, "")
	}
	switch o.GetKind() {
	case "ConfigMap", "Secret", "CustomResourceDefinition":
		return w.found // their content is not ours
	case "Service":
		w.service(o.Object)
		w.worldPorts(o)
	case "RoleBinding", "ClusterRoleBinding":
		w.rights(o.Object)
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		w.closed(o.Object)
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		w.bound(o)
	case "ResourceQuota":
		w.limited(o.Object)
	case "PrometheusRule":
		w.jobs(o.Object)
	case "Prometheus":
		w.alertmanagers(o.Object)
		w.scrapes(o.Object)
	case "PodDisruptionBudget":
		w.pods(fieldpath.Path{"spec", "selector", "matchLabels"}, o.Object)
		w.onlyBudget(o)
		w.evictable(o)
	case "NetworkPolicy":
		w.pods(fieldpath.Path{"spec", "podSelector", "matchLabels"}, o.Object)
		w.policyPorts(o.Object)
	case "HorizontalPodAutoscaler":
		w.scaler(o.Object)
		w.onlyAutoscaler(o, "scaleTargetRef")
		w.unscaled(o)
	case "ServiceMonitor":
		w.monitor(o.Object, "endpoints", servicesWith, "Services")
	case "PodMonitor":
		w.monitor(o.Object, "podMetricsEndpoints", podsWith, "pods")
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		w.name(fieldpath.Path{"spec", "policyName"}, strings.TrimSuffix(o.GetKind(), "Binding"), textAt(o.Object, "spec", "policyName"), "")
	case "VerticalPodAutoscaler":
		w.policies(o.Object)
		w.fewReplicas(o.Object)
		w.onlyAutoscaler(o, "targetRef")
		w.unscaled(o)
	case "StatefulSet":
		w.name(fieldpath.Path{"spec", "serviceName"}, "Service", textAt(o.Object, "spec", "serviceName"), w.namespace)
	case "ManagedResource":
		w.names(fieldpath.Path{"spec", "secretRefs"}, "Secret", valueIn(o.Object, "spec", "secretRefs"))
		w.class(textAt(o.Object, "spec", "class"))
	}
	for _, hint := range strict.Hints(o.Unstructured) {
		w.says(hint.Path, "%s", hint.Message)
	}
	w.scraped(o)
	w.istio(o)
	w.onlyOwner(o)
	for _, template := range podTemplates(o.Unstructured) {
		path := fieldpath.Path{"spec", "template"}
		if o.GetKind() == "CronJob" {
			path = fieldpath.Path{"spec", "jobTemplate", "spec", "template"}
		}
		spec, _ := template["spec"].(map[string]any)
		w.flags(path.Append("spec"), spec)
		w.subPaths(path.Append("spec"), spec)
		w.clients(path, template)
	}
	w.walk(o.Object, nil)
	return w.found
}

// class requires that a resource manager of a landscape has the class of a ManagedResource.
func (w *referenceWalk) class(class string) {
	if class == "" {
		return
	}
	classes := []string{resourcesv1alpha1.ClassDefault, resourcesv1alpha1.ClassSeed}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"spec", "class"}, wanted: "class " + class,
		met: func([]Object) bool { return slices.Contains(classes, class) },
		missing: func([]Object) string {
			hint := ""
			if guess := suggest.Word(class, classes); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			}
			return fmt.Sprintf("no resource manager of a landscape has the class %q, so that nothing of it is applied: the class is seed for the cluster that the ManagedResource is in, and unset or resources for the virtual garden or the Shoot%s", class, hint)
		},
	})
}

// selectors are the fields by which a Prometheus selects scrape and rule objects, by kind.
var selectors = map[string]string{
	"ServiceMonitor": "serviceMonitorSelector", "PodMonitor": "podMonitorSelector", "Probe": "probeSelector", "ScrapeConfig": "scrapeConfigSelector", "PrometheusRule": "ruleSelector",
}

// scraped requires a Prometheus that selects an object, if one in the cluster selects by labels.
func (w *referenceWalk) scraped(o Object) {
	field := selectors[o.GetKind()]
	if field == "" || !strings.HasPrefix(o.GetAPIVersion(), "monitoring.coreos.com/") {
		return
	}
	label := o.GetLabels()["prometheus"]
	wanted := func(p Object) map[string]string { return labelsIn(valueIn(p.Object, "spec", field, "matchLabels")) }
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"metadata", "labels", fieldpath.Key("prometheus")}, near: true, wanted: "Prometheus that selects " + o.GetKind() + " " + label,
		met: func(among []Object) bool {
			all := 0
			for _, p := range among {
				if p.GetKind() != "Prometheus" || len(wanted(p)) == 0 {
					continue
				}
				// a Prometheus of this name reports faults of its selector
				if all++; label != "" && p.GetName() == label || hasLabels(o.GetLabels(), wanted(p)) {
					return true
				}
			}
			return all == 0 && label == ""
		},
		missing: func(among []Object) string {
			var names []string
			for _, p := range among {
				if name := wanted(p)["prometheus"]; p.GetKind() == "Prometheus" && name != "" {
					names = append(names, name)
				}
			}
			if label == "" {
				return fmt.Sprintf("no Prometheus that is rendered for the cluster selects a %s without the label prometheus%s", o.GetKind(), instead("", names, "they select "))
			}
			return fmt.Sprintf("no Prometheus that is rendered for the cluster selects a %s with the label prometheus=%s%s", o.GetKind(), label, instead(label, names, "they select "))
		},
	})
}

// referenceWalk finds references by the field names of Kubernetes and its operators.
type referenceWalk struct {
	namespace string
	found     []objectReference
}

func (w *referenceWalk) walk(value any, path fieldpath.Path) {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			w.field(path.Append(field), field, v[field])
		}
	case []any:
		for i, item := range v {
			w.walk(item, path.Append(i))
		}
	}
}

func (w *referenceWalk) field(path fieldpath.Path, field string, value any) {
	text, _ := value.(string)
	object, _ := value.(map[string]any)
	switch field {
	case "serviceAccountName":
		if text != "default" {
			w.name(path, "ServiceAccount", text, w.namespace)
		}
	case "priorityClassName":
		if !strings.HasPrefix(text, "system-") { // the others are from Kubernetes
			w.name(path, "PriorityClass", text, "")
		}
	case "secret", "secretRef", "secretKeyRef":
		w.content(path, "Secret", object)
	case "configMap", "configMapRef", "configMapKeyRef":
		w.content(path, "ConfigMap", object)
	case "imagePullSecrets":
		w.names(path, "Secret", value)
	case "persistentVolumeClaim":
		w.name(path.Append("claimName"), "PersistentVolumeClaim", textAt(object, "claimName"), w.namespace)
	case "scaleTargetRef", "targetRef":
		w.name(path.Append("name"), textAt(object, "kind"), textAt(object, "name"), w.namespace)
	case "roleRef":
		if name := textAt(object, "name"); !strings.HasPrefix(name, "system:") && !slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name) {
			w.name(path.Append("name"), textAt(object, "kind"), name, w.namespace)
		}
	case "matchLabels":
		w.name(path.Append(fieldpath.Key("kubernetes.io/metadata.name")), "Namespace", textAt(object, "kubernetes.io/metadata.name"), "")
	case "subjects":
		for i, subject := range mapsIn(value) {
			if account, is := strings.CutPrefix(textAt(subject, "name"), "system:serviceaccount:"); is && textAt(subject, "kind") == "User" {
				namespace, name, _ := strings.Cut(account, ":")
				w.name(path.Append(i).Append("name"), "ServiceAccount", name, namespace)
			}
			if name := textAt(subject, "name"); textAt(subject, "kind") == "ServiceAccount" && name != "default" {
				w.name(path.Append(i).Append("name"), "ServiceAccount", name, textAt(subject, "namespace"))
			}
		}
	case "service":
		namespace := w.namespace
		if given := textAt(object, "namespace"); given != "" {
			namespace = given
		}
		w.name(path.Append("name"), "Service", textAt(object, "name"), namespace)
		w.portOfService(path, object, namespace)
	case "tls":
		for i, of := range mapsIn(value) {
			w.name(path.Append(i).Append("secretName"), "Secret", textAt(of, "secretName"), w.namespace)
		}
	case "podAffinity", "podAntiAffinity":
		for i, term := range mapsIn(object["requiredDuringSchedulingIgnoredDuringExecution"]) {
			labels := labelsIn(valueIn(term, "labelSelector", "matchLabels"))
			if term["namespaces"] == nil && term["namespaceSelector"] == nil {
				w.labels(path.Append("requiredDuringSchedulingIgnoredDuringExecution").Append(i).Append("labelSelector"), labels, podsWith, "pods")
			}
		}
	}
	w.walk(value, path)
}

// name requires an object of a kind and name. An empty namespace means any: objects get theirs
// after the overlay, or have none.
func (w *referenceWalk) name(path fieldpath.Path, kind, name, namespace string) {
	// Kubernetes creates it in each namespace
	if kind == "" || name == "" || kind == "ConfigMap" && name == "kube-root-ca.crt" {
		return
	}
	w.found = append(w.found, objectReference{
		path: path, kind: kind, name: name, wanted: kind + " " + name,
		met: func(among []Object) bool { return len(withName(among, kind, name, namespace)) > 0 },
		missing: func(among []Object) string {
			var names []string
			for _, o := range among {
				if o.GetKind() == kind {
					names = append(names, o.GetName())
				}
			}
			return fmt.Sprintf("there is no %s %q in what is rendered for the cluster, nor in Git%s", kind, name, instead(name, names, "there is "))
		},
	})
}

func (w *referenceWalk) names(path fieldpath.Path, kind string, list any) {
	for i, item := range mapsIn(list) {
		w.name(path.Append(i).Append("name"), kind, textAt(item, "name"), w.namespace)
	}
}

// content requires a Secret or ConfigMap, and the named keys.
func (w *referenceWalk) content(path fieldpath.Path, kind string, object map[string]any) {
	field := "name"
	if object["secretName"] != nil {
		field = "secretName"
	}
	name, namespace := textAt(object, field), w.namespace
	if given := textAt(object, "namespace"); given != "" {
		namespace = given
	}
	if name == "" || object["optional"] == true {
		return
	}
	w.name(path.Append(field), kind, name, namespace)
	w.key(path.Append("key"), kind, name, textAt(object, "key"), namespace)
	for i, item := range mapsIn(object["items"]) {
		w.key(path.Append("items").Append(i).Append("key"), kind, name, textAt(item, "key"), namespace)
	}
}

// subPaths requires the keys of ConfigMaps and Secrets that containers mount singly.
func (w *referenceWalk) subPaths(path fieldpath.Path, spec map[string]any) {
	for _, list := range []string{"containers", "initContainers"} {
		for i, container := range mapsIn(spec[list]) {
			for j, mount := range mapsIn(container["volumeMounts"]) {
				for _, volume := range mapsIn(spec["volumes"]) {
					configMap, _ := volume["configMap"].(map[string]any)
					secret, _ := volume["secret"].(map[string]any)
					if textAt(volume, "name") != textAt(mount, "name") || configMap["items"] != nil || secret["items"] != nil {
						continue
					}
					at := path.Append(list, i, "volumeMounts", j, "subPath")
					if name := textAt(configMap, "name"); name != "" {
						w.key(at, "ConfigMap", name, textAt(mount, "subPath"), w.namespace)
					}
					if name := textAt(secret, "secretName"); name != "" {
						w.key(at, "Secret", name, textAt(mount, "subPath"), w.namespace)
					}
				}
			}
		}
	}
}

// key requires a key of a Secret or ConfigMap. It skips objects that do not exist or get their data
// in the cluster.
func (w *referenceWalk) key(path fieldpath.Path, kind, name, key, namespace string) {
	if key == "" {
		return
	}
	keys := func(among []Object) (all []string) {
		for _, o := range withName(among, kind, name, namespace) {
			for _, field := range []string{"data", "stringData", "binaryData"} {
				data, _ := o.Object[field].(map[string]any)
				all = append(all, slices.Collect(maps.Keys(data))...)
			}
		}
		return all
	}
	w.found = append(w.found, objectReference{
		path: path, wanted: fmt.Sprintf("%s of %s %s", key, kind, name),
		met: func(among []Object) bool {
			all := keys(among)
			return len(all) == 0 || slices.Contains(all, key)
		},
		missing: func(among []Object) string {
			return fmt.Sprintf("%s %q has no key %q%s", kind, name, key, instead(key, keys(among), "it has "))
		},
	})
}

// service requires pods with the labels of a Service, and their ports.
func (w *referenceWalk) service(object map[string]any) {
	labels := labelsIn(valueIn(object, "spec", "selector"))
	if len(labels) == 0 {
		return
	}
	w.pods(fieldpath.Path{"spec", "selector"}, object)
	for i, port := range mapsIn(valueIn(object, "spec", "ports")) {
		field := "targetPort"
		if port[field] == nil {
			field = "port"
		}
		w.port(fieldpath.Path{"spec", "ports", i, field}, port[field], protocolOf(port), "pods", labels, w.portsOfPods(labels))
	}
}

// pods requires pods with the labels at a path.
func (w *referenceWalk) pods(path fieldpath.Path, object map[string]any) {
	w.labels(path, labelsIn(valueIn(object, textPath(path)...)), podsWith, "pods")
}

// monitor requires the objects that a ServiceMonitor or PodMonitor selects, and their ports.
func (w *referenceWalk) monitor(object map[string]any, endpoints string, find func([]Object, string, map[string]string) []map[string]any, what string) {
	namespace := w.namespace
	if selector := valueIn(object, "spec", "namespaceSelector"); selector != nil {
		names, _ := valueIn(object, "spec", "namespaceSelector", "matchNames").([]any)
		if len(names) != 1 {
			return // it also selects objects of other components
		}
		namespace, _ = names[0].(string)
	}
	in := referenceWalk{namespace: namespace}
	defer func() { w.found = append(w.found, in.found...) }()
	path := fieldpath.Path{"spec", "selector", "matchLabels"}
	labels := labelsIn(valueIn(object, textPath(path)...))
	in.labels(path, labels, find, what)
	ports := portsOfPods
	if what == "Services" {
		ports = portsOfServices
	}
	for i, endpoint := range mapsIn(valueIn(object, "spec", endpoints)) {
		in.port(fieldpath.Path{"spec", endpoints, i, "port"}, endpoint["port"], "", what, labels, func(among []Object) []portOf { return ports(find(among, namespace, labels)) })
	}
}

func (w *referenceWalk) labels(path fieldpath.Path, labels map[string]string, find func([]Object, string, map[string]string) []map[string]any, what string) {
	if len(labels) == 0 {
		return
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	text := strings.Join(pairs, ",")
	w.found = append(w.found, objectReference{
		path: path, wanted: what + " " + text,
		met: func(among []Object) bool { return len(find(among, w.namespace, labels)) > 0 },
		missing: func([]Object) string {
			return fmt.Sprintf("selects nothing: no %s that are rendered for the cluster have the labels %s", what, text)
		},
	})
}

// instead lists the existing names, or the most likely one.
func instead(name string, names []string, there string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if guess := suggest.Word(name, names); guess != "" {
		return fmt.Sprintf("; did you mean %q?", guess)
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + there + strings.Join(shortened(names), ", ")
}
