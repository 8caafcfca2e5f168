// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// setArchitectures sets the architecture of pools from their machine type. If the type has several
// or is not offered, the API default applies. Source: plugin/pkg/shoot/mutator
// (defaultWorkerArchitectures).
func (m *shootMutator) setArchitectures() {
	if m.profile == nil {
		return
	}
	m.mutationID = shootArchitecture
	for i := range m.shoot.Spec.Provider.Workers {
		machine := &m.shoot.Spec.Provider.Workers[i].Machine
		known := m.profile.machineType(machine.Type)
		if machine.Architecture != nil || known == nil {
			continue
		}
		if own := m.profile.singleArchitecture(known); own != "" {
			machine.Architecture = &own
			m.recordChange(fmt.Sprintf("spec.provider.workers[%d].machine.architecture", i), own, "the architecture of the machine type %s of %s", machine.Type, m.profile.displayName)
		}
	}
}

// setMachineImages completes the images of pools. Without name or version the previous image stays,
// as only maintenance updates it. Source: plugin/pkg/shoot/mutator (ensureMachineImages).
func (m *shootMutator) setMachineImages() {
	if m.profile == nil {
		return
	}
	m.mutationID = shootMachineImages
	for i := range m.shoot.Spec.Provider.Workers {
		worker := &m.shoot.Spec.Provider.Workers[i]
		field := fmt.Sprintf("spec.provider.workers[%d].machine.image", i)
		if m.restoreImage(worker, field) {
			continue
		}
		m.chooseImage(worker, field)
	}
}

// restoreImage restores the previous image; the result is false if there is none or another one is
// declared.
func (m *shootMutator) restoreImage(worker *gardencorev1beta1.Worker, field string) bool {
	old := m.oldWorker(worker.Name)
	if old == nil || old.Machine.Image == nil || old.Machine.Image.Version == nil {
		return false
	}
	before, image := old.Machine.Image, worker.Machine.Image
	switch {
	case image == nil:
		worker.Machine.Image = before.DeepCopy()
		m.recordChange(field+".name", before.Name, "the previous image")
		m.recordChange(field+".version", *before.Version, "the previous image")
		if before.ProviderConfig != nil {
			m.recordChange(field+".providerConfig", before.ProviderConfig, "the previous image")
		}
		return true
	case image.Name == before.Name && imageVersion(image) == "":
		image.Version = before.Version
		m.recordChange(field+".version", *before.Version, "the previous version")
		return true
	}
	// A isIncompleteVersion version retains the previous full version, as for Kubernetes.
	if image.Name == before.Name && isIncompleteVersion(*image.Version) && !isIncompleteVersion(*before.Version) && hasVersionPrefix(*before.Version, *image.Version) {
		image.Version = before.Version
		m.recordChange(field+".version", *before.Version, "the previous version")
		return true
	}
	return image.Name == before.Name && *image.Version == *before.Version
}

func imageVersion(image *gardencorev1beta1.ShootMachineImage) string {
	if image == nil || image.Version == nil {
		return ""
	}
	return *image.Version
}

