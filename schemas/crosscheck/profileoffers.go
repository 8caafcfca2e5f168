// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Rules about the offers of a Shoot's cloud profile. Source: plugin/pkg/shoot/validator
// (ShootValidator).

func (c *checker) checkProvider() {
	p := c.shootProfile()
	if p == nil {
		return
	}
	if written := textAt(c.object(), "spec", "provider", "type"); written != "" && written != p.spec.Type {
		c.report("spec.provider.type", schemas.TypeInvalid, "%q is not the provider of its profile: %s is for %q", written, p.position, p.spec.Type)
	}
}

func (c *checker) checkRegion() {
	p, name := c.shootProfile(), textAt(c.object(), "spec", "region")
	if p == nil || name == "" {
		return
	}
	region := p.regions[name]
	if region == nil {
		c.reportUnoffered("spec.region", "region", name, sortedKeys(p.regions), p)
		return
	}
	var offered []string
	for _, r := range region.AccessRestrictions {
		offered = append(offered, r.Name)
	}
	visitValues(c.object(), "spec.accessRestrictions[].name", func(path string, value any) {
		if name, ok := value.(string); ok && !slices.Contains(offered, name) {
			c.reportUnoffered(path, "access restriction", name, offered, p)
		}
	})
	zones := map[string]bool{}
	for _, z := range region.Zones {
		zones[z.Name] = true
	}
	for i, w := range listAt(c.object(), "spec", "provider", "workers") {
		worker, _ := w.(map[string]any)
		c.checkZones(p, zones, stringItems(listAt(worker, "zones")), fmt.Sprintf("spec.provider.workers[%d].zones", i))
	}
}

// checkZones checks that the profile offers the zones of a pool, and that each is listed once.
func (c *checker) checkZones(p *profileOffers, offered map[string]bool, written []string, path string) {
	for i, zone := range written {
		field := fmt.Sprintf("%s[%d]", path, i)
		if !offered[zone] {
			unused := slices.DeleteFunc(sortedKeys(offered), func(other string) bool { return slices.Contains(written, other) })
			if len(unused) == 0 {
				unused = sortedKeys(offered)
			}
			c.reportUnoffered(field, "zone", zone, unused, p)
		}
		if slices.Contains(written[:i], zone) {
			c.report(field, schemas.TypeDuplicate, "the zone %q is already listed", zone)
		}
	}
}

// reportUnoffered reports a value that a profile does not offer.
func (c *checker) reportUnoffered(field, what, name string, offered []string, p *profileOffers) {
	hint := "it has " + joinQuoted(offered)
	if guess := suggest.Closest(name, offered); guess != "" {
		hint = fmt.Sprintf("did you mean %q?", guess)
	}
	c.report(field, schemas.TypeNotSupported, "the %s %q is not offered by %s; %s", what, name, p.position, hint)
}

func joinQuoted(names []string) string {
	const most = 8
	if len(names) == 0 {
		return "none"
	}
	quoted := make([]string, 0, most)
	for _, name := range names[:min(most, len(names))] {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(quoted, ", "), more)
	}
	return strings.Join(quoted, ", ")
}

// checkMachines checks machine types and volume types.
func (c *checker) checkMachines() {
	p := c.shootProfile()
	if p == nil {
		return
	}
	for i, w := range listAt(c.object(), "spec", "provider", "workers") {
		worker, ok := w.(map[string]any)
		if !ok {
			continue
		}
		path := fmt.Sprintf("spec.provider.workers[%d]", i)
		machine := c.checkMachineType(p, worker, path)
		c.checkReservations(machine, worker, path)
		if volume := mapAt(worker, "volume"); volume != nil {
			c.checkVolume(p, worker, volume, path+".volume", machine)
		}
		for j, v := range listAt(worker, "dataVolumes") {
			if volume, ok := v.(map[string]any); ok {
				c.checkVolume(p, worker, volume, fmt.Sprintf("%s.dataVolumes[%d]", path, j), nil)
			}
		}
	}
}

func (c *checker) checkMachineType(p *profileOffers, worker map[string]any, path string) *gardencorev1beta1.MachineType {
	name, field := textAt(worker, "machine", "type"), path+".machine.type"
	if name == "" {
		return nil
	}
	machine := p.machineTypes[name]
	if machine == nil {
		c.reportUnoffered(field, "machine type", name, sortedKeys(p.machineTypes), p)
		return nil
	}
	if arch := textAt(worker, "machine", "architecture"); arch != "" && arch != machineArchitecture(machine) {
		c.report(path+".machine.architecture", schemas.TypeNotSupported, "machines of type %q are %s, not %s", name, machineArchitecture(machine), arch)
	}
	c.reportUnavailableZones(p, worker, field, "machine type", name, func(z gardencorev1beta1.AvailabilityZone) []string { return z.UnavailableMachineTypes })
	return machine
}

