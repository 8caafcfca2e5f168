// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
)

// Cloud profiles must retain whatever other objects use. Source:
// plugin/pkg/global/resourcereferencemanager. Upstream permits the removal of machine and volume
// types. Users count as declared in Git; changes by maintenance in the cluster are unknown here.

// describeUsers lists the first objects for a message, with their positions.
func describeUsers(of []*schemas.Input) string {
	const most = 3
	var names []string
	for _, in := range of[:min(most, len(of))] {
		names = append(names, objectPosition(in))
	}
	if more := len(of) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}

// profileKubernetesVersions returns the Kubernetes versions of a cloud profile.
func profileKubernetesVersions(profile map[string]any) map[string]bool {
	out := map[string]bool{}
	visitValues(profile, "spec.kubernetes.versions[].version", func(_ string, v any) {
		if version, ok := v.(string); ok {
			out[version] = true
		}
	})
	return out
}

// profileImageVersions returns the machine images of a cloud profile and their versions.
func profileImageVersions(profile map[string]any) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, item := range listAt(profile, "spec", "machineImages") {
		image, _ := item.(map[string]any)
		versions := map[string]bool{}
		visitValues(image, "versions[].version", func(_ string, v any) {
			if version, ok := v.(string); ok {
				versions[version] = true
			}
		})
		out[textAt(image, "name")] = versions
	}
	return out
}

// removedKeys returns the sorted keys that are in before but not in now.
func removedKeys[V, W any](before map[string]V, now map[string]W) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(name string) bool {
		_, still := now[name]
		return still
	})
}

// dependentProfiles returns the NamespacedCloudProfiles whose parent is the current CloudProfile.
func (c *checker) dependentProfiles() []*schemas.Input {
	return slices.DeleteFunc(slices.Clone(c.allOfKind(kindNamespacedProfile)), func(in *schemas.Input) bool {
		parent := mapAt(in.Content().Object, "spec", "parent")
		return in.Content().GetDeletionTimestamp() != nil || textAt(parent, "name") != c.name() || textAt(parent, "kind") != kindCloudProfile.Kind
	})
}

// shootsOfProfiles returns the Shoots that use the current profile or one of its dependents.
func (c *checker) shootsOfProfiles(dependents []*schemas.Input) []*schemas.Input {
	profiles := map[identity]bool{identityOf(c.input): true}
	for _, in := range dependents {
		profiles[identityOf(in)] = true
	}
	return slices.DeleteFunc(slices.Clone(c.allOfKind(kindShoot)), func(in *schemas.Input) bool {
		id, _ := profileReference(in.Content().Object, identityOf(in).namespace)
		return in.Content().GetDeletionTimestamp() != nil || !profiles[id]
	})
}

// filterInputs returns the inputs that satisfy a predicate.
func filterInputs(inputs []*schemas.Input, is func(object map[string]any) bool) []*schemas.Input {
	return slices.DeleteFunc(slices.Clone(inputs), func(in *schemas.Input) bool { return !is(in.Content().Object) })
}

// hasKubernetesVersion reports whether a Shoot's control plane has the version. Worker pools have
// the same or an older one.
func hasKubernetesVersion(version string) func(map[string]any) bool {
	return func(shoot map[string]any) bool { return textAt(shoot, "spec", "kubernetes", "version") == version }
}

func hasImageVersion(name, version string) func(map[string]any) bool {
	return func(shoot map[string]any) bool {
		return slices.ContainsFunc(listAt(shoot, "spec", "provider", "workers"), func(item any) bool {
			worker, _ := item.(map[string]any)
			return textAt(worker, "machine", "image", "name") == name && textAt(worker, "machine", "image", "version") == version
		})
	}
}

