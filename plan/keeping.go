package plan

import (
	"strings"
)

// keeping are the fields of a change that do not change in a cluster although they are declared otherwise, by kind: the engine sends
// what lives (package apply, livekept.go), or the API server puts it back.
var keeping = map[schemaKind]func(e edit) []string{
	{Group: "apps", Kind: "StatefulSet"}: func(e edit) []string { return e.changedWithin("spec.volumeClaimTemplates") },
	{Group: "batch", Kind: "Job"}: func(e edit) []string {
		return append(e.gone("spec.selector", "spec.manualSelector"), e.gone(e.changedWithin("spec.template.metadata.labels")...)...)
	},
	{Kind: "PersistentVolumeClaim"}: func(e edit) []string {
		return e.gone("spec.storageClassName", "spec.volumeName", "spec.dataSource", "spec.dataSourceRef")
	},
	{Kind: "Service"}: keptAddresses,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: func(e edit) []string { return e.changedWithin("spec") },
}

// gone are fields that are not declared any more.
func (e edit) gone(paths ...string) []string {
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

// keptAddresses are the addresses and ports of a Service: those that are not declared any more stay, and its address stays also where
// another one is declared. A headless Service stays headless; one that is not cannot become so (refusals).
func keptAddresses(e edit) []string {
	if e.was("spec.type") == "ExternalName" || e.is("spec.type") == "ExternalName" {
		return nil
	}
	out := e.gone("spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy")
	if e.is("spec.clusterIP") != nil && addressOf(e.new) != headless {
		for _, path := range []string{"spec.clusterIP", "spec.clusterIPs"} {
			if e.is(path) != nil {
				out = append(out, e.changedWithin(path)...)
			}
		}
	}
	if serves := []any{"NodePort", "LoadBalancer"}; oneOf(e.was("spec.type"), serves) && oneOf(e.is("spec.type"), serves) {
		for _, f := range e.fields {
			if strings.HasPrefix(f.Path, "spec.ports[") && strings.HasSuffix(f.Path, ".nodePort") && f.New == nil {
				out = append(out, f.Path)
			}
		}
		if e.was("spec.externalTrafficPolicy") == "Local" && e.is("spec.externalTrafficPolicy") == "Local" {
			out = append(out, e.gone("spec.healthCheckNodePort")...)
		}
	}
	return out
}

func oneOf(v any, of []any) bool {
	for _, o := range of {
		if v == o {
			return true
		}
	}
	return false
}
