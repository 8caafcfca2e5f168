// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
)

// checkShootNginxConfig checks the settings of the ingress controller, which become a ConfigMap.
func checkShootNginxConfig(r *findingCollector, s shoot) {
	ingress := s.spec.lookup("addons", "nginxIngress")
	if config := ingress.lookup("config"); ingress.lookup("enabled").isTrue() && len(s.workers) > 0 && minorOf(s.version) < 35 {
		r.checkConfigMapSettings(config)
	}
}

// checkGardenIngressConfig checks the settings of the ingress controller of the runtime cluster.
// They become texts, so lists and maps are not possible.
func checkGardenIngressConfig(in ruleInput) []finding {
	r, config := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "runtimeCluster", "ingress", "controller", "providerConfig")
	r.checkConfigMapSettings(config)
	for _, key := range config.keys() {
		switch config.lookup(key).value.(type) {
		case []any, map[string]any, nil:
			r.add(config.entry(key), TypeInvalid, "must be a text, a number, true or false: it becomes a line of the ConfigMap of the ingress controller")
		}
	}
	return r.findings
}

// checkConfigMapSettings checks settings that become a ConfigMap.
func (r *findingCollector) checkConfigMapSettings(config fieldValue) {
	size := 0
	for _, key := range config.keys() {
		if len(validation.IsConfigMapKey(key)) > 0 {
			r.add(config.entry(key), TypeInvalid, "%q cannot be a key of a ConfigMap: at most 253 letters, digits, '-', '_' and '.', not beginning with two dots", key)
		}
		size += len(config.lookup(key).text())
	}
	if size > maxConfigMapBytes {
		r.add(config, TypeTooLong, "has values of %d bytes, but a ConfigMap has room for %d", size, maxConfigMapBytes)
	}
}

const maxConfigMapBytes = 1 << 20

// internalVersionPattern matches the version of a program's internal form of an object.
var internalVersionPattern = regexp.MustCompile(`^([^/]*/)?__internal$`)

// checkShootConfigVersions checks the versions of configurations for extensions.
func checkShootConfigVersions(r *findingCollector, s shoot) {
	provider := s.spec.lookup("provider")
	configs := []fieldValue{provider.lookup("infrastructureConfig"), provider.lookup("controlPlaneConfig"), s.spec.lookup("networking", "providerConfig")}
	for _, worker := range s.workers {
		configs = append(configs, worker.lookup("providerConfig"), worker.lookup("machine", "image", "providerConfig"))
		for _, runtime := range worker.lookup("cri", "containerRuntimes").items() {
			configs = append(configs, runtime.lookup("providerConfig"))
		}
	}
	for _, config := range configs {
		if version := config.lookup("apiVersion").text(); internalVersionPattern.MatchString(version) {
			r.add(config, TypeInvalid, "has the apiVersion %q, which is only used inside programs; use one such as v1alpha1", version)
		}
	}
}