// checkUsableMachines checks that new pools have no machine type with usable: false.
func (c *checker) checkUsableMachines() {
	p := c.shootProfile()
	if p == nil {
		return
	}
	for i, w := range listAt(c.object(), "spec", "provider", "workers") {
		worker, _ := w.(map[string]any)
		name := textAt(worker, "machine", "type")
		if machine := p.machineTypes[name]; machine != nil && machine.Usable != nil && !*machine.Usable && textAt(c.oldWorker(worker), "machine", "type") != name {
			c.reportNew(fmt.Sprintf("spec.provider.workers[%d].machine.type", i), schemas.TypeNotSupported, "the machine type %q must not be used for new pools: %s says usable: false", name, p.position)
		}
	}
}

// checkReservations checks that kubeReserved and eviction thresholds are below the machine's
// capacity. Settings of a pool override the Shoot's. systemReserved does not count (gardener
// v1.150.0, plugin/pkg/shoot/validator/admission.go, validateKubeletConfig).
func (c *checker) checkReservations(machine *gardencorev1beta1.MachineType, worker map[string]any, path string) {
	if machine == nil {
		return
	}
	own, field := mapAt(worker, "kubernetes", "kubelet"), path+".kubernetes.kubelet"
	if own == nil {
		own, field = mapAt(c.object(), "spec", "kubernetes", "kubelet"), "spec.kubernetes.kubelet"
	}
	// findings are sorted later
	for name, capacity := range map[string]resource.Quantity{"cpu": machine.CPU, "memory": machine.Memory} {
		kept, err := resource.ParseQuantity(fmt.Sprint(valueAt(own, "kubeReserved", name)))
		if err == nil && !kept.IsZero() && kept.Cmp(capacity) >= 0 {
			c.report(field+".kubeReserved."+name, schemas.TypeInvalid, "kubeReserved reserves %s of %s, but machines of type %q of %s have %s", kept.String(), name, machine.Name, path, capacity.String())
		}
	}
	for _, threshold := range []string{"evictionHard", "evictionSoft"} {
		// a percentage is not a quantity and is skipped
		free, err := resource.ParseQuantity(fmt.Sprint(valueAt(own, threshold, "memoryAvailable")))
		if err != nil || free.Cmp(machine.Memory) < 0 {
			continue
		}
		c.report(field+"."+threshold+".memoryAvailable", schemas.TypeInvalid, "pods are evicted while less than %s of memory is free, but machines of type %q of %s have %s", free.String(), machine.Name, path, machine.Memory.String())
	}
}

// reportUnavailableZones reports zones of a pool that lack a machine or volume type.
func (c *checker) reportUnavailableZones(p *profileOffers, worker map[string]any, field, what, name string, lacks func(gardencorev1beta1.AvailabilityZone) []string) {
	region := p.regions[textAt(c.object(), "spec", "region")]
	if region == nil {
		return
	}
	zones := stringItems(listAt(worker, "zones"))
	for _, zone := range region.Zones {
		if slices.Contains(zones, zone.Name) && slices.Contains(lacks(zone), name) {
			c.report(field, schemas.TypeNotSupported, "the %s %q is not available in zone %q of region %q (%s)", what, name, zone.Name, region.Name, p.position)
		}
	}
}

func (c *checker) checkVolume(p *profileOffers, worker, volume map[string]any, path string, machine *gardencorev1beta1.MachineType) {
	var least *resource.Quantity
	if machine != nil && machine.Storage != nil {
		least = machine.Storage.MinSize
	}
	if name := textAt(volume, "type"); name != "" {
		known := p.volumeTypes[name]
		if known == nil {
			c.reportUnoffered(path+".type", "volume type", name, sortedKeys(p.volumeTypes), p)
			return
		}
		if least == nil {
			least = known.MinSize
		}
		c.reportUnavailableZones(p, worker, path+".type", "volume type", name, func(z gardencorev1beta1.AvailabilityZone) []string { return z.UnavailableVolumeTypes })
	}
	size, err := resource.ParseQuantity(fmt.Sprint(valueAt(volume, "size")))
	if err == nil && least != nil && size.Cmp(*least) < 0 {
		c.report(path+".size", schemas.TypeInvalid, "%s is below the minimum size of such volumes, %s (%s)", size.String(), least.String(), p.position)
	}
}

