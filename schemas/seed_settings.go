package schemas

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func seedAmounts(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	r.amount(spec.at("volume", "minimumSize"), "storage")
	r.autoscalerMaximum(spec.at("settings", "verticalPodAutoscaler", "maxAllowed"))
	for _, config := range spec.at("settings", "excessCapacityReservation", "configs").items() {
		resources := config.at("resources")
		for _, name := range resources.keys() {
			r.amount(resources.at(name), name)
		}
	}
	return r.findings
}

func seedVPAFeatureGates(in ruleInput) []finding {
	r := &report{}
	r.vpaFeatureGates(tree{value: in.object}.at("spec", "settings", "verticalPodAutoscaler", "featureGates"))
	return r.findings
}

func seedAnnotations(in ruleInput) []finding {
	r, services := &report{}, tree{value: in.object}.at("spec", "settings", "loadBalancerServices")
	for _, parent := range append(services.at("zones").items(), services) {
		values := map[string]string{}
		for _, key := range parent.at("annotations").keys() {
			values[key] = parent.at("annotations").key(key).text()
		}
		r.apiErrors(apivalidation.ValidateAnnotations(values, field.NewPath(parent.at("annotations").path)))
	}
	return r.findings
}

func seedTolerations(in ruleInput) []finding {
	r := &report{}
	for _, config := range (tree{value: in.object}).at("spec", "settings", "excessCapacityReservation", "configs").items() {
		for _, toleration := range config.at("tolerations").items() {
			r.toleration(toleration)
		}
	}
	return r.findings
}

// toleration checks a toleration of a pod, as the API server does.
func (r *report) toleration(t tree) {
	key, operator, value, effect := t.at("key"), t.at("operator"), t.at("value"), t.at("effect")
	if key.text() != "" && len(utilvalidation.IsQualifiedName(key.text())) > 0 {
		r.add(key, TypeInvalid, "%q %s", key.text(), qualifiedWords)
	}
	exists := string(corev1.TolerationOpExists)
	if key.text() == "" && operator.text() != exists {
		r.add(operator, TypeInvalid, "must be %s, because without a key all taints are tolerated", exists)
	}
	if t.at("tolerationSeconds").set() && effect.text() != string(corev1.TaintEffectNoExecute) {
		r.add(effect, TypeInvalid, "must be %s, because tolerationSeconds is set", corev1.TaintEffectNoExecute)
	}
	switch operator.text() {
	case "", string(corev1.TolerationOpEqual):
		if len(utilvalidation.IsValidLabelValue(value.text())) > 0 {
			r.add(operator, TypeInvalid, "the value %q %s", value.text(), labelValueWords)
		}
	case exists:
		if value.text() != "" {
			r.add(operator, TypeInvalid, "is %s, so that value must be empty", exists)
		}
	default:
		r.oneOf(operator, string(corev1.TolerationOpEqual), exists)
	}
	if effect.text() != "" {
		r.oneOf(effect, string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute))
	}
}
