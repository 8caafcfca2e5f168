// SPDX-License-Identifier: Apache-2.0

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
	// id identifies the reference.
	id string
	// isMet reports whether objects satisfy the reference.
	isMet func([]Object) bool
	// missingMessage describes the missing object.
	missingMessage func([]Object) string
	// isExclusive means that any other object can break the reference; hasTypoHint means that any
	// other one can show a typo. Both check all objects of the owner in the cluster, even if the
	// component satisfies the reference.
	isExclusive, hasTypoHint bool
	// rule makes it an error; else it is a warning.
	rule string
}

// openReference is a reference that nothing in the component satisfies, or that others can break.
// Objects of other components decide.
type openReference struct {
	objectReference
	// cluster is the cluster of the wanted object.
	cluster string
	// findingFor finds the faulty part of the overlay, if any.
	findingFor func(message string) (finding, bool)
}

// checkReferences leaves new references of the overlay open if nothing in the component satisfies
// them. References of the component itself are satisfied elsewhere.
func (c *overlayCheck) checkReferences(k kustomization, objects []Object, bundles []Bundle) {
	known := map[string]bool{}
	for _, o := range c.objects[:c.ownCount] {
		for _, r := range referencesOf(o) {
			known[r.id] = known[r.id] || r.isExclusive || r.hasTypoHint || !r.isMet(c.objects[:c.ownCount])
		}
	}
	broken := func(o Object, among []Object) []objectReference {
		return slices.DeleteFunc(referencesOf(o), func(r objectReference) bool { return known[r.id] || !r.isExclusive && !r.hasTypoHint && r.isMet(among) })
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
			c.addOpenReference(openReference{r, clusters[o.GetAnnotations()[bundleAnnotation]], func(message string) (finding, bool) {
				wrong := structure.Finding{Path: r.path, Type: "NotFound", Message: message}
				if r.isExclusive {
					wrong.Type = string(schemas.TypeDuplicate)
				}
				at, _, ok := c.faultyPart(k, o, wrong, func(o Object, among []Object) bool {
					return slices.ContainsFunc(broken(o, among), func(b objectReference) bool { return b.id == r.id })
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
	w.requireUnique(o)
	if !slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, w.namespace) {
		w.requireObject(fieldpath.Path{"metadata", "namespace"}, "Namespace", w.namespace, "")
	}
	switch o.GetKind() {
	case "ConfigMap", "Secret", "CustomResourceDefinition":
		return w.found // their content is not ours
	case "Service":
		w.requireServicePods(o.Object)
		w.requireWorldPorts(o)
	case "RoleBinding", "ClusterRoleBinding":
		w.warnOfPublicBindings(o.Object)
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		w.warnOfClosedWebhooks(o.Object)
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		w.requirePolicyBinding(o)
	case "ResourceQuota":
		w.requireQuotaAmounts(o.Object)
	case "PrometheusRule":
		w.requireJobs(o.Object)
	case "Prometheus":
		w.requireAlertmanagers(o.Object)
		w.requireScrapeObjects(o.Object)
	case "PodDisruptionBudget":
		w.requirePods(fieldpath.Path{"spec", "selector", "matchLabels"}, o.Object)
		w.requireOnlyBudget(o)
		w.requireEvictable(o)
	case "NetworkPolicy":
		w.requirePods(fieldpath.Path{"spec", "podSelector", "matchLabels"}, o.Object)
		w.requirePolicyPorts(o.Object)
	case "HorizontalPodAutoscaler":
		w.requireScalerMetrics(o.Object)
		w.requireOnlyAutoscaler(o, "scaleTargetRef")
		w.requireSingleScaler(o)
	case "ServiceMonitor":
		w.requireMonitorTargets(o.Object, "endpoints", servicesWithLabels, "Services")
	case "PodMonitor":
		w.requireMonitorTargets(o.Object, "podMetricsEndpoints", podsWithLabels, "pods")
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		w.requireObject(fieldpath.Path{"spec", "policyName"}, strings.TrimSuffix(o.GetKind(), "Binding"), textAt(o.Object, "spec", "policyName"), "")
	case "VerticalPodAutoscaler":
		w.requirePolicyContainers(o.Object)
		w.requireMinReplicas(o.Object)
		w.requireOnlyAutoscaler(o, "targetRef")
		w.requireSingleScaler(o)
	case "StatefulSet":
		w.requireObject(fieldpath.Path{"spec", "serviceName"}, "Service", textAt(o.Object, "spec", "serviceName"), w.namespace)
	case "ManagedResource":
		w.requireObjects(fieldpath.Path{"spec", "secretRefs"}, "Secret", valueIn(o.Object, "spec", "secretRefs"))
		w.requireClass(textAt(o.Object, "spec", "class"))
	}
	for _, hint := range strict.Hints(o.Unstructured) {
		w.addWarning(hint.Path, "%s", hint.Message)
	}
	w.requirePrometheus(o)
	w.requireIstioObjects(o)
	w.requireOnlySelector(o)
	for _, template := range podTemplates(o.Unstructured) {
		path := fieldpath.Path{"spec", "template"}
		if o.GetKind() == "CronJob" {
			path = fieldpath.Path{"spec", "jobTemplate", "spec", "template"}
		}
		spec, _ := template["spec"].(map[string]any)
		w.checkFlags(path.Append("spec"), spec)
		w.requireSubPathKeys(path.Append("spec"), spec)
		w.requireClientServices(path, template)
	}
	w.walk(o.Object, nil)
	return w.found
}

// requireClass requires that a resource manager of a landscape has the class of a ManagedResource.
func (w *referenceWalk) requireClass(class string) {
	if class == "" {
		return
	}
	classes := []string{resourcesv1alpha1.ClassDefault, resourcesv1alpha1.ClassSeed}
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"spec", "class"}, id: "class " + class,
		isMet: func([]Object) bool { return slices.Contains(classes, class) },
		missingMessage: func([]Object) string {
			hint := ""
			if guess := suggest.Closest(class, classes); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			}
			return fmt.Sprintf("no resource manager has the class %q, so nothing is applied: use seed for the ManagedResource's own cluster, and resources or none otherwise%s", class, hint)
		},
	})
}

// prometheusSelectors are the fields by which a Prometheus selects scrape and rule objects, by
// kind.
var prometheusSelectors = map[string]string{
	"ServiceMonitor": "serviceMonitorSelector", "PodMonitor": "podMonitorSelector", "Probe": "probeSelector", "ScrapeConfig": "scrapeConfigSelector", "PrometheusRule": "ruleSelector",
}

// requirePrometheus requires a Prometheus that selects an object, if one in the cluster selects by
// labels.
func (w *referenceWalk) requirePrometheus(o Object) {
	field := prometheusSelectors[o.GetKind()]
	if field == "" || !strings.HasPrefix(o.GetAPIVersion(), "monitoring.coreos.com/") {
		return
	}
	label := o.GetLabels()["prometheus"]
	wanted := func(p Object) map[string]string { return labelsIn(valueIn(p.Object, "spec", field, "matchLabels")) }
	w.found = append(w.found, objectReference{
		path: fieldpath.Path{"metadata", "labels", fieldpath.Key("prometheus")}, hasTypoHint: true, id: "Prometheus that selects " + o.GetKind() + " " + label,
		isMet: func(among []Object) bool {
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
		missingMessage: func(among []Object) string {
			var names []string
			for _, p := range among {
				if name := wanted(p)["prometheus"]; p.GetKind() == "Prometheus" && name != "" {
					names = append(names, name)
				}
			}
			if label == "" {
				return fmt.Sprintf("no Prometheus rendered for the cluster selects a %s without the label prometheus%s", o.GetKind(), alternativesHint("", names, "they select "))
			}
			return fmt.Sprintf("no Prometheus rendered for the cluster selects a %s with the label prometheus=%s%s", o.GetKind(), label, alternativesHint(label, names, "they select "))
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
			w.visitField(path.Append(field), field, v[field])
		}
	case []any:
		for i, item := range v {
			w.walk(item, path.Append(i))
		}
	}
}

func (w *referenceWalk) visitField(path fieldpath.Path, field string, value any) {
	text, _ := value.(string)
	object, _ := value.(map[string]any)
	switch field {
	case "serviceAccountName":
		if text != "default" {
			w.requireObject(path, "ServiceAccount", text, w.namespace)
		}
	case "priorityClassName":
		if !strings.HasPrefix(text, "system-") { // the others are from Kubernetes
			w.requireObject(path, "PriorityClass", text, "")
		}
	case "secret", "secretRef", "secretKeyRef":
		w.requireContent(path, "Secret", object)
	case "configMap", "configMapRef", "configMapKeyRef":
		w.requireContent(path, "ConfigMap", object)
	case "imagePullSecrets":
		w.requireObjects(path, "Secret", value)
	case "persistentVolumeClaim":
		w.requireObject(path.Append("claimName"), "PersistentVolumeClaim", textAt(object, "claimName"), w.namespace)
	case "scaleTargetRef", "targetRef":
		w.requireObject(path.Append("name"), textAt(object, "kind"), textAt(object, "name"), w.namespace)
	case "roleRef":
		if name := textAt(object, "name"); !strings.HasPrefix(name, "system:") && !slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name) {
			w.requireObject(path.Append("name"), textAt(object, "kind"), name, w.namespace)
		}
	case "matchLabels":
		w.requireObject(path.Append(fieldpath.Key("kubernetes.io/metadata.name")), "Namespace", textAt(object, "kubernetes.io/metadata.name"), "")
	case "subjects":
		for i, subject := range mapsIn(value) {
			if account, is := strings.CutPrefix(textAt(subject, "name"), "system:serviceaccount:"); is && textAt(subject, "kind") == "User" {
				namespace, name, _ := strings.Cut(account, ":")
				w.requireObject(path.Append(i).Append("name"), "ServiceAccount", name, namespace)
			}
			if name := textAt(subject, "name"); textAt(subject, "kind") == "ServiceAccount" && name != "default" {
				w.requireObject(path.Append(i).Append("name"), "ServiceAccount", name, textAt(subject, "namespace"))
			}
		}
	case "service":
		namespace := w.namespace
		if given := textAt(object, "namespace"); given != "" {
			namespace = given
		}
		w.requireObject(path.Append("name"), "Service", textAt(object, "name"), namespace)
		w.requireServicePort(path, object, namespace)
	case "tls":
		for i, of := range mapsIn(value) {
			w.requireObject(path.Append(i).Append("secretName"), "Secret", textAt(of, "secretName"), w.namespace)
		}
	case "podAffinity", "podAntiAffinity":
		for i, term := range mapsIn(object["requiredDuringSchedulingIgnoredDuringExecution"]) {
			labels := labelsIn(valueIn(term, "labelSelector", "matchLabels"))
			if term["namespaces"] == nil && term["namespaceSelector"] == nil {
				w.requireLabels(path.Append("requiredDuringSchedulingIgnoredDuringExecution").Append(i).Append("labelSelector"), labels, podsWithLabels, "pods")
			}
		}
	}
	w.walk(value, path)
}

// requireObject requires an object of a kind and name. An empty namespace means any: objects get
// theirs after the overlay, or have none.
func (w *referenceWalk) requireObject(path fieldpath.Path, kind, name, namespace string) {
	// Kubernetes creates it in each namespace
	if kind == "" || name == "" || kind == "ConfigMap" && name == "kube-root-ca.crt" {
		return
	}
	w.found = append(w.found, objectReference{
		path: path, kind: kind, name: name, id: kind + " " + name,
		isMet: func(among []Object) bool { return len(objectsNamed(among, kind, name, namespace)) > 0 },
		missingMessage: func(among []Object) string {
			var names []string
			for _, o := range among {
				if o.GetKind() == kind {
					names = append(names, o.GetName())
				}
			}
			return fmt.Sprintf("%s %q is neither rendered for the cluster nor declared in Git%s", kind, name, alternativesHint(name, names, "there is "))
		},
	})
}

func (w *referenceWalk) requireObjects(path fieldpath.Path, kind string, list any) {
	for i, item := range mapsIn(list) {
		w.requireObject(path.Append(i).Append("name"), kind, textAt(item, "name"), w.namespace)
	}
}

// requireContent requires a Secret or ConfigMap, and the named keys.
func (w *referenceWalk) requireContent(path fieldpath.Path, kind string, object map[string]any) {
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
	w.requireObject(path.Append(field), kind, name, namespace)
	w.requireKey(path.Append("key"), kind, name, textAt(object, "key"), namespace)
	for i, item := range mapsIn(object["items"]) {
		w.requireKey(path.Append("items").Append(i).Append("key"), kind, name, textAt(item, "key"), namespace)
	}
}

// requireSubPathKeys requires the keys of ConfigMaps and Secrets that containers mount singly.
func (w *referenceWalk) requireSubPathKeys(path fieldpath.Path, spec map[string]any) {
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
						w.requireKey(at, "ConfigMap", name, textAt(mount, "subPath"), w.namespace)
					}
					if name := textAt(secret, "secretName"); name != "" {
						w.requireKey(at, "Secret", name, textAt(mount, "subPath"), w.namespace)
					}
				}
			}
		}
	}
}

