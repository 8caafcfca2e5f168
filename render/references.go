// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Marks that a component sets on an object as annotations; rendering acts on them and removes them.
const (
	// MarkHashedName on a ConfigMap or Secret adds a hash of the data to the name, and makes the
	// object immutable and garbage-collectable.
	MarkHashedName = "render.pergola.dev/hashed-name"
	// MarkReferences on a workload annotates it with the Secrets and ConfigMaps of its pods, so
	// that the garbage collector keeps them. The value is "true", or a kind to restrict the
	// annotations to.
	MarkReferences = "render.pergola.dev/reference-annotations"
)

// Keys of upstream's garbage collector (gardener:
// pkg/resourcemanager/controller/garbagecollector/references).
const (
	labelGarbageCollectable   = "resources.gardener.cloud/garbage-collectable-reference"
	annotationReferencePrefix = "reference.resources.gardener.cloud/"
)

// appendNameHashes renames marked ConfigMaps and Secrets to <name>-<8 hex of their data> and
// updates references in the pod templates of the same component.
func appendNameHashes(objects []Object) error {
	renamed := map[string]string{} // "<kind>/<namespace>/<name>" to the new name
	for _, obj := range objects {
		if removeMark(obj.Unstructured, MarkHashedName) != "true" {
			continue
		}
		if kind := obj.GetKind(); kind != "ConfigMap" && kind != "Secret" {
			return fmt.Errorf("%s %s at %s: only ConfigMaps and Secrets get a hashed name", kind, obj.GetName(), obj.Origin)
		}
		hash, err := dataHash(obj.Unstructured)
		if err != nil {
			return fmt.Errorf("%s %s at %s: %w", obj.GetKind(), obj.GetName(), obj.Origin, err)
		}
		name := obj.GetName() + "-" + hash[:8]
		renamed[obj.GetKind()+"/"+obj.GetNamespace()+"/"+obj.GetName()] = name
		obj.SetName(name)
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[labelGarbageCollectable] = "true"
		obj.SetLabels(labels)
		obj.Object["immutable"] = true
	}
	for _, obj := range objects {
		ns := obj.GetNamespace()
		eachReference(obj.Unstructured, func(kind, name string) string {
			if to, ok := renamed[kind+"/"+ns+"/"+name]; ok {
				return to
			}
			return name
		})
	}
	return nil
}

// dataHash is SHA-256 over the SHA-256 of each value, values in the order of their keys, so that
// names are equal to upstream's.
func dataHash(obj *unstructured.Unstructured) (string, error) {
	values := map[string][]byte{}
	for _, field := range []string{"data", "stringData", "binaryData"} {
		data, _, err := unstructured.NestedMap(obj.Object, field)
		if err != nil {
			return "", err
		}
		for key, v := range data {
			text, ok := v.(string)
			if !ok {
				return "", fmt.Errorf("%s[%s] is not a string", field, key)
			}
			raw := []byte(text)
			if field == "binaryData" || (field == "data" && obj.GetKind() == "Secret") {
				if raw, err = base64.StdEncoding.DecodeString(text); err != nil {
					return "", fmt.Errorf("%s[%s] is not base64", field, key)
				}
			}
			values[key] = raw
		}
	}
	return hashValues(values), nil
}

func hashValues(values map[string][]byte) string {
	all := sha256.New()
	for _, key := range sortedKeys(values) {
		sum := sha256.Sum256(values[key])
		all.Write([]byte(hex.EncodeToString(sum[:])))
	}
	return hex.EncodeToString(all.Sum(nil))
}

// annotateReferences sets the reference annotations of marked workloads, on the object and on its
// pod template.
func annotateReferences(objects []Object) {
	for _, obj := range objects {
		of := removeMark(obj.Unstructured, MarkReferences)
		if of != "true" && of != "ConfigMap" && of != "Secret" {
			continue
		}
		found := map[string]string{}
		eachReference(obj.Unstructured, func(kind, name string) string {
			if of == "true" || of == kind {
				key, value := ReferenceAnnotation(kind, name)
				found[key] = value
			}
			return name
		})
		if len(found) == 0 {
			continue
		}
		obj.SetAnnotations(mergeMaps(obj.GetAnnotations(), found))
		for _, p := range podTemplates(obj.Unstructured) {
			annotations, _, _ := unstructured.NestedStringMap(p, "metadata", "annotations")
			_ = unstructured.SetNestedStringMap(p, mergeMaps(annotations, found), "metadata", "annotations")
		}
	}
}