// checkVersions checks the Kubernetes versions of control plane and pools. Two rules use it: for
// checkVersions that the profile does not list, and for unusable listed ones.
func (c *checker) checkVersions() {
	p := c.shootProfile()
	if p == nil {
		return
	}
	c.reportRefusals()
	versions, before := p.spec.Kubernetes.Versions, textAt(c.oldObject(), "spec", "kubernetes", "version")
	c.checkVersion(p, "spec.kubernetes.version", kubernetesVersionWords, textAt(c.object(), "spec", "kubernetes", "version"), before, versions)
	for i, w := range listAt(c.object(), "spec", "provider", "workers") {
		worker, ok := w.(map[string]any)
		if !ok {
			continue
		}
		own := ""
		if old := c.oldWorker(worker); old != nil {
			own = cmp.Or(textAt(old, "kubernetes", "version"), before)
		}
		c.checkVersion(p, fmt.Sprintf("spec.provider.workers[%d].kubernetes.version", i), kubernetesVersionWords, textAt(worker, "kubernetes", "version"), own, versions)
	}
}

// checkVersion reports a version that is not offered or no longer usable, unless it is unchanged.
// An update to a newer expired version is allowed, as forced maintenance does it. Source:
// plugin/pkg/shoot/validator (validateKubernetesVersionConstraints,
// validateMachineImagesConstraints).
func (c *checker) checkVersion(p *profileOffers, field, what, written, before string, offered []gardencorev1beta1.ExpirableVersion) {
	if written == "" || written == before {
		return
	}
	var usable []string
	var expired time.Time
	known, good := false, false
	for _, v := range offered {
		class, since := v.ClassificationAt(c.Now)
		dead := class == gardencorev1beta1.ClassificationExpired && !isNewer(v.Version, before) || class == gardencorev1beta1.ClassificationUnavailable
		if !dead {
			usable = append(usable, v.Version)
		}
		if written == v.Version || mutation.IsIncompleteVersion(written) && isVersionPrefix(written, v.Version) && !(strings.HasPrefix(written, "v") && isKubernetesVersion(what)) {
			known, good = true, good || !dead
			if class == gardencorev1beta1.ClassificationExpired {
				expired = since
			}
		}
	}
	if good || known != (c.currentRule.Class == schemas.ClassTime) {
		return
	}
	switch {
	case !expired.IsZero():
		c.reportNew(field, schemas.TypeNotSupported, "the %s %q has expired at %s (%s); use one of %s", what, written, expired.UTC().Format(time.RFC3339), p.position, joinQuoted(newestFirst(usable)))
	case known:
		c.reportNew(field, schemas.TypeNotSupported, "the %s %q cannot be used now (%s); use one of %s", what, written, p.position, joinQuoted(newestFirst(usable)))
	default:
		// A suggestion of a similar version would mislead.
		c.report(field, schemas.TypeNotSupported, "the %s %q is not offered by %s; it has %s", what, written, p.position, joinQuoted(newestFirst(usable)))
	}
}

// isNewer reports whether a version is above the previous one; it is false without a previous one.
func isNewer(version, before string) bool {
	left, errLeft := semver.NewVersion(version)
	right, errRight := semver.NewVersion(before)
	return errLeft == nil && errRight == nil && left.GreaterThan(right)
}

// isKubernetesVersion reports whether versions are of Kubernetes; image versions may begin with a
// v.
func isKubernetesVersion(what string) bool { return what == kubernetesVersionWords }

const kubernetesVersionWords = "Kubernetes version"

// newestFirst sorts versions; invalid ones are compared as text.
func newestFirst(versions []string) []string {
	slices.SortStableFunc(versions, func(a, b string) int {
		left, errLeft := semver.NewVersion(a)
		right, errRight := semver.NewVersion(b)
		if errLeft != nil || errRight != nil {
			return strings.Compare(b, a)
		}
		return right.Compare(left)
	})
	return versions
}

// checkMachineImages checks machine images and their support for the pools.
func (c *checker) checkMachineImages() {
	p := c.shootProfile()
	if p == nil {
		return
	}
	c.reportRefusals()
	for i, w := range listAt(c.object(), "spec", "provider", "workers") {
		if worker, ok := w.(map[string]any); ok {
			c.checkMachineImage(p, worker, fmt.Sprintf("spec.provider.workers[%d]", i))
		}
	}
}

func (c *checker) checkMachineImage(p *profileOffers, worker map[string]any, path string) {
	name := textAt(worker, "machine", "image", "name")
	if name == "" {
		return // the API chooses the first suitable image
	}
	image := p.machineImages[name]
	if image == nil && c.currentRule.Class == schemas.ClassTime {
		return // the other rule reports it
	}
	if image == nil {
		c.reportUnoffered(path+".machine.image.name", "machine image", name, sortedKeys(p.machineImages), p)
		return
	}
	written := textAt(worker, "machine", "image", "version")
	offered := make([]gardencorev1beta1.ExpirableVersion, 0, len(image.Versions))
	var chosen *gardencorev1beta1.MachineImageVersion
	for i := range image.Versions {
		offered = append(offered, image.Versions[i].ExpirableVersion)
		if written == image.Versions[i].Version {
			chosen = &image.Versions[i]
		}
	}
	before := ""
	if old := c.oldWorker(worker); textAt(old, "machine", "image", "name") == name {
		before = textAt(old, "machine", "image", "version")
	}
	c.checkVersion(p, path+".machine.image.version", "version of image "+name, written, before, offered)
	if chosen != nil && c.currentRule.Class != schemas.ClassTime {
		c.checkImageSupport(p, worker, path, name, chosen)
	}
}

