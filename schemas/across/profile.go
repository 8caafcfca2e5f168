package across

import (
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
)

// profile is what a CloudProfile offers, by name.
type profile struct {
	spec    gardencorev1beta1.CloudProfileSpec
	place   string
	regions map[string]*gardencorev1beta1.Region
	types   map[string]*gardencorev1beta1.MachineType
	images  map[string]*gardencorev1beta1.MachineImage
	volumes map[string]*gardencorev1beta1.VolumeType
}

// profileField names the cloud profile of a Shoot; an empty name is the matter of the schemas.
func profileField(shoot map[string]any, namespace string) (id identity, field string) {
	if reference := table(shoot, "spec", "cloudProfile"); reference != nil {
		if text(reference, "kind") == kindNamespacedProfile.Kind {
			return identity{kindNamespacedProfile, namespace, text(reference, "name")}, "spec.cloudProfile.name"
		}
		return identity{kindCloudProfile, "", text(reference, "name")}, "spec.cloudProfile.name"
	}
	return identity{kindCloudProfile, "", text(shoot, "spec", "cloudProfileName")}, "spec.cloudProfileName"
}

// profileOf gives the profile of the Shoot that is looked at, nil when it is not in the landscape,
// or broken.
func (c *check) profileOf() *profile {
	id, _ := profileField(c.object(), c.namespace())
	c.ask(question{aboutProfile, id})
	return c.profile(id)
}

// profile reads a profile, once.
func (c *check) profile(id identity) *profile {
	known, asked := c.profiles[id]
	if !asked {
		known = c.readProfile(id)
		c.profiles[id] = known
	}
	return known
}

// parentOf is the CloudProfile that a NamespacedCloudProfile builds on.
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

// architecture is the processor that capabilities or the older field name; both empty is amd64.
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

// runs says whether an image version exists for an architecture.
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

// shortened says whether a version is the beginning of a full one, as 1.34 of 1.34.2, or all of it.
func shortened(written, full string) bool {
	written, full = strings.TrimPrefix(written, "v"), strings.TrimPrefix(full, "v")
	return written == full || strings.HasPrefix(full, written+".")
}