// ReferenceAnnotation is the annotation that protects a Secret or ConfigMap from
// the garbage collector while the annotated object exists.
func ReferenceAnnotation(kind, name string) (key, value string) {
	prefix := "secret-"
	if kind == "ConfigMap" {
		prefix = "configmap-"
	}
	sum := sha256.Sum256([]byte(name))
	return annotationReferencePrefix + prefix + hex.EncodeToString(sum[:])[:8], name
}

func mergeMaps(a, b map[string]string) map[string]string {
	out := make(map[string]string, len(a)+len(b))
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		out[k] = v
	}
	return out
}

// removeMark removes a mark and returns its value, or "" if it is not set.
func removeMark(obj *unstructured.Unstructured, mark string) string {
	annotations := obj.GetAnnotations()
	value, ok := annotations[mark]
	if !ok {
		return ""
	}
	delete(annotations, mark)
	if len(annotations) == 0 {
		annotations = nil
	}
	obj.SetAnnotations(annotations)
	return value
}

// podTemplates returns the pod templates of a workload.
func podTemplates(obj *unstructured.Unstructured) []map[string]any {
	var paths [][]string
	switch obj.GetKind() {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job":
		paths = [][]string{{"spec", "template"}}
	case "CronJob":
		paths = [][]string{{"spec", "jobTemplate", "spec", "template"}}
	}
	var out []map[string]any
	for _, p := range paths {
		var m any = obj.Object
		for _, f := range p {
			next, ok := m.(map[string]any)
			if !ok {
				m = nil
				break
			}
			m = next[f]
		}
		if t, ok := m.(map[string]any); ok {
			out = append(out, t)
		}
	}
	return out
}

// podSpecs returns the pod specs of a workload. The spec of Prometheus and Alertmanager objects has
// volumes and containers, too.
func podSpecs(obj *unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	for _, template := range podTemplates(obj) {
		spec, _ := template["spec"].(map[string]any)
		out = append(out, spec)
	}
	if gvk := obj.GroupVersionKind(); gvk.Group == "monitoring.coreos.com" && (gvk.Kind == "Prometheus" || gvk.Kind == "Alertmanager") {
		if spec, ok := obj.Object["spec"].(map[string]any); ok {
			out = append(out, spec)
		}
	}
	return out
}

// eachReference calls visit for every Secret and ConfigMap name in the pod templates of a workload
// and replaces the name by its result.
func eachReference(obj *unstructured.Unstructured, visit func(kind, name string) string) {
	for _, spec := range podSpecs(obj) {
		for _, volume := range mapsIn(spec["volumes"]) {
			renameReference(volume["secret"], "secretName", "Secret", visit)
			renameReference(volume["configMap"], "name", "ConfigMap", visit)
			if projected, ok := volume["projected"].(map[string]any); ok {
				for _, source := range mapsIn(projected["sources"]) {
					renameReference(source["secret"], "name", "Secret", visit)
					renameReference(source["configMap"], "name", "ConfigMap", visit)
				}
			}
		}
		for _, secret := range mapsIn(spec["imagePullSecrets"]) {
			renameReference(secret, "name", "Secret", visit)
		}
		for _, field := range []string{"containers", "initContainers"} {
			for _, container := range mapsIn(spec[field]) {
				for _, env := range mapsIn(container["env"]) {
					if from, ok := env["valueFrom"].(map[string]any); ok {
						renameReference(from["secretKeyRef"], "name", "Secret", visit)
						renameReference(from["configMapKeyRef"], "name", "ConfigMap", visit)
					}
				}
				for _, from := range mapsIn(container["envFrom"]) {
					renameReference(from["secretRef"], "name", "Secret", visit)
					renameReference(from["configMapRef"], "name", "ConfigMap", visit)
				}
			}
		}
	}
}

func renameReference(holder any, field, kind string, visit func(kind, name string) string) {
	m, ok := holder.(map[string]any)
	if !ok {
		return
	}
	if name, ok := m[field].(string); ok && name != "" {
		m[field] = visit(kind, name)
	}
}

func mapsIn(list any) []map[string]any {
	items, _ := list.([]any)
	var out []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// sortObjects orders the objects of a bundle as upstream's data Secrets do:
// <group/version, kind>__<namespace>__<name>.
func sortObjects(objects []Object) {
	sort.SliceStable(objects, func(i, j int) bool { return objectKey(objects[i]) < objectKey(objects[j]) })
}

func objectKey(o Object) string {
	return o.GetAPIVersion() + "/" + o.GetKind() + "__" + o.GetNamespace() + "__" + o.GetName()
}