func (m *shootMutator) chooseImage(worker *gardencorev1beta1.Worker, field string) {
	written, name := imageVersion(worker.Machine.Image), ""
	if worker.Machine.Image != nil {
		name = worker.Machine.Image.Name
	}
	offered := m.findImage(worker, name)
	if offered == nil {
		if name == "" {
			m.recordProblem("shoot/images-offered", field, "%s has no machine image for %s machines", m.profile.displayName, *worker.Machine.Architecture)
		}
		return
	}
	for _, version := range offered.Versions {
		if name != "" && version.Version == written {
			return
		}
	}
	if !isIncompleteVersion(written) || m.now.IsZero() {
		return
	}
	chosen := m.newestImageVersion(worker, offered, written, m.classifyVersion)
	if chosen == "" {
		any := m.newestImageVersion(worker, offered, written, func(gardencorev1beta1.ExpirableVersion) gardencorev1beta1.VersionClassification {
			return gardencorev1beta1.ClassificationSupported
		})
		// Other rules report shortened versions that the profile does not offer or that have
		// expired.
		switch {
		case written != "" && !m.hasUsableVersion(offered, written):
		case any != "":
			m.recordCurrentProblem(RuleImagesUsable, field, "%s has no usable version%s of the image %s: preview and expired versions are not chosen automatically",
				m.profile.displayName, versionHint(written), offered.Name)
		default:
			m.recordProblem("shoot/images-offered", field, "%s has no version%s of the image %s that fits the pool: none is for %s machines of type %s",
				m.profile.displayName, versionHint(written), offered.Name, *worker.Machine.Architecture, worker.Machine.Type)
		}
		if !m.allowsUnusable || any == "" {
			return
		}
		chosen = any
	}
	if worker.Machine.Image == nil {
		worker.Machine.Image = &gardencorev1beta1.ShootMachineImage{}
	}
	if name == "" {
		worker.Machine.Image.Name = offered.Name
		m.recordChange(field+".name", offered.Name, "the first image of %s for %s machines", m.profile.displayName, *worker.Machine.Architecture)
	}
	worker.Machine.Image.Version = &chosen
	m.recordChange(field+".version", chosen, "the newest version%s of image %s of %s that fits the pool", versionHint(written), offered.Name, m.profile.displayName)
}

// findImage returns the named image, or the first one that fits the pool.
func (m *shootMutator) findImage(worker *gardencorev1beta1.Worker, name string) *gardencorev1beta1.MachineImage {
	machine := m.profile.machineType(worker.Machine.Type)
	for i := range m.profile.spec.MachineImages {
		image := &m.profile.spec.MachineImages[i]
		if name != "" {
			if image.Name == name {
				return image
			}
			continue
		}
		for j := range image.Versions {
			version := &image.Versions[j]
			if m.profile.hasArchitecture(version, *worker.Machine.Architecture) && (machine == nil || m.profile.hasCapabilities(machine, version)) {
				return image
			}
		}
	}
	return nil
}

// newestImageVersion returns the newest version that fits a pool, and prefers supported to
// deprecated versions as classified by classOf. Source: pkg/api/core/helper
// (DetermineLatestMachineImageVersion).
func (m *shootMutator) newestImageVersion(worker *gardencorev1beta1.Worker, image *gardencorev1beta1.MachineImage, written string, classOf func(gardencorev1beta1.ExpirableVersion) gardencorev1beta1.VersionClassification) string {
	machine := m.profile.machineType(worker.Machine.Type)
	inPlace := gardencorev1beta1.IsUpdateStrategyInPlace(worker.UpdateStrategy)
	var fitting []gardencorev1beta1.ExpirableVersion
	for i := range image.Versions {
		version := &image.Versions[i]
		switch {
		case !hasVersionPrefix(version.Version, written), !m.profile.hasArchitecture(version, *worker.Machine.Architecture):
		case machine != nil && !m.profile.hasCapabilities(machine, version):
		case inPlace && (version.InPlaceUpdates == nil || !version.InPlaceUpdates.Supported):
		default:
			fitting = append(fitting, version.ExpirableVersion)
		}
	}
	for _, class := range []gardencorev1beta1.VersionClassification{gardencorev1beta1.ClassificationSupported, gardencorev1beta1.ClassificationDeprecated} {
		if found := newestVersion(fitting, func(v gardencorev1beta1.ExpirableVersion) bool { return classOf(v) == class }); found != "" {
			return found
		}
	}
	return ""
}

func (m *shootMutator) hasUsableVersion(image *gardencorev1beta1.MachineImage, written string) bool {
	for _, version := range image.Versions {
		if hasVersionPrefix(version.Version, written) && m.isUsable(version.ExpirableVersion) {
			return true
		}
	}
	return false
}
