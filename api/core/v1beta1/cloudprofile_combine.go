// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"slices"
	"strings"
	"time"
)

// CombineCloudProfiles returns the CloudProfile that results from a NamespacedCloudProfile and its
// parent, which both stay unchanged. Only the provider's extension can merge provider
// configurations: here the NamespacedCloudProfile's replaces the parent's. Source: gardener
// docs/usage/project/namespaced-cloud-profiles.md.
func CombineCloudProfiles(parent *CloudProfile, own *NamespacedCloudProfile) *CloudProfile {
	out, own := parent.DeepCopy(), own.DeepCopy()
	out.ObjectMeta = own.ObjectMeta
	spec := &out.Spec
	if own.Spec.CABundle != nil {
		bundle := *own.Spec.CABundle
		if spec.CABundle != nil {
			bundle = strings.TrimSuffix(*spec.CABundle, "\n") + "\n" + bundle
		}
		spec.CABundle = &bundle
	}
	if own.Spec.Kubernetes != nil {
		for _, version := range own.Spec.Kubernetes.Versions {
			for i := range spec.Kubernetes.Versions {
				if spec.Kubernetes.Versions[i].Version == version.Version {
					spec.Kubernetes.Versions[i].ExpirationDate = version.ExpirationDate
				}
			}
		}
	}
	for _, image := range own.Spec.MachineImages {
		i := slices.IndexFunc(spec.MachineImages, func(known MachineImage) bool { return known.Name == image.Name })
		if i < 0 {
			spec.MachineImages = append(spec.MachineImages, image)
			continue
		}
		addImageVersions(&spec.MachineImages[i], image)
	}
	spec.MachineTypes = append(spec.MachineTypes, own.Spec.MachineTypes...)
	spec.VolumeTypes = append(spec.VolumeTypes, own.Spec.VolumeTypes...)
	if own.Spec.Limits != nil {
		spec.Limits = own.Spec.Limits
	}
	if own.Spec.ProviderConfig != nil {
		spec.ProviderConfig = own.Spec.ProviderConfig
	}
	return out
}

func addImageVersions(image *MachineImage, own MachineImage) {
	for _, version := range own.Versions {
		i := slices.IndexFunc(image.Versions, func(known MachineImageVersion) bool { return known.Version == version.Version })
		if i < 0 {
			image.Versions = append(image.Versions, version)
		} else {
			image.Versions[i].ExpirationDate = version.ExpirationDate
		}
	}
}

// ClassificationAt returns the classification of a version at a time. It follows from the last
// lifecycle stage that has begun, or from classification and expiration date. The default is
// supported. since is the start of that classification, zero if unknown.
func (v ExpirableVersion) ClassificationAt(now time.Time) (class VersionClassification, since time.Time) {
	class = ClassificationSupported
	if len(v.Lifecycle) > 0 {
		for i, stage := range v.Lifecycle {
			switch {
			case stage.StartTime == nil && i == 0:
				class = stage.Classification
			case stage.StartTime != nil && !stage.StartTime.After(now):
				class, since = stage.Classification, stage.StartTime.Time
			case i == 0:
				class = ClassificationUnavailable // no stage has begun
			}
		}
		return class, since
	}
	if v.ExpirationDate != nil && !v.ExpirationDate.After(now) {
		return ClassificationExpired, v.ExpirationDate.Time
	}
	if v.Classification != nil {
		class = *v.Classification
	}
	return class, time.Time{}
}
