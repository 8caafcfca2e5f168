package schemas

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
)

// shootNginxConfig checks the settings of the ingress controller, which become a ConfigMap.
func shootNginxConfig(r *report, s shoot) {
	ingress := s.spec.at("addons", "nginxIngress")
	if config := ingress.at("config"); ingress.at("enabled").is() && len(s.workers) > 0 && minorOf(s.version) < 35 {
		r.configMap(config)
	}
}

// gardenIngressConfig checks the settings of the ingress controller of the runtime cluster. They
// become texts, so lists and maps are not possible.
func gardenIngressConfig(in ruleInput) []finding {
	r, config := &report{}, tree{value: in.object}.at("spec", "runtimeCluster", "ingress", "controller", "providerConfig")
	r.configMap(config)
	for _, key := range config.keys() {
		switch config.at(key).value.(type) {
		case []any, map[string]any, nil:
			r.add(config.key(key), TypeInvalid, "must be a text, a number, true or false: it becomes a line of the ConfigMap of the ingress controller")
		}
	}
	return r.findings
}

// configMap checks settings that become a ConfigMap.
func (r *report) configMap(config tree) {
	size := 0
	for _, key := range config.keys() {
		if len(validation.IsConfigMapKey(key)) > 0 {
			r.add(config.key(key), TypeInvalid, "%q can be no key of a ConfigMap: at most 253 letters, digits, '-', '_' and '.', not beginning with two dots", key)
		}
		size += len(config.at(key).text())
	}
	if size > mostConfigBytes {
		r.add(config, TypeTooLong, "has values of %d bytes, but a ConfigMap has room for %d", size, mostConfigBytes)
	}
}

const mostConfigBytes = 1 << 20

// internalVersion matches the version of a program's internal form of an object.
var internalVersion = regexp.MustCompile(`^([^/]*/)?__internal$`)

// shootConfigVersions checks the versions of configurations for extensions.
func shootConfigVersions(r *report, s shoot) {
	provider := s.spec.at("provider")
	configs := []tree{provider.at("infrastructureConfig"), provider.at("controlPlaneConfig"), s.spec.at("networking", "providerConfig")}
	for _, worker := range s.workers {
		configs = append(configs, worker.at("providerConfig"), worker.at("machine", "image", "providerConfig"))
		for _, runtime := range worker.at("cri", "containerRuntimes").items() {
			configs = append(configs, runtime.at("providerConfig"))
		}
	}
	for _, config := range configs {
		if version := config.at("apiVersion").text(); internalVersion.MatchString(version) {
			r.add(config, TypeInvalid, "has the apiVersion %q, which stands for no written form; use one such as v1alpha1", version)
		}
	}
}
