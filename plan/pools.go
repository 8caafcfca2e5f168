// SPDX-License-Identifier: Apache-2.0

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

// poolReaders return the worker pools of a kind.
var poolReaders = map[string]func(*unstructured.Unstructured) []pool{"Worker": poolsOfWorker, "Shoot": poolsOfShoot}

// machineImage is the part with the name and version of the machine image.
const machineImage = "machine image"

func poolsOfWorker(o *unstructured.Unstructured) []pool {
	var out []pool
	for _, w := range objectsAt(o, "spec", "pools") {
		p := readPool(w)
		p.secretName = nestedText(w, "nodeAgentSecretName")
		p.isLegacy = p.secretName == ""
		labels, _, _ := unstructured.NestedStringMap(w, "labels")
		p.settings = append(p.settings,
			poolSetting{machineImage, strings.TrimSpace(nestedText(w, "machineImage", "name") + " " + nestedText(w, "machineImage", "version")), false},
			poolSetting{"Kubernetes", nestedText(w, "kubernetesVersion"), true},
			poolSetting{"container runtime", labels["worker.gardener.cloud/cri-name"], false},
			poolSetting{"node-local DNS", labels["networking.gardener.cloud/node-local-dns-enabled"], true})
		if p.isInPlace() {
			p.settings[len(p.settings)-1].value = "" // it has no effect, or is immutable
		}
		kubelet, _, _ := unstructured.NestedMap(w, "kubeletConfig")
		p.addCommonSettings(nestedText(w, "machineType"), kubelet)
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
		version := nestedText(w, "kubernetes", "version")
		if version == "" {
			version = nestedText(o.Object, "spec", "kubernetes", "version")
		}
		cri := nestedText(w, "cri", "name")
		if cri == "" {
			cri = "containerd"
		}
		p.settings = append(p.settings,
			poolSetting{machineImage, strings.TrimSpace(nestedText(w, "machine", "image", "name") + " " + nestedText(w, "machine", "image", "version")), false},
			poolSetting{"Kubernetes", version, true},
			poolSetting{"container runtime", cri, false},
			poolSetting{"kubelets use the address of node-local DNS", yesNo(hasNodeLocalDNS(o, version)), true})
		kubelet, own, _ := unstructured.NestedMap(w, "kubernetes", "kubelet")
		if !own {
			kubelet, _, _ = unstructured.NestedMap(o.Object, "spec", "kubernetes", "kubelet")
		}
		p.addCommonSettings(nestedText(w, "machine", "type"), kubelet)
		out = append(out, p)
	}
	return out
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// hasNodeLocalDNS reports whether kubelets get the address of node-local DNS, so machines depend on
// it: before 1.34, and with kube-proxy in IPVS mode. Otherwise it changes on running machines.
func hasNodeLocalDNS(shoot *unstructured.Unstructured, version string) bool {
	enabled, _, _ := unstructured.NestedBool(shoot.Object, "spec", "systemComponents", "nodeLocalDNS", "enabled")
	proxy := nestedValue(shoot.Object, "spec", "kubernetes", "kubeProxy", "enabled") != false
	ipvs := proxy && nestedText(shoot.Object, "spec", "kubernetes", "kubeProxy", "mode") == "IPVS"
	v, err := semver.NewVersion(version)
	return enabled && (ipvs || err == nil && v.Major() == 1 && v.Minor() < 34)
}

// readPool reads the fields that both kinds have in common.
func readPool(w map[string]any) pool {
	p := pool{name: nestedText(w, "name"), strategy: nestedText(w, "updateStrategy"), provider: w["providerConfig"]}
	p.surge, p.unavailable = "1", "0"
	if p.isInPlace() {
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
	p.settings = []poolSetting{{"volume", strings.TrimSpace(nestedText(w, "volume", "size") + " " + nestedText(w, "volume", "type")), false}}
	return p
}

// addCommonSettings adds common settings that depend on the strategy: an in-place update changes
// the image version of a running machine.
func (p *pool) addCommonSettings(machineType string, kubelet map[string]any) {
	p.settings = append([]poolSetting{{"machine type", machineType, false}}, p.settings...)
	for i := range p.settings {
		part := &p.settings[i]
		switch part.name {
		case "Kubernetes":
			part.value = minorVersionOf(part.value)
		case machineImage:
			part.isInPlace = p.isInPlace()
		}
	}
	if p.isLegacy {
		return
	}
	p.settings = append(p.settings, poolSetting{"reserved resources of the kubelet", reservedResources(kubelet), true},
		poolSetting{"eviction thresholds of the kubelet", asJSON(kubelet, "evictionHard"), true},
		poolSetting{"CPU manager policy of the kubelet", nestedText(kubelet, "cpuManagerPolicy"), true})
}

// minorVersionOf returns a version without its patch, which does not affect machines.
func minorVersionOf(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// reservedResources formats the kubelet's reserved resources like the pool hash, which
// distinguishes a zero quantity from a missing one.
func reservedResources(kubelet map[string]any) string {
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

func nestedText(m map[string]any, path ...string) string {
	s, _ := nestedValue(m, path...).(string)
	return s
}

// asJSON returns a value as JSON, or "" without a value.
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
