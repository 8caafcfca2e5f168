// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// retainedFieldsOf are fields of a change that keep their live value despite the declaration, by
// kind. The engine sends the live value (package apply, immutablefields.go), or the API server
// restores it.
var retainedFieldsOf = map[schemaKind]func(e objectChange) []string{
	{Group: "apps", Kind: "StatefulSet"}: func(e objectChange) []string { return e.changedWithin("spec.volumeClaimTemplates") },
	{Group: "batch", Kind: "Job"}: func(e objectChange) []string {
		return append(e.removedFields("spec.selector", "spec.manualSelector"), e.removedFields(e.changedWithin("spec.template.metadata.labels")...)...)
	},
	{Kind: "PersistentVolumeClaim"}: func(e objectChange) []string {
		return e.removedFields("spec.storageClassName", "spec.volumeName", "spec.dataSource", "spec.dataSourceRef")
	},
	{Kind: "Service"}: retainedAddresses,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: func(e objectChange) []string { return e.changedWithin("spec") },
}

// removedFields returns fields that are no longer declared.
func (e objectChange) removedFields(paths ...string) []string {
	var out []string
	for _, f := range e.fields {
		for _, p := range paths {
			if f.Path == p && f.New == nil && f.NewHash == "" && f.Old != nil {
				out = append(out, p)
			}
		}
	}
	return out
}

// retainedAddresses returns addresses and ports of a Service that keep their live value: undeclared
// ones, and clusterIP even if declared. A headless Service stays headless; the reverse change is
// refused (refusals).
func retainedAddresses(e objectChange) []string {
	if e.oldValue("spec.type") == "ExternalName" || e.newValue("spec.type") == "ExternalName" {
		return nil
	}
	out := e.removedFields("spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy")
	if e.newValue("spec.clusterIP") != nil && addressOf(e.new) != headlessClusterIP {
		for _, path := range []string{"spec.clusterIP", "spec.clusterIPs"} {
			if e.newValue(path) != nil {
				out = append(out, e.changedWithin(path)...)
			}
		}
	}
	if serves := []any{"NodePort", "LoadBalancer"}; isOneOf(e.oldValue("spec.type"), serves) && isOneOf(e.newValue("spec.type"), serves) {
		for _, f := range e.fields {
			if strings.HasPrefix(f.Path, "spec.ports[") && strings.HasSuffix(f.Path, ".nodePort") && f.New == nil {
				out = append(out, f.Path)
			}
		}
		if e.oldValue("spec.externalTrafficPolicy") == "Local" && e.newValue("spec.externalTrafficPolicy") == "Local" {
			out = append(out, e.removedFields("spec.healthCheckNodePort")...)
		}
	}
	return out
}

func isOneOf(v any, of []any) bool {
	for _, o := range of {
		if v == o {
			return true
		}
	}
	return false
}

// Annotations for fields that only apply on creation; autoscalers set them afterwards.
const (
	annotationReplicas  = "resources.gardener.cloud/preserve-replicas"
	annotationResources = "resources.gardener.cloud/preserve-resources"
)

// autoscaledResourcePattern matches container resources that an autoscaler may set.
var autoscaledResourcePattern = regexp.MustCompile(`^(spec|spec\.template\.spec|spec\.jobTemplate\.spec\.template\.spec)\.containers\[name=[^\]]*\]` +
	`\.resources\.(requests|limits)\.(cpu|memory)$`)

// preservedFields returns fields that keep their live value because of an annotation, an autoscaler
// or a missing declaration, and the reasons (package apply, createonly.go).
func (e objectChange) preservedFields(gk schemaKind) (paths []string, reasons []string) {
	say := func(found []string, why string) {
		if len(found) > 0 {
			paths = append(paths, found...)
			reasons = append(reasons, strings.Join(found, ", ")+plural(len(found), " keeps its live value: ", " keep their live values: ")+why)
		}
	}
	annotation := func(name string) any { return nestedValue(e.new, "metadata", "annotations", name) }
	if gk.Group == "apps" && (gk.Kind == "Deployment" || gk.Kind == "StatefulSet") {
		switch replicas := e.changedWithin("spec.replicas"); {
		case annotation(annotationReplicas) == "true":
			say(replicas, "annotation "+annotationReplicas)
		case e.isAutoscaled && !isNumber(e.oldValue("spec.replicas"), 0):
			// no autoscaler scales from zero
			say(replicas, "a HorizontalPodAutoscaler sets it")
		case e.newValue("spec.replicas") == nil:
			say(replicas, "it is not declared now")
		}
	}
	if annotation(annotationResources) == "true" {
		var found []string
		for _, f := range e.fields {
			if isAutoscaled(f.Path, f.Old) {
				found = append(found, f.Path)
			}
		}
		say(found, "annotation "+annotationResources)
	}
	return paths, reasons
}

// isAutoscaled reports whether an existing value has only resources that an autoscaler sets.
// Missing resources are added to the container.
func isAutoscaled(path string, before any) bool {
	m, isMap := before.(map[string]any)
	if !isMap {
		return before != nil && autoscaledResourcePattern.MatchString(path)
	}
	for key, v := range m {
		if !isAutoscaled(path+"."+key, v) {
			return false
		}
	}
	return len(m) > 0
}

// fieldsExcept returns the fields of a change except some paths.
func fieldsExcept(fields []change.Field, paths []string) []change.Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f change.Field) bool { return slices.Contains(paths, f.Path) })
}
