// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"maps"
	"slices"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// addProjectTolerations adds the Project's tolerations whose key the Shoot lacks. Source:
// plugin/pkg/shoot/tolerationrestriction.
func (m *shootMutator) addProjectTolerations() {
	project := m.findProject(m.shoot.Namespace)
	if project == nil || project.Spec.Tolerations == nil {
		return
	}
	m.mutationID = shootTolerations
	for _, toleration := range project.Spec.Tolerations.Defaults {
		if !hasToleration(m.shoot, toleration.Key) {
			m.addToleration(toleration, "Project "+project.Name+" has it for all its Shoots")
		}
	}
}

func hasToleration(shoot *gardencorev1beta1.Shoot, key string) bool {
	return slices.ContainsFunc(shoot.Spec.Tolerations, func(t gardencorev1beta1.Toleration) bool { return t.Key == key })
}

func (m *shootMutator) addToleration(toleration gardencorev1beta1.Toleration, reason string) {
	m.recordChange(fmt.Sprintf("spec.tolerations[%d]", len(m.shoot.Spec.Tolerations)), toleration, "%s", reason)
	m.shoot.Spec.Tolerations = append(m.shoot.Spec.Tolerations, *toleration.DeepCopy())
}

// addExposureClass merges the scheduling of the class into the Shoot's. A conflicting Shoot is
// unchanged: the rule shoot/exposure-class-scheduling rejects it. Source:
// plugin/pkg/shoot/exposureclass.
func (m *shootMutator) addExposureClass() {
	if m.shoot.Spec.ExposureClassName == nil {
		return
	}
	class := m.Mutator.findExposureClass(*m.shoot.Spec.ExposureClassName)
	if class == nil || class.Scheduling == nil || m.hasConflict(class.Scheduling) {
		return
	}
	m.mutationID = shootExposureClass
	reason := "asked for by ExposureClass " + class.Name
	for _, toleration := range class.Scheduling.Tolerations {
		m.addToleration(toleration, reason)
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
		m.recordChange("spec.seedSelector.matchLabels["+key+"]", wanted.MatchLabels[key], "%s", reason)
	}
	for _, expression := range wanted.MatchExpressions {
		m.recordChange(fmt.Sprintf("spec.seedSelector.matchExpressions[%d]", len(own.MatchExpressions)), expression, "%s", reason)
		own.MatchExpressions = append(own.MatchExpressions, *expression.DeepCopy())
	}
	types := slices.Compact(slices.Sorted(slices.Values(slices.Concat(own.ProviderTypes, wanted.ProviderTypes))))
	if len(types) > 0 && !slices.Equal(types, own.ProviderTypes) {
		own.ProviderTypes = types
		m.recordChange("spec.seedSelector.providerTypes", types, "%s", reason)
	}
}

func (m *shootMutator) hasConflict(scheduling *gardencorev1beta1.ExposureClassScheduling) bool {
	for _, toleration := range scheduling.Tolerations {
		if hasToleration(m.shoot, toleration.Key) {
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