// checkVersionsInUse checks that a CloudProfile retains Kubernetes versions in use.
func (c *checker) checkVersionsInUse() {
	lost := removedKeys(profileKubernetesVersions(c.oldObject()), profileKubernetesVersions(c.object()))
	if len(lost) == 0 {
		return
	}
	dependents := c.dependentProfiles()
	shoots := c.shootsOfProfiles(dependents)
	for _, version := range lost {
		using := slices.Concat(
			filterInputs(shoots, hasKubernetesVersion(version)),
			filterInputs(dependents, func(profile map[string]any) bool { return profileKubernetesVersions(profile)[version] }),
		)
		if len(using) > 0 {
			c.report("spec.kubernetes.versions", schemas.TypeForbidden, "lost the Kubernetes version %q, which is used by %s", version, describeUsers(using))
		}
	}
}

// checkImagesInUse checks that a CloudProfile retains machine images and versions in use, and adds
// no image that a dependent profile defines.
func (c *checker) checkImagesInUse() {
	if !c.input.HasOld() {
		return
	}
	before, now := profileImageVersions(c.oldObject()), profileImageVersions(c.object())
	var dependents, shoots []*schemas.Input
	asked := false
	look := func() { // dependents are queried only for a removed or new image
		if !asked {
			asked, dependents = true, c.dependentProfiles()
			shoots = c.shootsOfProfiles(dependents)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		for _, version := range removedKeys(before[name], now[name]) {
			look()
			using := slices.Concat(
				filterInputs(shoots, hasImageVersion(name, version)),
				filterInputs(dependents, func(profile map[string]any) bool { return profileImageVersions(profile)[name][version] }),
			)
			if len(using) > 0 {
				c.report(c.imageField(name), schemas.TypeForbidden, "lost version %q of machine image %q, which is used by %s", version, name, describeUsers(using))
			}
		}
	}
	has := func(name string) []*schemas.Input {
		look()
		return filterInputs(dependents, func(profile map[string]any) bool { return profileImageVersions(profile)[name] != nil })
	}
	for _, name := range removedKeys(before, now) {
		if using := has(name); len(using) > 0 {
			c.report("spec.machineImages", schemas.TypeForbidden, "lost the machine image %q, which is used by %s", name, describeUsers(using))
		}
	}
	for _, name := range removedKeys(now, before) {
		if using := has(name); len(using) > 0 {
			c.report(c.imageField(name), schemas.TypeForbidden, "adds the machine image %q, which is already defined by %s", name, describeUsers(using))
		}
	}
}

// imageField returns the path of a machine image in the current object, or the list's path for a
// removed one.
func (c *checker) imageField(name string) string {
	for i, item := range listAt(c.object(), "spec", "machineImages") {
		if image, _ := item.(map[string]any); textAt(image, "name") == name {
			return fmt.Sprintf("spec.machineImages[%d]", i)
		}
	}
	return "spec.machineImages"
}

// checkCapabilitiesInUse checks that a CloudProfile retains the capability values of dependent
// profiles. If those only use architectures, the CloudProfile may remove its capabilities.
func (c *checker) checkCapabilitiesInUse() {
	lost := removedCapabilities(c.oldObject(), c.object())
	if len(lost) == 0 {
		return
	}
	dependents := c.dependentProfiles()
	more := func(profile map[string]any) bool {
		return len(removedKeys(usedCapabilities(profile), map[string]bool{architectureCapability: true})) > 0
	}
	if len(filterInputs(dependents, more)) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		for _, value := range lost[name] {
			using := filterInputs(dependents, func(profile map[string]any) bool { return usedCapabilities(profile)[name][value] })
			if len(using) > 0 {
				c.report("spec.machineCapabilities", schemas.TypeForbidden, "lost the value %q of the capability %q, which is used by %s", value, name, describeUsers(using))
			}
		}
	}
}

