package across

import (
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
)

// profile indexes the offers of a CloudProfile by name.
type profile struct {
	spec    gardencorev1beta1.CloudProfileSpec
	place   string
	regions map[string]*gardencorev1beta1.Region
	types   map[string]*gardencorev1beta1.MachineType
	images  map[string]*gardencorev1beta1.MachineImage
	volumes map[string]*gardencorev1beta1.VolumeType
}

// profileField returns the cloud profile of a Shoot and its field. The schemas report an empty
// name.
func profileField(shoot map[string]any, namespace string) (id identity, field string) {
	if reference := table(shoot, "spec", "cloudProfile"); reference != nil {
		if text(reference, "kind") == kindNamespacedProfile.Kind {
			return identity{kindNamespacedProfile, namespace, text(reference, "name")}, "spec.cloudProfile.name"
		}
		return identity{kindCloudProfile, "", text(reference, "name")}, "spec.cloudProfile.name"
	}
	return identity{kindCloudProfile, "", text(shoot, "spec", "cloudProfileName")}, "spec.cloudProfileName"
}

// profileOf returns the profile of the current Shoot; nil if it is undeclared or broken.
func (c *check) profileOf() *profile {
	id, _ := profileField(c.object(), c.namespace())
	c.ask(question{aboutProfile, id})
	return c.profile(id)
}

// profile reads a profile once.
func (c *check) profile(id identity) *profile {
	known, asked := c.profiles[id]
	if !asked {
		known = c.readProfile(id)
		c.profiles[id] = known
	}
	return known
}

// parentOf returns the parent CloudProfile of a NamespacedCloudProfile.
func parentOf(in *schemas.Input) identity {
	return identity{kind: kindCloudProfile, name: text(in.Content().Object, "spec", "parent", "name")}
}

func (c *check) readProfile(id identity) *profile {
	in := c.objects[id]
	if in == nil {
		return nil
	}
	if id.kind == kindCloudProfile {
		full := &gardencorev1beta1.CloudProfile{}
		if !typed(in.Content(), full) {
			return nil
		}
		return newProfile(full, in)
	}
	own, parent := &gardencorev1beta1.NamespacedCloudProfile{}, &gardencorev1beta1.CloudProfile{}
	if !typed(in.Content(), own) {
		return nil
	}
	above := c.objects[parentOf(in)]
	if above == nil || !typed(above.Content(), parent) {
		return nil
	}
	return newProfile(gardencorev1beta1.CombineCloudProfiles(parent, own), in)
}

func newProfile(full *gardencorev1beta1.CloudProfile, in *schemas.Input) *profile {
	gardencorev1beta1.SetDefaults_CloudProfile(full)
	p := &profile{
		spec: full.Spec, place: place(in),
		regions: map[string]*gardencorev1beta1.Region{}, types: map[string]*gardencorev1beta1.MachineType{},
		images: map[string]*gardencorev1beta1.MachineImage{}, volumes: map[string]*gardencorev1beta1.VolumeType{},
	}
	for i := range p.spec.Regions {
		p.regions[p.spec.Regions[i].Name] = &p.spec.Regions[i]
	}
	for i := range p.spec.MachineTypes {
		p.types[p.spec.MachineTypes[i].Name] = &p.spec.MachineTypes[i]
	}
	for i := range p.spec.MachineImages {
		p.images[p.spec.MachineImages[i].Name] = &p.spec.MachineImages[i]
	}
	for i := range p.spec.VolumeTypes {
		p.volumes[p.spec.VolumeTypes[i].Name] = &p.spec.VolumeTypes[i]
	}
	return p
}

// architecture is a capability. Without it and the older field, machines are amd64.
const architecture, amd64 = "architecture", "amd64"

func typeArchitecture(t *gardencorev1beta1.MachineType) string {
	if values := t.Capabilities[architecture]; len(values) > 0 {
		return values[0]
	}
	if t.Architecture != nil && *t.Architecture != "" {
		return *t.Architecture
	}
	return amd64
}

// runs reports whether an image version exists for an architecture.
func runs(v gardencorev1beta1.MachineImageVersion, arch string) bool {
	for _, flavor := range v.CapabilityFlavors {
		if slices.Contains(flavor[architecture], arch) || len(flavor[architecture]) == 0 {
			return true
		}
	}
	if len(v.CapabilityFlavors) > 0 {
		return false
	}
	return slices.Contains(v.Architectures, arch) || len(v.Architectures) == 0 && arch == amd64
}

// shortened reports whether written is full or a prefix of it, such as 1.34 of 1.34.2.
func shortened(written, full string) bool {
	written, full = strings.TrimPrefix(written, "v"), strings.TrimPrefix(full, "v")
	return written == full || strings.HasPrefix(full, written+".")
}
