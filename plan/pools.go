package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

// readers return the worker pools of a kind.
var readers = map[string]func(*unstructured.Unstructured) []pool{"Worker": poolsOfWorker, "Shoot": poolsOfShoot}

// machineImage is the part with the name and version of the machine image.
const machineImage = "machine image"

func poolsOfWorker(o *unstructured.Unstructured) []pool {
	var out []pool
	for _, w := range objectsAt(o, "spec", "pools") {
		p := readPool(w)
		p.secretName = str(w, "nodeAgentSecretName")
		p.first = p.secretName == ""
		labels, _, _ := unstructured.NestedStringMap(w, "labels")
		p.parts = append(p.parts,
			part{machineImage, strings.TrimSpace(str(w, "machineImage", "name") + " " + str(w, "machineImage", "version")), false},
			part{"Kubernetes", str(w, "kubernetesVersion"), true},
			part{"container runtime", labels["worker.gardener.cloud/cri-name"], false},
			part{"node-local DNS", labels["networking.gardener.cloud/node-local-dns-enabled"], true})
		if p.inPlace() {
			p.parts[len(p.parts)-1].value = "" // it has no effect, or is immutable
		}
		kubelet, _, _ := unstructured.NestedMap(w, "kubeletConfig")
		p.finish(str(w, "machineType"), kubelet)
		out = append(out, p)
	}
	return out
}

func poolsOfShoot(o *unstructured.Unstructured) []pool {
	if o == nil {
		return nil
	}
	var out []pool
	for _, w := range objectsAt(o, "spec", "provider", "workers") {
		p := readPool(w)
		version := str(w, "kubernetes", "version")
		if version == "" {
			version = str(o.Object, "spec", "kubernetes", "version")
		}
		cri := str(w, "cri", "name")
		if cri == "" {
			cri = "containerd"
		}
		p.parts = append(p.parts,
			part{machineImage, strings.TrimSpace(str(w, "machine", "image", "name") + " " + str(w, "machine", "image", "version")), false},
			part{"Kubernetes", version, true},
			part{"container runtime", cri, false},
			part{"kubelets are told the address of node-local DNS", yes(cachedDNS(o, version)), true})
		kubelet, own, _ := unstructured.NestedMap(w, "kubernetes", "kubelet")
		if !own {
			kubelet, _, _ = unstructured.NestedMap(o.Object, "spec", "kubernetes", "kubelet")
		}
		p.finish(str(w, "machine", "type"), kubelet)
		out = append(out, p)
	}
	return out
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// cachedDNS reports whether kubelets get the address of node-local DNS, so that machines depend on
// it: before 1.34, and with kube-proxy in IPVS mode. Otherwise it changes on running machines.
func cachedDNS(shoot *unstructured.Unstructured, version string) bool {
	enabled, _, _ := unstructured.NestedBool(shoot.Object, "spec", "systemComponents", "nodeLocalDNS", "enabled")
	proxy := nestedValue(shoot.Object, "spec", "kubernetes", "kubeProxy", "enabled") != false
	ipvs := proxy && str(shoot.Object, "spec", "kubernetes", "kubeProxy", "mode") == "IPVS"
	v, err := semver.NewVersion(version)
	return enabled && (ipvs || err == nil && v.Major() == 1 && v.Minor() < 34)
}

// readPool reads the fields that both kinds have in common.
func readPool(w map[string]any) pool {
	p := pool{name: str(w, "name"), strategy: str(w, "updateStrategy"), provider: w["providerConfig"]}
	p.surge, p.unavailable = "1", "0"
	if p.inPlace() {
		p.surge, p.unavailable = "0", "1"
	}
	if v := w["maxSurge"]; v != nil {
		p.surge = fmt.Sprint(v)
	}
	if v := w["maxUnavailable"]; v != nil {
		p.unavailable = fmt.Sprint(v)
	}
	if n, ok := jsonvalue.Number(w["maximum"]); ok {
		p.maximum, _ = n.Int64()
	}
	p.parts = []part{{"volume", strings.TrimSpace(str(w, "volume", "size") + " " + str(w, "volume", "type")), false}}
	return p
}

// finish adds common settings that depend on the strategy: an in-place update changes the image
// version of a running machine.
func (p *pool) finish(machineType string, kubelet map[string]any) {
	p.parts = append([]part{{"machine type", machineType, false}}, p.parts...)
	for i := range p.parts {
		part := &p.parts[i]
		switch part.name {
		case "Kubernetes":
			part.value = minor(part.value)
		case machineImage:
			part.live = p.inPlace()
		}
	}
	if p.first {
		return
	}
	p.parts = append(p.parts, part{"reserved resources of the kubelet", reserved(kubelet), true},
		part{"eviction thresholds of the kubelet", asJSON(kubelet, "evictionHard"), true},
		part{"CPU manager policy of the kubelet", str(kubelet, "cpuManagerPolicy"), true})
}

// minor returns a version without its patch, which does not affect machines.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// reserved formats the kubelet's reserved resources like the pool hash, which distinguishes a zero
// quantity from a missing one.
func reserved(kubelet map[string]any) string {
	given, is := kubelet["kubeReserved"].(map[string]any)
	if !is {
		return ""
	}
	out := []string{}
	for _, name := range []string{"cpu", "memory", "pid", "ephemeralStorage"} {
		if q, err := jsonvalue.Quantity(given[name]); err == nil {
			out = append(out, name+" "+q.String())
		}
	}
	return cmp.Or(strings.Join(out, ", "), "nothing of its own")
}

func str(m map[string]any, path ...string) string {
	s, _ := nestedValue(m, path...).(string)
	return s
}

// asJSON returns a value as JSON, empty without a value.
func asJSON(m map[string]any, path ...string) string {
	v := nestedValue(m, path...)
	if v == nil {
		return ""
	}
	raw, _ := json.Marshal(v) // the value comes from JSON
	return string(raw)
}

func nestedValue(m map[string]any, path ...string) any {
	var v any = m
	for _, key := range path {
		inner, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = inner[key]
	}
	return v
}

func objectsAt(o *unstructured.Unstructured, path ...string) []map[string]any {
	if o == nil {
		return nil
	}
	list, _ := nestedValue(o.Object, path...).([]any)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