// removedCapabilities returns capability values that are no longer defined.
func removedCapabilities(before, now map[string]any) map[string][]string {
	defined := func(profile map[string]any) map[string]map[string]bool {
		out := map[string]map[string]bool{}
		for _, item := range listAt(profile, "spec", "machineCapabilities") {
			capability, _ := item.(map[string]any)
			values := map[string]bool{}
			for _, value := range stringItems(listAt(capability, "values")) {
				values[value] = true
			}
			out[textAt(capability, "name")] = values
		}
		return out
	}
	kept, out := defined(now), map[string][]string{}
	for name, values := range defined(before) {
		if lost := removedKeys(values, kept[name]); len(lost) > 0 {
			out[name] = lost
		}
	}
	return out
}

// usedCapabilities returns the capabilities and values in a profile's machine types and images.
func usedCapabilities(profile map[string]any) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	note := func(_ string, v any) {
		capabilities, _ := v.(map[string]any)
		for name := range capabilities {
			if out[name] == nil {
				out[name] = map[string]bool{}
			}
			for _, value := range stringItems(listAt(capabilities, name)) {
				out[name][value] = true
			}
		}
	}
	visitValues(profile, "spec.machineTypes[].capabilities", note)
	visitValues(profile, "spec.machineImages[].versions[].capabilityFlavors[]", note)
	return out
}

// checkOverridesInUse checks that a NamespacedCloudProfile retains versions in use that its
// CloudProfile does not offer.
func (c *checker) checkOverridesInUse() {
	versions, before, now := removedKeys(profileKubernetesVersions(c.oldObject()), profileKubernetesVersions(c.object())), profileImageVersions(c.oldObject()), profileImageVersions(c.object())
	images := slices.ContainsFunc(slices.Sorted(maps.Keys(before)), func(name string) bool { return len(removedKeys(before[name], now[name])) > 0 })
	if len(versions) == 0 && !images {
		return
	}
	parent := c.parentSpec()
	if parent == nil {
		return
	}
	shoots := c.shootsOfProfiles(nil)
	for _, version := range versions {
		i := slices.IndexFunc(parent.Kubernetes.Versions, func(v gardencorev1beta1.ExpirableVersion) bool { return v.Version == version })
		if i < 0 || !c.isExpired(parent.Kubernetes.Versions[i]) {
			continue // the parent has no such version, or still offers it
		}
		if using := filterInputs(shoots, hasKubernetesVersion(version)); len(using) > 0 {
			c.report("spec.kubernetes", schemas.TypeForbidden, "lost the Kubernetes version %q, which has expired in the CloudProfile and is used by %s", version, describeUsers(using))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		for _, version := range removedKeys(before[name], now[name]) {
			if c.isImageOffered(parent, name, version) {
				continue
			}
			if using := filterInputs(shoots, hasImageVersion(name, version)); len(using) > 0 {
				c.report(c.imageField(name), schemas.TypeForbidden, "lost version %q of machine image %q, which the CloudProfile does not offer and which is used by %s", version, name, describeUsers(using))
			}
		}
	}
}

// parentSpec returns the parent of the current NamespacedCloudProfile, or nil if it is unknown or
// broken.
func (c *checker) parentSpec() *gardencorev1beta1.CloudProfileSpec {
	in := c.findObject(parentProfile(c.input))
	if in == nil {
		return nil
	}
	parent := &gardencorev1beta1.CloudProfile{}
	if !toTyped(in.Content(), parent) {
		return nil
	}
	return &parent.Spec
}

func (c *checker) isExpired(v gardencorev1beta1.ExpirableVersion) bool {
	class, _ := v.ClassificationAt(c.Now)
	return class == gardencorev1beta1.ClassificationExpired
}

func (c *checker) isImageOffered(parent *gardencorev1beta1.CloudProfileSpec, name, version string) bool {
	return slices.ContainsFunc(parent.MachineImages, func(image gardencorev1beta1.MachineImage) bool {
		return image.Name == name && slices.ContainsFunc(image.Versions, func(v gardencorev1beta1.MachineImageVersion) bool {
			return v.Version == version && !c.isExpired(v.ExpirableVersion)
		})
	})
}
