// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
)

// profileOffers indexes the offers of a CloudProfile by name.
type profileOffers struct {
	spec          gardencorev1beta1.CloudProfileSpec
	position      string
	regions       map[string]*gardencorev1beta1.Region
	machineTypes  map[string]*gardencorev1beta1.MachineType
	machineImages map[string]*gardencorev1beta1.MachineImage
	volumeTypes   map[string]*gardencorev1beta1.VolumeType
}

// profileReference returns the cloud profile of a Shoot and its field. The schemas report an empty
// name.
func profileReference(shoot map[string]any, namespace string) (id identity, field string) {
	if reference := mapAt(shoot, "spec", "cloudProfile"); reference != nil {
		if textAt(reference, "kind") == kindNamespacedProfile.Kind {
			return identity{kindNamespacedProfile, namespace, textAt(reference, "name")}, "spec.cloudProfile.name"
		}
		return identity{kindCloudProfile, "", textAt(reference, "name")}, "spec.cloudProfile.name"
	}
	return identity{kindCloudProfile, "", textAt(shoot, "spec", "cloudProfileName")}, "spec.cloudProfileName"
}

// shootProfile returns the profile of the current Shoot, or nil if it is undeclared or broken.
func (c *checker) shootProfile() *profileOffers {
	id, _ := profileReference(c.object(), c.namespace())
	c.recordQuery(landscapeQuery{topicProfile, id})
	return c.loadProfile(id)
}

// loadProfile reads a profile once.
func (c *checker) loadProfile(id identity) *profileOffers {
	known, asked := c.loadedProfiles[id]
	if !asked {
		known = c.readProfile(id)
		c.loadedProfiles[id] = known
	}
	return known
}

// parentProfile returns the parent CloudProfile of a NamespacedCloudProfile.
func parentProfile(in *schemas.Input) identity {
	return identity{kind: kindCloudProfile, name: textAt(in.Content().Object, "spec", "parent", "name")}
}

func (c *checker) readProfile(id identity) *profileOffers {
	in := c.objectsByID[id]
	if in == nil {
		return nil
	}
	if id.kind == kindCloudProfile {
		full := &gardencorev1beta1.CloudProfile{}
		if !toTyped(in.Content(), full) {
			return nil
		}
		return newProfileOffers(full, in)
	}
	own, parent := &gardencorev1beta1.NamespacedCloudProfile{}, &gardencorev1beta1.CloudProfile{}
	if !toTyped(in.Content(), own) {
		return nil
	}
	above := c.objectsByID[parentProfile(in)]
	if above == nil || !toTyped(above.Content(), parent) {
		return nil
	}
	return newProfileOffers(gardencorev1beta1.CombineCloudProfiles(parent, own), in)
}

func newProfileOffers(full *gardencorev1beta1.CloudProfile, in *schemas.Input) *profileOffers {
	gardencorev1beta1.SetDefaults_CloudProfile(full)
	p := &profileOffers{
		spec: full.Spec, position: objectPosition(in),
		regions: map[string]*gardencorev1beta1.Region{}, machineTypes: map[string]*gardencorev1beta1.MachineType{},
		machineImages: map[string]*gardencorev1beta1.MachineImage{}, volumeTypes: map[string]*gardencorev1beta1.VolumeType{},
	}
	for i := range p.spec.Regions {
		p.regions[p.spec.Regions[i].Name] = &p.spec.Regions[i]
	}
	for i := range p.spec.MachineTypes {
		p.machineTypes[p.spec.MachineTypes[i].Name] = &p.spec.MachineTypes[i]
	}
	for i := range p.spec.MachineImages {
		p.machineImages[p.spec.MachineImages[i].Name] = &p.spec.MachineImages[i]
	}
	for i := range p.spec.VolumeTypes {
		p.volumeTypes[p.spec.VolumeTypes[i].Name] = &p.spec.VolumeTypes[i]
	}
	return p
}

// architectureCapability is a capability. Without it and the older field, machines are amd64.
const architectureCapability, amd64 = "architecture", "amd64"

func machineArchitecture(t *gardencorev1beta1.MachineType) string {
	if values := t.Capabilities[architectureCapability]; len(values) > 0 {
		return values[0]
	}
	if t.Architecture != nil && *t.Architecture != "" {
		return *t.Architecture
	}
	return amd64
}

// hasArchitecture reports whether an image version exists for an architecture.
func hasArchitecture(v gardencorev1beta1.MachineImageVersion, arch string) bool {
	for _, flavor := range v.CapabilityFlavors {
		if slices.Contains(flavor[architectureCapability], arch) || len(flavor[architectureCapability]) == 0 {
			return true
		}
	}
	if len(v.CapabilityFlavors) > 0 {
		return false
	}
	return slices.Contains(v.Architectures, arch) || len(v.Architectures) == 0 && arch == amd64
}

// isVersionPrefix reports whether written is full or a prefix of it, such as 1.34 of 1.34.2.
func isVersionPrefix(written, full string) bool {
	written, full = strings.TrimPrefix(written, "v"), strings.TrimPrefix(full, "v")
	return written == full || strings.HasPrefix(full, written+".")
}