// requireKey requires a key of a Secret or ConfigMap. It skips objects that do not exist or get
// their data in the cluster.
func (w *referenceWalk) requireKey(path fieldpath.Path, kind, name, key, namespace string) {
	if key == "" {
		return
	}
	keys := func(among []Object) (all []string) {
		for _, o := range objectsNamed(among, kind, name, namespace) {
			for _, field := range []string{"data", "stringData", "binaryData"} {
				data, _ := o.Object[field].(map[string]any)
				all = append(all, slices.Collect(maps.Keys(data))...)
			}
		}
		return all
	}
	w.found = append(w.found, objectReference{
		path: path, id: fmt.Sprintf("%s of %s %s", key, kind, name),
		isMet: func(among []Object) bool {
			all := keys(among)
			return len(all) == 0 || slices.Contains(all, key)
		},
		missingMessage: func(among []Object) string {
			return fmt.Sprintf("%s %q has no key %q%s", kind, name, key, alternativesHint(key, keys(among), "it has "))
		},
	})
}

// requireServicePods requires pods with the labels of a Service, and their ports.
func (w *referenceWalk) requireServicePods(object map[string]any) {
	labels := labelsIn(valueIn(object, "spec", "selector"))
	if len(labels) == 0 {
		return
	}
	w.requirePods(fieldpath.Path{"spec", "selector"}, object)
	for i, port := range mapsIn(valueIn(object, "spec", "ports")) {
		field := "targetPort"
		if port[field] == nil {
			field = "port"
		}
		w.requirePort(fieldpath.Path{"spec", "ports", i, field}, port[field], portProtocol(port), "pods", labels, w.portsOfPods(labels))
	}
}

