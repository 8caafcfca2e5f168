package across

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

// users lists the first objects for a message, with their positions.
func users(of []*schemas.Input) string {
	const most = 3
	var names []string
	for _, in := range of[:min(most, len(of))] {
		names = append(names, place(in))
	}
	if more := len(of) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}

// versionsOf returns the Kubernetes versions of a cloud profile.
func versionsOf(profile map[string]any) map[string]bool {
	out := map[string]bool{}
	each(profile, "spec.kubernetes.versions[].version", func(_ string, v any) {
		if version, ok := v.(string); ok {
			out[version] = true
		}
	})
	return out
}

// imagesOf returns the machine images of a cloud profile and their versions.
func imagesOf(profile map[string]any) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, item := range list(profile, "spec", "machineImages") {
		image, _ := item.(map[string]any)
		versions := map[string]bool{}
		each(image, "versions[].version", func(_ string, v any) {
			if version, ok := v.(string); ok {
				versions[version] = true
			}
		})
		out[text(image, "name")] = versions
	}
	return out
}

// gone returns the sorted keys that are in before but not in now.
func gone[V, W any](before map[string]V, now map[string]W) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(name string) bool {
		_, still := now[name]
		return still
	})
}

// dependents returns the NamespacedCloudProfiles whose parent is the current CloudProfile.
func (c *check) dependents() []*schemas.Input {
	return slices.DeleteFunc(slices.Clone(c.all(kindNamespacedProfile)), func(in *schemas.Input) bool {
		parent := table(in.Content().Object, "spec", "parent")
		return in.Content().GetDeletionTimestamp() != nil || text(parent, "name") != c.name() || text(parent, "kind") != kindCloudProfile.Kind
	})
}

// shootsOf returns the Shoots that use the current profile or one of its dependents.
func (c *check) shootsOf(dependents []*schemas.Input) []*schemas.Input {
	profiles := map[identity]bool{identityOf(c.in): true}
	for _, in := range dependents {
		profiles[identityOf(in)] = true
	}
	return slices.DeleteFunc(slices.Clone(c.all(kindShoot)), func(in *schemas.Input) bool {
		id, _ := profileField(in.Content().Object, identityOf(in).namespace)
		return in.Content().GetDeletionTimestamp() != nil || !profiles[id]
	})
}

// that returns the inputs that satisfy a predicate.
func that(inputs []*schemas.Input, is func(object map[string]any) bool) []*schemas.Input {
	return slices.DeleteFunc(slices.Clone(inputs), func(in *schemas.Input) bool { return !is(in.Content().Object) })
}

// runsKubernetes reports whether a Shoot's control plane has the version. Worker pools have the
// same or an older one.
func runsKubernetes(version string) func(map[string]any) bool {
	return func(shoot map[string]any) bool { return text(shoot, "spec", "kubernetes", "version") == version }
}

func runsImage(name, version string) func(map[string]any) bool {
	return func(shoot map[string]any) bool {
		return slices.ContainsFunc(list(shoot, "spec", "provider", "workers"), func(item any) bool {
			worker, _ := item.(map[string]any)
			return text(worker, "machine", "image", "name") == name && text(worker, "machine", "image", "version") == version
		})
	}
}

// keptVersions checks that a CloudProfile retains Kubernetes versions in use.
func (c *check) keptVersions() {
	lost := gone(versionsOf(c.oldObject()), versionsOf(c.object()))
	if len(lost) == 0 {
		return
	}
	dependents := c.dependents()
	shoots := c.shootsOf(dependents)
	for _, version := range lost {
		using := slices.Concat(
			that(shoots, runsKubernetes(version)),
			that(dependents, func(profile map[string]any) bool { return versionsOf(profile)[version] }),
		)
		if len(using) > 0 {
			c.report("spec.kubernetes.versions", schemas.TypeForbidden, "lost the Kubernetes version %q, which is used by %s", version, users(using))
		}
	}
}

