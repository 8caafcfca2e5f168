package v1beta1

// SetDefaults_CloudProfile fills in what a CloudProfile leaves open. Where the profile defines capabilities, these say which
// architectures there are, and none is filled in.
func SetDefaults_CloudProfile(profile *CloudProfile) {
	withCapabilities := len(profile.Spec.MachineCapabilities) > 0
	for i := range profile.Spec.MachineImages {
		image := &profile.Spec.MachineImages[i]
		orDefault(&image.UpdateStrategy, UpdateStrategyMajor)
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
		orDefault(&machineType.Usable, true)
		if !withCapabilities {
			orDefault(&machineType.Architecture, ArchitectureAMD64)
		}
	}
	for i := range profile.Spec.VolumeTypes {
		orDefault(&profile.Spec.VolumeTypes[i].Usable, true)
	}
}

// SetDefaults_NamespacedCloudProfile fills in what a NamespacedCloudProfile leaves open and its parent has no say in. What
// machine images leave open is filled in where they are combined with those of the parent: its capabilities may forbid
// architectures.
func SetDefaults_NamespacedCloudProfile(profile *NamespacedCloudProfile) {
	for i := range profile.Spec.MachineTypes {
		orDefault(&profile.Spec.MachineTypes[i].Usable, true)
	}
	for i := range profile.Spec.VolumeTypes {
		orDefault(&profile.Spec.VolumeTypes[i].Usable, true)
	}
}
