// SPDX-License-Identifier: Apache-2.0

package v1beta1

// SetDefaults_CloudProfile sets the defaults of a CloudProfile. It sets no architectures if the
// profile defines capabilities, which define the architectures then.
func SetDefaults_CloudProfile(profile *CloudProfile) {
	withCapabilities := len(profile.Spec.MachineCapabilities) > 0
	for i := range profile.Spec.MachineImages {
		image := &profile.Spec.MachineImages[i]
		setDefault(&image.UpdateStrategy, UpdateStrategyMajor)
		for j := range image.Versions {
			version := &image.Versions[j]
			if len(version.CRI) == 0 {
				version.CRI = []CRI{{Name: CRINameContainerD}}
			}
			if len(version.Architectures) == 0 && !withCapabilities {
				version.Architectures = []string{ArchitectureAMD64}
			}
		}
	}
	for i := range profile.Spec.MachineTypes {
		machineType := &profile.Spec.MachineTypes[i]
		setDefault(&machineType.Usable, true)
		if !withCapabilities {
			setDefault(&machineType.Architecture, ArchitectureAMD64)
		}
	}
	for i := range profile.Spec.VolumeTypes {
		setDefault(&profile.Spec.VolumeTypes[i].Usable, true)
	}
}

// SetDefaults_NamespacedCloudProfile sets the defaults of a NamespacedCloudProfile that do not
// depend on its parent. Defaults of machine images are set where they are combined with the
// parent's: its capabilities may forbid architectures.
func SetDefaults_NamespacedCloudProfile(profile *NamespacedCloudProfile) {
	for i := range profile.Spec.MachineTypes {
		setDefault(&profile.Spec.MachineTypes[i].Usable, true)
	}
	for i := range profile.Spec.VolumeTypes {
		setDefault(&profile.Spec.VolumeTypes[i].Usable, true)
	}
}
