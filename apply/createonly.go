// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// createOnlyField is a group of fields that count only at creation. Afterwards the live value
// stays: we send it while we own it, and omit it once another manager owns it.
type createOnlyField struct {
	remove func(*unstructured.Unstructured)
	// sendLive replaces the declared values in the object to be sent by the live ones.
	sendLive func(send, live *unstructured.Unstructured, owned *fieldpath.Set)
	// covers reports whether a path of managedFields belongs to the group.
	covers func(fieldpath.Path) bool
}

const (
	createOnlyReplicas  = "replicas"
	createOnlyResources = "resources"
)

var createOnlyFields = map[string]createOnlyField{
	createOnlyReplicas: {remove: removeReplicas, sendLive: sendLiveReplicas,
		covers: func(p fieldpath.Path) bool { return p.Equals(replicasPath) },
	},
	createOnlyResources: {remove: removeResources, sendLive: sendLiveResources, covers: isResourcePath},
}

var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// createOnly lists the field groups that are create-only for a declared object. Only its declared
// annotations count (as in upstream). scaled says whether an autoscaler targets it.
func (k Keys) createOnly(o *unstructured.Unstructured, scaled bool) []string {
	var out []string
	gk := groupKindOf(o)
	if gk == deploymentKind || gk == statefulSet {
		_, declared, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
		if !declared || scaled || o.GetAnnotations()[k.PreserveReplicas] == "true" {
			out = append(out, createOnlyReplicas)
		}
	}
	if o.GetAnnotations()[k.PreserveResources] == "true" && len(podSpecs(o)) > 0 {
		out = append(out, createOnlyResources)
	}
	return out
}

// isScaledToZero reports whether an object has or declares zero replicas. An autoscaler does not
// change that.
func isScaledToZero(o *unstructured.Unstructured) bool {
	if o == nil {
		return false
	}
	replicas, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
	switch n := replicas.(type) {
	case int64:
		return n == 0
	case float64:
		return n == 0
	}
	return false
}

// hasTrueAnnotation reports whether the desired or the live object has a true annotation.
func hasTrueAnnotation(o, live *unstructured.Unstructured, annotation string) bool {
	return isTrueAnnotation(o.GetAnnotations()[annotation]) || live != nil && isTrueAnnotation(live.GetAnnotations()[annotation])
}

// isTrueAnnotation parses an annotation as upstream does: True, 1 and t count, too.
func isTrueAnnotation(value string) bool {
	is, err := strconv.ParseBool(value)
	return err == nil && is
}

func removeReplicas(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "spec", "replicas")
}

func sendLiveReplicas(send, live *unstructured.Unstructured, owned *fieldpath.Set) {
	removeReplicas(send)
	if v, ok, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "replicas"); ok && owned.Has(replicasPath) {
		_ = unstructured.SetNestedField(send.Object, v, "spec", "replicas")
	}
}

// podSpecs returns the pod specs inside a workload.
func podSpecs(o *unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	for _, path := range [][]string{{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
		v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		spec, ok := v.(map[string]any)
		if ok && spec["containers"] != nil {
			out = append(out, spec)
		}
	}
	return out
}

// eachContainer visits the containers of all pod specs, but not init containers: no autoscaler
// changes them (as in upstream).
func eachContainer(o *unstructured.Unstructured, visit func(name string, container map[string]any)) {
	for _, spec := range podSpecs(o) {
		items, _ := spec["containers"].([]any)
		for _, item := range items {
			if c, ok := item.(map[string]any); ok {
				name, _ := c["name"].(string)
				visit(name, c)
			}
		}
	}
}

// autoscaledResources lists the resources that an autoscaler sets.
var autoscaledResources = []string{"requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}

func removeResources(o *unstructured.Unstructured) {
	eachContainer(o, func(_ string, c map[string]any) { dropResources(c, autoscaledResources) })
}

func dropResources(container map[string]any, fields []string) {
	for _, field := range fields {
		kind, name, _ := strings.Cut(field, ".")
		unstructured.RemoveNestedField(container, "resources", kind, name)
	}
	for _, kind := range []string{"requests", "limits"} {
		if m, ok, _ := unstructured.NestedMap(container, "resources", kind); ok && len(m) == 0 {
			unstructured.RemoveNestedField(container, "resources", kind)
		}
	}
}

// sendLiveResources sends the live cpu and memory of containers where we own them. New containers,
// and resources that a container lacks, get the declared values.
func sendLiveResources(send, live *unstructured.Unstructured, owned *fieldpath.Set) {
	have := map[string]map[string]any{}
	eachContainer(live, func(name string, c map[string]any) { have[name] = c })
	ours := map[string]bool{}
	owned.Leaves().Iterate(func(p fieldpath.Path) {
		if name, field, ok := resourcePath(p); ok {
			ours[name+" "+field] = true
		}
	})
	eachContainer(send, func(name string, c map[string]any) {
		for _, field := range autoscaledResources {
			kind, resource, _ := strings.Cut(field, ".")
			v, set, _ := unstructured.NestedFieldCopy(have[name], "resources", kind, resource)
			switch {
			case set && ours[name+" "+field]:
				_ = unstructured.SetNestedField(c, v, "resources", kind, resource)
			case set:
				dropResources(c, []string{field})
			}
		}
	})
}

// resourcePath splits …containers[name=x].resources.requests.cpu into container and field.
func resourcePath(p fieldpath.Path) (container, field string, ok bool) {
	n := len(p)
	if n < 5 || p[n-1].FieldName == nil || p[n-2].FieldName == nil || p[n-3].FieldName == nil ||
		*p[n-3].FieldName != "resources" || p[n-4].Key == nil || p[n-5].FieldName == nil || *p[n-5].FieldName != "containers" {
		return "", "", false
	}
	field = *p[n-2].FieldName + "." + *p[n-1].FieldName
	for _, k := range *p[n-4].Key {
		if k.Name == "name" {
			container = k.Value.AsString()
		}
	}
	return container, field, slices.Contains(autoscaledResources, field)
}

func isResourcePath(p fieldpath.Path) bool {
	_, _, ok := resourcePath(p)
	return ok
}

// withoutCreateOnly removes the create-only fields from a set.
func withoutCreateOnly(set *fieldpath.Set, createOnly []string) *fieldpath.Set {
	drop := fieldpath.NewSet()
	set.Iterate(func(p fieldpath.Path) {
		for _, f := range createOnly {
			if createOnlyFields[f].covers(p) {
				drop.Insert(p.Copy())
			}
		}
	})
	return set.Difference(drop)
}