// checkImageSupport compares an image with the pool: architecture, container runtime, kubelet.
func (c *checker) checkImageSupport(p *profileOffers, worker map[string]any, path, name string, image *gardencorev1beta1.MachineImageVersion) {
	arch := textAt(worker, "machine", "architecture")
	if machine := p.machineTypes[textAt(worker, "machine", "type")]; arch == "" && machine != nil {
		arch = machineArchitecture(machine)
	}
	if arch != "" && !hasArchitecture(*image, arch) {
		c.report(path+".machine.image.version", schemas.TypeNotSupported, "version %s of image %s does not exist for %s machines (%s)", image.Version, name, arch, p.position)
	}
	if cri := textAt(worker, "cri", "name"); cri != "" && len(image.CRI) > 0 {
		var names []string
		for _, known := range image.CRI {
			names = append(names, string(known.Name))
		}
		if !slices.Contains(names, cri) {
			c.report(path+".cri.name", schemas.TypeNotSupported, "version %s of image %s has no container runtime %q; it has %s", image.Version, name, cri, joinQuoted(names))
		}
		c.checkContainerRuntimes(worker, path, name, image)
	}
	if image.KubeletVersionConstraint == nil {
		return
	}
	field, written := path+".kubernetes.version", textAt(worker, "kubernetes", "version")
	if written == "" {
		field, written = "spec.kubernetes.version", textAt(c.object(), "spec", "kubernetes", "version")
	}
	constraint, err := semver.NewConstraint(*image.KubeletVersionConstraint)
	kubelet, verr := semver.NewVersion(written)
	if err == nil && verr == nil && strings.Count(written, ".") == 2 && !constraint.Check(kubelet) {
		c.report(path+".machine.image.version", schemas.TypeInvalid, "version %s of image %s is for kubelets %s, but %s is %s", image.Version, name, *image.KubeletVersionConstraint, field, written)
	}
}

// checkContainerRuntimes checks the additional container runtimes of a pool.
func (c *checker) checkContainerRuntimes(worker map[string]any, path, name string, image *gardencorev1beta1.MachineImageVersion) {
	i := slices.IndexFunc(image.CRI, func(known gardencorev1beta1.CRI) bool { return string(known.Name) == textAt(worker, "cri", "name") })
	if i < 0 {
		return
	}
	var offered []string
	for _, runtime := range image.CRI[i].ContainerRuntimes {
		offered = append(offered, runtime.Type)
	}
	visitValues(worker, "cri.containerRuntimes[].type", func(field string, value any) {
		if typ, ok := value.(string); ok && !slices.Contains(offered, typ) {
			c.report(path+"."+field, schemas.TypeNotSupported, "version %s of image %s has no container runtime %q besides %s; it has %s", image.Version, name, typ, image.CRI[i].Name, joinQuoted(offered))
		}
	})
}

// checkNodeLimit checks the node limit of the profile.
func (c *checker) checkNodeLimit() {
	p := c.shootProfile()
	if p == nil || p.spec.Limits == nil || p.spec.Limits.MaxNodesTotal == nil {
		return
	}
	limit, least := int64(*p.spec.Limits.MaxNodesTotal), int64(0)
	for i, w := range listAt(c.object(), "spec", "provider", "workers") {
		worker, ok := w.(map[string]any)
		if !ok {
			continue
		}
		least += numberAt(worker, "minimum")
		if most := numberAt(worker, "maximum"); most > limit {
			c.report(fmt.Sprintf("spec.provider.workers[%d].maximum", i), schemas.TypeInvalid, "%d nodes are more than the %d in all that %s allows (limits.maxNodesTotal)", most, limit, p.position)
		}
	}
	if least > limit {
		c.report("spec.provider.workers", schemas.TypeForbidden, "the pools have at least %d nodes together, more than the %d that %s allows (limits.maxNodesTotal)", least, limit, p.position)
	}
}

// oldObject returns the object before the change, or nil for a new object.
func (c *checker) oldObject() map[string]any {
	if !c.input.HasOld() {
		return nil
	}
	return c.input.OldContent().Object
}

// oldWorker returns the previous revision of the pool with the same name.
func (c *checker) oldWorker(worker map[string]any) map[string]any {
	for _, w := range listAt(c.oldObject(), "spec", "provider", "workers") {
		if m, ok := w.(map[string]any); ok && textAt(m, "name") == textAt(worker, "name") {
			return m
		}
	}
	return nil
}

// sortedKeys returns the sorted keys of a map.
func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