// keptImages checks that a CloudProfile retains machine images and versions in use, and adds no
// image that a dependent profile defines.
func (c *check) keptImages() {
	if !c.in.HasOld() {
		return
	}
	before, now := imagesOf(c.oldObject()), imagesOf(c.object())
	var dependents, shoots []*schemas.Input
	asked := false
	look := func() { // dependents are queried only for a removed or new image
		if !asked {
			asked, dependents = true, c.dependents()
			shoots = c.shootsOf(dependents)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		for _, version := range gone(before[name], now[name]) {
			look()
			using := slices.Concat(
				that(shoots, runsImage(name, version)),
				that(dependents, func(profile map[string]any) bool { return imagesOf(profile)[name][version] }),
			)
			if len(using) > 0 {
				c.report(c.fieldOfImage(name), schemas.TypeForbidden, "lost version %q of machine image %q, which is used by %s", version, name, users(using))
			}
		}
	}
	has := func(name string) []*schemas.Input {
		look()
		return that(dependents, func(profile map[string]any) bool { return imagesOf(profile)[name] != nil })
	}
	for _, name := range gone(before, now) {
		if using := has(name); len(using) > 0 {
			c.report("spec.machineImages", schemas.TypeForbidden, "lost the machine image %q, which is used by %s", name, users(using))
		}
	}
	for _, name := range gone(now, before) {
		if using := has(name); len(using) > 0 {
			c.report(c.fieldOfImage(name), schemas.TypeForbidden, "adds the machine image %q, which is defined already by %s", name, users(using))
		}
	}
}

// fieldOfImage returns the path of a machine image in the current object, or the list's path for a
// removed one.
func (c *check) fieldOfImage(name string) string {
	for i, item := range list(c.object(), "spec", "machineImages") {
		if image, _ := item.(map[string]any); text(image, "name") == name {
			return fmt.Sprintf("spec.machineImages[%d]", i)
		}
	}
	return "spec.machineImages"
}

// keptCapabilities checks that a CloudProfile retains the capability values of dependent profiles.
// If those only use architectures, the CloudProfile may remove its capabilities.
func (c *check) keptCapabilities() {
	lost := lostCapabilities(c.oldObject(), c.object())
	if len(lost) == 0 {
		return
	}
	dependents := c.dependents()
	more := func(profile map[string]any) bool {
		return len(gone(usedCapabilities(profile), map[string]bool{architecture: true})) > 0
	}
	if len(that(dependents, more)) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		for _, value := range lost[name] {
			using := that(dependents, func(profile map[string]any) bool { return usedCapabilities(profile)[name][value] })
			if len(using) > 0 {
				c.report("spec.machineCapabilities", schemas.TypeForbidden, "lost the value %q of the capability %q, which is used by %s", value, name, users(using))
			}
		}
	}
}

// lostCapabilities returns capability values that are no longer defined.
func lostCapabilities(before, now map[string]any) map[string][]string {
	defined := func(profile map[string]any) map[string]map[string]bool {
		out := map[string]map[string]bool{}
		for _, item := range list(profile, "spec", "machineCapabilities") {
			capability, _ := item.(map[string]any)
			values := map[string]bool{}
			for _, value := range texts(list(capability, "values")) {
				values[value] = true
			}
			out[text(capability, "name")] = values
		}
		return out
	}
	kept, out := defined(now), map[string][]string{}
	for name, values := range defined(before) {
		if lost := gone(values, kept[name]); len(lost) > 0 {
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
			for _, value := range texts(list(capabilities, name)) {
				out[name][value] = true
			}
		}
	}
	each(profile, "spec.machineTypes[].capabilities", note)
	each(profile, "spec.machineImages[].versions[].capabilityFlavors[]", note)
	return out
}

// keptOverrides checks that a NamespacedCloudProfile retains versions in use that its CloudProfile
// does not offer.
func (c *check) keptOverrides() {
	versions, before, now := gone(versionsOf(c.oldObject()), versionsOf(c.object())), imagesOf(c.oldObject()), imagesOf(c.object())
	images := slices.ContainsFunc(slices.Sorted(maps.Keys(before)), func(name string) bool { return len(gone(before[name], now[name])) > 0 })
	if len(versions) == 0 && !images {
		return
	}
	parent := c.parentSpec()
	if parent == nil {
		return
	}
	shoots := c.shootsOf(nil)
	for _, version := range versions {
		i := slices.IndexFunc(parent.Kubernetes.Versions, func(v gardencorev1beta1.ExpirableVersion) bool { return v.Version == version })
		if i < 0 || !c.expired(parent.Kubernetes.Versions[i]) {
			continue // the parent has no such version, or still offers it
		}
		if using := that(shoots, runsKubernetes(version)); len(using) > 0 {
			c.report("spec.kubernetes", schemas.TypeForbidden, "lost the Kubernetes version %q, which has expired in the CloudProfile and is used by %s", version, users(using))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		for _, version := range gone(before[name], now[name]) {
			if c.offersImage(parent, name, version) {
				continue
			}
			if using := that(shoots, runsImage(name, version)); len(using) > 0 {
				c.report(c.fieldOfImage(name), schemas.TypeForbidden, "lost version %q of machine image %q, which the CloudProfile does not offer by itself and is used by %s", version, name, users(using))
			}
		}
	}
}

// parentSpec returns the parent of the current NamespacedCloudProfile; nil if it is unknown or
// broken.
func (c *check) parentSpec() *gardencorev1beta1.CloudProfileSpec {
	in := c.find(parentOf(c.in))
	if in == nil {
		return nil
	}
	parent := &gardencorev1beta1.CloudProfile{}
	if !typed(in.Content(), parent) {
		return nil
	}
	return &parent.Spec
}

func (c *check) expired(v gardencorev1beta1.ExpirableVersion) bool {
	class, _ := v.ClassificationAt(c.Now)
	return class == gardencorev1beta1.ClassificationExpired
}

func (c *check) offersImage(parent *gardencorev1beta1.CloudProfileSpec, name, version string) bool {
	return slices.ContainsFunc(parent.MachineImages, func(image gardencorev1beta1.MachineImage) bool {
		return image.Name == name && slices.ContainsFunc(image.Versions, func(v gardencorev1beta1.MachineImageVersion) bool {
			return v.Version == version && !c.expired(v.ExpirableVersion)
		})
	})
}
