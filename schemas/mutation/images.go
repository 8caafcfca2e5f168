package mutation

import (
	"fmt"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// architectures sets the architecture of pools from their machine type. If the type has several or
// is not offered, the API default applies. Source: plugin/pkg/shoot/mutator
// (defaultWorkerArchitectures).
func (m *shootMutator) architectures() {
	if m.profile == nil {
		return
	}
	m.id = shootArchitecture
	for i := range m.shoot.Spec.Provider.Workers {
		machine := &m.shoot.Spec.Provider.Workers[i].Machine
		known := m.profile.machineType(machine.Type)
		if machine.Architecture != nil || known == nil {
			continue
		}
		if own := m.profile.architectureOf(known); own != "" {
			machine.Architecture = &own
			m.filled(fmt.Sprintf("spec.provider.workers[%d].machine.architecture", i), own, "that of the machine type %s of %s", machine.Type, m.profile.place)
		}
	}
}

// machineImages completes the images of pools. Without name or version the previous image stays, as
// only maintenance updates it. Source: plugin/pkg/shoot/mutator (ensureMachineImages).
func (m *shootMutator) machineImages() {
	if m.profile == nil {
		return
	}
	m.id = shootImages
	for i := range m.shoot.Spec.Provider.Workers {
		worker := &m.shoot.Spec.Provider.Workers[i]
		field := fmt.Sprintf("spec.provider.workers[%d].machine.image", i)
		if m.keepImage(worker, field) {
			continue
		}
		m.chooseImage(worker, field)
	}
}

// keepImage restores the previous image; false if there is none or another one is declared.
func (m *shootMutator) keepImage(worker *gardencorev1beta1.Worker, field string) bool {
	old := m.oldWorker(worker.Name)
	if old == nil || old.Machine.Image == nil || old.Machine.Image.Version == nil {
		return false
	}
	before, image := old.Machine.Image, worker.Machine.Image
	switch {
	case image == nil:
		worker.Machine.Image = before.DeepCopy()
		m.filled(field+".name", before.Name, "the image from before")
		m.filled(field+".version", *before.Version, "the image from before")
		if before.ProviderConfig != nil {
			m.filled(field+".providerConfig", before.ProviderConfig, "the image from before")
		}
		return true
	case image.Name == before.Name && versionOf(image) == "":
		image.Version = before.Version
		m.filled(field+".version", *before.Version, "the version from before")
		return true
	}
	// A shortened version retains the previous full version, as for Kubernetes.
	if image.Name == before.Name && shortened(*image.Version) && !shortened(*before.Version) && beginsWith(*before.Version, *image.Version) {
		image.Version = before.Version
		m.filled(field+".version", *before.Version, "the version from before")
		return true
	}
	return image.Name == before.Name && *image.Version == *before.Version
}

func versionOf(image *gardencorev1beta1.ShootMachineImage) string {
	if image == nil || image.Version == nil {
		return ""
	}
	return *image.Version
}

func (m *shootMutator) chooseImage(worker *gardencorev1beta1.Worker, field string) {
	written, name := versionOf(worker.Machine.Image), ""
	if worker.Machine.Image != nil {
		name = worker.Machine.Image.Name
	}
	offered := m.imageFor(worker, name)
	if offered == nil {
		if name == "" {
			m.refused("shoot/images-offered", field, "%s has no machine image for %s machines", m.profile.place, *worker.Machine.Architecture)
		}
		return
	}
	for _, version := range offered.Versions {
		if name != "" && version.Version == written {
			return
		}
	}
	if !shortened(written) || m.now.IsZero() {
		return
	}
	chosen := m.newestImage(worker, offered, written, m.classAt)
	if chosen == "" {
		any := m.newestImage(worker, offered, written, func(gardencorev1beta1.ExpirableVersion) gardencorev1beta1.VersionClassification {
			return gardencorev1beta1.ClassificationSupported
		})
		// Other rules report shortened versions that the profile does not offer or that have
		// expired.
		switch {
		case written != "" && !m.anyUsable(offered, written):
		case any != "":
			m.refusedNow(RuleImagesUsable, field, "%s has no version%s of the image %s that can be chosen now: those in preview, and those that have expired, are not chosen by themselves",
				m.profile.place, likeness(written), offered.Name)
		default:
			m.refused("shoot/images-offered", field, "%s has no version%s of the image %s that fits the pool: they are not for %s machines of type %s",
				m.profile.place, likeness(written), offered.Name, *worker.Machine.Architecture, worker.Machine.Type)
		}
		if !m.anyVersion || any == "" {
			return
		}
		chosen = any
	}
	if worker.Machine.Image == nil {
		worker.Machine.Image = &gardencorev1beta1.ShootMachineImage{}
	}
	if name == "" {
		worker.Machine.Image.Name = offered.Name
		m.filled(field+".name", offered.Name, "the first image of %s for %s machines", m.profile.place, *worker.Machine.Architecture)
	}
	worker.Machine.Image.Version = &chosen
	m.filled(field+".version", chosen, "the newest version%s of image %s of %s that fits the pool", likeness(written), offered.Name, m.profile.place)
}

// imageFor returns the named image, or the first one that fits the pool.
func (m *shootMutator) imageFor(worker *gardencorev1beta1.Worker, name string) *gardencorev1beta1.MachineImage {
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
			if m.profile.runsOn(version, *worker.Machine.Architecture) && (machine == nil || m.profile.fits(machine, version)) {
				return image
			}
		}
	}
	return nil
}

// newestImage returns the newest version that fits a pool, and prefers supported to deprecated
// versions as classified by classOf. Source: pkg/api/core/helper
// (DetermineLatestMachineImageVersion).
func (m *shootMutator) newestImage(worker *gardencorev1beta1.Worker, image *gardencorev1beta1.MachineImage, written string, classOf func(gardencorev1beta1.ExpirableVersion) gardencorev1beta1.VersionClassification) string {
	machine := m.profile.machineType(worker.Machine.Type)
	inPlace := gardencorev1beta1.IsUpdateStrategyInPlace(worker.UpdateStrategy)
	var fitting []gardencorev1beta1.ExpirableVersion
	for i := range image.Versions {
		version := &image.Versions[i]
		switch {
		case !beginsWith(version.Version, written), !m.profile.runsOn(version, *worker.Machine.Architecture):
		case machine != nil && !m.profile.fits(machine, version):
		case inPlace && (version.InPlaceUpdates == nil || !version.InPlaceUpdates.Supported):
		default:
			fitting = append(fitting, version.ExpirableVersion)
		}
	}
	for _, class := range []gardencorev1beta1.VersionClassification{gardencorev1beta1.ClassificationSupported, gardencorev1beta1.ClassificationDeprecated} {
		if found := newest(fitting, func(v gardencorev1beta1.ExpirableVersion) bool { return classOf(v) == class }); found != "" {
			return found
		}
	}
	return ""
}

func (m *shootMutator) anyUsable(image *gardencorev1beta1.MachineImage, written string) bool {
	for _, version := range image.Versions {
		if beginsWith(version.Version, written) && m.alive(version.ExpirableVersion) {
			return true
		}
	}
	return false
}
