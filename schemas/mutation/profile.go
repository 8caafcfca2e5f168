package mutation

import (
	"slices"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// profile is the cloud profile of a Shoot.
type profile struct {
	spec gardencorev1beta1.CloudProfileSpec
	// place is its name in reasons.
	place string
}

// profileOf returns the cloud profile of a Shoot; nil if it is not named or does not exist.
func (s *Surroundings) profileOf(shoot *gardencorev1beta1.Shoot) *profile {
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

func (s *Surroundings) readProfile(id identity) *profile {
	object := s.around.Get(id.kind, id.namespace, id.name)
	place := id.kind.Kind + " " + id.name
	full := read[gardencorev1beta1.CloudProfile](object)
	if id.kind == kindNamespacedCloudProfile {
		own := read[gardencorev1beta1.NamespacedCloudProfile](object)
		if own == nil {
			return nil
		}
		place = id.kind.Kind + " " + id.namespace + "/" + id.name
		parent := read[gardencorev1beta1.CloudProfile](s.around.Get(kindCloudProfile, "", own.Spec.Parent.Name))
		if parent == nil {
			return nil
		}
		full = gardencorev1beta1.CombineCloudProfiles(parent, own)
	}
	if full == nil {
		return nil
	}
	gardencorev1beta1.SetDefaults_CloudProfile(full)
	return &profile{spec: full.Spec, place: place}
}

func (p *profile) machineType(name string) *gardencorev1beta1.MachineType {
	for i := range p.spec.MachineTypes {
		if p.spec.MachineTypes[i].Name == name {
			return &p.spec.MachineTypes[i]
		}
	}
	return nil
}

const architecture = "architecture"

// architectureOf returns the only architecture of a machine type, "" for none or several. Source:
// pkg/apis/core/v1beta1 (MachineType.GetArchitecture).
func (p *profile) architectureOf(machine *gardencorev1beta1.MachineType) string {
	values := machine.Capabilities[architecture]
	if len(values) == 0 {
		values = p.capability(architecture)
	}
	switch {
	case len(values) == 1:
		return values[0]
	case machine.Architecture != nil:
		return *machine.Architecture
	}
	return ""
}

// capability returns all values of a capability.
func (p *profile) capability(name string) []string {
	for _, definition := range p.spec.MachineCapabilities {
		if definition.Name == name {
			return definition.Values
		}
	}
	return nil
}

// runsOn reports whether an image version exists for an architecture. Without flavors it supports
// all of the profile. Source: pkg/api/core/v1beta1/helper (ArchitectureSupportedByImageVersion).
func (p *profile) runsOn(version *gardencorev1beta1.MachineImageVersion, wanted string) bool {
	var known []string
	for _, flavor := range version.CapabilityFlavors {
		known = append(known, flavor[architecture]...)
	}
	if len(version.CapabilityFlavors) == 0 {
		known = p.capability(architecture)
	}
	if len(known) == 0 {
		known = version.Architectures
	}
	return slices.Contains(known, wanted)
}

// fits reports whether a flavor of an image version has the capabilities of a machine type. Omitted
// capabilities have all values of the profile. Source: pkg/api/core/v1beta1/helper
// (AreCapabilitiesSupportedByImageFlavors).
func (p *profile) fits(machine *gardencorev1beta1.MachineType, version *gardencorev1beta1.MachineImageVersion) bool {
	if len(version.CapabilityFlavors) == 0 {
		return true
	}
	return slices.ContainsFunc(version.CapabilityFlavors, func(flavor gardencorev1beta1.MachineImageFlavor) bool {
		for _, definition := range p.spec.MachineCapabilities {
			if !overlap(orAll(flavor, definition), orAll(machine.Capabilities, definition)) {
				return false
			}
		}
		return true
	})
}

func orAll(capabilities gardencorev1beta1.Capabilities, definition gardencorev1beta1.CapabilityDefinition) []string {
	if values := capabilities[definition.Name]; len(values) > 0 {
		return values
	}
	return definition.Values
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(value string) bool { return slices.Contains(b, value) })
}
