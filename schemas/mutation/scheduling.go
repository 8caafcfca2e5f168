package mutation

import (
	"fmt"
	"maps"
	"slices"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// tolerations adds the Project's tolerations whose key the Shoot lacks. Source:
// plugin/pkg/shoot/tolerationrestriction.
func (m *shootMutator) tolerations() {
	project := m.project(m.shoot.Namespace)
	if project == nil || project.Spec.Tolerations == nil {
		return
	}
	m.id = shootTolerations
	for _, toleration := range project.Spec.Tolerations.Defaults {
		if !tolerates(m.shoot, toleration.Key) {
			m.tolerate(toleration, "Project "+project.Name+" has it for all its Shoots")
		}
	}
}

func tolerates(shoot *gardencorev1beta1.Shoot, key string) bool {
	return slices.ContainsFunc(shoot.Spec.Tolerations, func(t gardencorev1beta1.Toleration) bool { return t.Key == key })
}

func (m *shootMutator) tolerate(toleration gardencorev1beta1.Toleration, reason string) {
	m.filled(fmt.Sprintf("spec.tolerations[%d]", len(m.shoot.Spec.Tolerations)), toleration, "%s", reason)
	m.shoot.Spec.Tolerations = append(m.shoot.Spec.Tolerations, *toleration.DeepCopy())
}

// exposureClass merges the scheduling of the class into the Shoot's. A conflicting Shoot is
// unchanged: the rule shoot/exposure-class-scheduling rejects it. Source:
// plugin/pkg/shoot/exposureclass.
func (m *shootMutator) exposureClass() {
	if m.shoot.Spec.ExposureClassName == nil {
		return
	}
	class := m.Surroundings.exposureClass(*m.shoot.Spec.ExposureClassName)
	if class == nil || class.Scheduling == nil || m.conflicts(class.Scheduling) {
		return
	}
	m.id = shootExposureClass
	reason := "asked for by ExposureClass " + class.Name
	for _, toleration := range class.Scheduling.Tolerations {
		m.tolerate(toleration, reason)
	}
	wanted := class.Scheduling.SeedSelector
	if wanted == nil {
		return
	}
	if m.shoot.Spec.SeedSelector == nil {
		m.shoot.Spec.SeedSelector = &gardencorev1beta1.SeedSelector{}
	}
	own := m.shoot.Spec.SeedSelector
	for _, key := range slices.Sorted(maps.Keys(wanted.MatchLabels)) {
		if _, there := own.MatchLabels[key]; there {
			continue
		}
		if own.MatchLabels == nil {
			own.MatchLabels = map[string]string{}
		}
		own.MatchLabels[key] = wanted.MatchLabels[key]
		m.filled("spec.seedSelector.matchLabels["+key+"]", wanted.MatchLabels[key], "%s", reason)
	}
	for _, expression := range wanted.MatchExpressions {
		m.filled(fmt.Sprintf("spec.seedSelector.matchExpressions[%d]", len(own.MatchExpressions)), expression, "%s", reason)
		own.MatchExpressions = append(own.MatchExpressions, *expression.DeepCopy())
	}
	types := slices.Compact(slices.Sorted(slices.Values(slices.Concat(own.ProviderTypes, wanted.ProviderTypes))))
	if len(types) > 0 && !slices.Equal(types, own.ProviderTypes) {
		own.ProviderTypes = types
		m.filled("spec.seedSelector.providerTypes", types, "%s", reason)
	}
}

func (m *shootMutator) conflicts(scheduling *gardencorev1beta1.ExposureClassScheduling) bool {
	for _, toleration := range scheduling.Tolerations {
		if tolerates(m.shoot, toleration.Key) {
			return true
		}
	}
	if scheduling.SeedSelector == nil || m.shoot.Spec.SeedSelector == nil {
		return false
	}
	for key, value := range scheduling.SeedSelector.MatchLabels {
		if own, there := m.shoot.Spec.SeedSelector.MatchLabels[key]; there && own != value {
			return true
		}
	}
	return false
}