// requirePods requires pods with the labels at a path.
func (w *referenceWalk) requirePods(path fieldpath.Path, object map[string]any) {
	w.requireLabels(path, labelsIn(valueIn(object, textPath(path)...)), podsWithLabels, "pods")
}

// requireMonitorTargets requires the objects that a ServiceMonitor or PodMonitor selects, and their
// ports.
func (w *referenceWalk) requireMonitorTargets(object map[string]any, endpoints string, find func([]Object, string, map[string]string) []map[string]any, what string) {
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
	in.requireLabels(path, labels, find, what)
	ports := portsOfPods
	if what == "Services" {
		ports = portsOfServices
	}
	for i, endpoint := range mapsIn(valueIn(object, "spec", endpoints)) {
		in.requirePort(fieldpath.Path{"spec", endpoints, i, "port"}, endpoint["port"], "", what, labels, func(among []Object) []portID { return ports(find(among, namespace, labels)) })
	}
}

func (w *referenceWalk) requireLabels(path fieldpath.Path, labels map[string]string, find func([]Object, string, map[string]string) []map[string]any, what string) {
	if len(labels) == 0 {
		return
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	text := strings.Join(pairs, ",")
	w.found = append(w.found, objectReference{
		path: path, id: what + " " + text,
		isMet: func(among []Object) bool { return len(find(among, w.namespace, labels)) > 0 },
		missingMessage: func([]Object) string {
			return fmt.Sprintf("selects nothing: no %s rendered for the cluster have the labels %s", what, text)
		},
	})
}

// alternativesHint lists the existing names, or the most likely one.
func alternativesHint(name string, names []string, there string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if guess := suggest.Closest(name, names); guess != "" {
		return fmt.Sprintf("; did you mean %q?", guess)
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + there + strings.Join(firstNames(names), ", ")
}
