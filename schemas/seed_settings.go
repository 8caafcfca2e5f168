// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkSeedAmounts(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	r.checkResourceAmount(spec.lookup("volume", "minimumSize"), "storage")
	r.checkAutoscalerMaximum(spec.lookup("settings", "verticalPodAutoscaler", "maxAllowed"))
	for _, config := range spec.lookup("settings", "excessCapacityReservation", "configs").items() {
		resources := config.lookup("resources")
		for _, name := range resources.keys() {
			r.checkResourceAmount(resources.lookup(name), name)
		}
	}
	return r.findings
}

func checkSeedVPAFeatureGates(in ruleInput) []finding {
	r := &findingCollector{}
	r.checkVPAFeatureGates(fieldValue{value: in.object}.lookup("spec", "settings", "verticalPodAutoscaler", "featureGates"))
	return r.findings
}

func checkSeedAnnotations(in ruleInput) []finding {
	r, services := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "settings", "loadBalancerServices")
	for _, parent := range append(services.lookup("zones").items(), services) {
		values := map[string]string{}
		for _, key := range parent.lookup("annotations").keys() {
			values[key] = parent.lookup("annotations").entry(key).text()
		}
		r.addFieldErrors(apivalidation.ValidateAnnotations(values, field.NewPath(parent.lookup("annotations").path)))
	}
	return r.findings
}

func checkSeedTolerations(in ruleInput) []finding {
	r := &findingCollector{}
	for _, config := range (fieldValue{value: in.object}).lookup("spec", "settings", "excessCapacityReservation", "configs").items() {
		for _, toleration := range config.lookup("tolerations").items() {
			r.checkToleration(toleration)
		}
	}
	return r.findings
}

// checkToleration checks a toleration of a pod, as the API server does.
func (r *findingCollector) checkToleration(t fieldValue) {
	key, operator, value, effect := t.lookup("key"), t.lookup("operator"), t.lookup("value"), t.lookup("effect")
	if key.text() != "" && len(utilvalidation.IsQualifiedName(key.text())) > 0 {
		r.add(key, TypeInvalid, "%q %s", key.text(), qualifiedNameMessage)
	}
	exists := string(corev1.TolerationOpExists)
	if key.text() == "" && operator.text() != exists {
		r.add(operator, TypeInvalid, "must be %s, because without a key all taints are tolerated", exists)
	}
	if t.lookup("tolerationSeconds").isSet() && effect.text() != string(corev1.TaintEffectNoExecute) {
		r.add(effect, TypeInvalid, "must be %s, because tolerationSeconds is set", corev1.TaintEffectNoExecute)
	}
	switch operator.text() {
	case "", string(corev1.TolerationOpEqual):
		if len(utilvalidation.IsValidLabelValue(value.text())) > 0 {
			r.add(operator, TypeInvalid, "the value %q %s", value.text(), labelValueMessage)
		}
	case exists:
		if value.text() != "" {
			r.add(operator, TypeInvalid, "is %s, so that value must be empty", exists)
		}
	default:
		r.requireOneOf(operator, string(corev1.TolerationOpEqual), exists)
	}
	if effect.text() != "" {
		r.requireOneOf(effect, string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute))
	}
}
