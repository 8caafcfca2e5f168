// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"slices"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// shootProfileSpec is the cloud profile of a Shoot.
type shootProfileSpec struct {
	spec gardencorev1beta1.CloudProfileSpec
	// displayName is its name in reasons.
	displayName string
}

// profileOf returns the cloud profile of a Shoot, or nil if it is not named or does not exist.
func (s *Mutator) profileOf(shoot *gardencorev1beta1.Shoot) *shootProfileSpec {
	id := identity{kind: kindCloudProfile}
	switch reference := shoot.Spec.CloudProfile; {
	case reference != nil && reference.Kind == kindNamespacedCloudProfile.Kind:
		id = identity{kindNamespacedCloudProfile, shoot.Namespace, reference.Name}
	case reference != nil:
		id.name = reference.Name
	case shoot.Spec.CloudProfileName != nil:
		id.name = *shoot.Spec.CloudProfileName
	}
	if id.name == "" {
		return nil
	}
	known, asked := s.profiles[id]
	if !asked {
		known = s.readProfile(id)
		s.profiles[id] = known
	}
	return known
}

func (s *Mutator) readProfile(id identity) *shootProfileSpec {
	object := s.lister.Get(id.kind, id.namespace, id.name)
	place := id.kind.Kind + " " + id.name
	full := toTyped[gardencorev1beta1.CloudProfile](object)
	if id.kind == kindNamespacedCloudProfile {
		own := toTyped[gardencorev1beta1.NamespacedCloudProfile](object)
		if own == nil {
			return nil
		}
		place = id.kind.Kind + " " + id.namespace + "/" + id.name
		parent := toTyped[gardencorev1beta1.CloudProfile](s.lister.Get(kindCloudProfile, "", own.Spec.Parent.Name))
		if parent == nil {
			return nil
		}
		full = gardencorev1beta1.CombineCloudProfiles(parent, own)
	}
	if full == nil {
		return nil
	}
	gardencorev1beta1.SetDefaults_CloudProfile(full)
	return &shootProfileSpec{spec: full.Spec, displayName: place}
}

func (p *shootProfileSpec) machineType(name string) *gardencorev1beta1.MachineType {
	for i := range p.spec.MachineTypes {
		if p.spec.MachineTypes[i].Name == name {
			return &p.spec.MachineTypes[i]
		}
	}
	return nil
}

const architectureCapability = "architecture"

// singleArchitecture returns the only architecture of a machine type, or "" for none or several.
// Source: pkg/apis/core/v1beta1 (MachineType.GetArchitecture).
func (p *shootProfileSpec) singleArchitecture(machine *gardencorev1beta1.MachineType) string {
	values := machine.Capabilities[architectureCapability]
	if len(values) == 0 {
		values = p.definedValues(architectureCapability)
	}
	switch {
	case len(values) == 1:
		return values[0]
	case machine.Architecture != nil:
		return *machine.Architecture
	}
	return ""
}

// definedValues returns all values of a capability.
func (p *shootProfileSpec) definedValues(name string) []string {
	for _, definition := range p.spec.MachineCapabilities {
		if definition.Name == name {
			return definition.Values
		}
	}
	return nil
}

// hasArchitecture reports whether an image version exists for an architecture. Without flavors it
// supports all of the profile. Source: pkg/api/core/v1beta1/helper
// (ArchitectureSupportedByImageVersion).
func (p *shootProfileSpec) hasArchitecture(version *gardencorev1beta1.MachineImageVersion, wanted string) bool {
	var known []string
	for _, flavor := range version.CapabilityFlavors {
		known = append(known, flavor[architectureCapability]...)
	}
	if len(version.CapabilityFlavors) == 0 {
		known = p.definedValues(architectureCapability)
	}
	if len(known) == 0 {
		known = version.Architectures
	}
	return slices.Contains(known, wanted)
}

// hasCapabilities reports whether a flavor of an image version has the capabilities of a machine
// type. Omitted capabilities have all values of the profile. Source: pkg/api/core/v1beta1/helper
// (AreCapabilitiesSupportedByImageFlavors).
func (p *shootProfileSpec) hasCapabilities(machine *gardencorev1beta1.MachineType, version *gardencorev1beta1.MachineImageVersion) bool {
	if len(version.CapabilityFlavors) == 0 {
		return true
	}
	return slices.ContainsFunc(version.CapabilityFlavors, func(flavor gardencorev1beta1.MachineImageFlavor) bool {
		for _, definition := range p.spec.MachineCapabilities {
			if !hasCommonValue(capabilityValues(flavor, definition), capabilityValues(machine.Capabilities, definition)) {
				return false
			}
		}
		return true
	})
}

func capabilityValues(capabilities gardencorev1beta1.Capabilities, definition gardencorev1beta1.CapabilityDefinition) []string {
	if values := capabilities[definition.Name]; len(values) > 0 {
		return values
	}
	return definition.Values
}

func hasCommonValue(a, b []string) bool {
	return slices.ContainsFunc(a, func(value string) bool { return slices.Contains(b, value) })
}
