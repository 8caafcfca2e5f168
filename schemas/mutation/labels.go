// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// labelTrue is the value of boolean labels.
const labelTrue = "true"

// Kinds of extensions in labels such as provider.extensions.gardener.cloud/aws.
const (
	labelExtension        = "extensions"
	labelProvider         = "provider"
	labelDNSRecord        = "dnsrecord"
	labelNetworking       = "networking"
	labelOperatingSystem  = "operatingsystemconfig"
	labelContainerRuntime = "containerruntime"
	labelExposure         = "selfhostedshootexposure"
)

func extensionLabelKinds() []string {
	return []string{labelExtension, labelProvider, labelDNSRecord, labelNetworking, labelOperatingSystem, labelContainerRuntime, labelExposure}
}

// kindsWithExtensionLabels returns the kinds with extension labels.
func kindsWithExtensionLabels() []string {
	var out []string
	for _, kind := range []schema.GroupKind{
		kindBackupBucket, kindBackupEntry, kindCloudProfile, kindCredentialsBinding, kindNamespacedCloudProfile, kindSecretBinding, kindSeed, kindShoot, kindWorkloadIdentity,
	} {
		out = append(out, kind.Kind)
	}
	return out
}

// labelSet is the set of extension labels that an object must have.
type labelSet map[string]string

func (l labelSet) addType(kind, typ string) {
	if typ != "" {
		l[kind+gardencorev1beta1.ExtensionTypeSuffix+typ] = labelTrue
	}
}

// syncExtensionLabels sets the extension labels of an object and removes others. Source:
// plugin/pkg/global/extensionlabels.
func (r *changeRecorder) syncExtensionLabels(object metav1.Object, wanted labelSet) {
	r.mutationID = anyExtensionLabels
	r.syncLabels(object, wanted, "the object uses extensions of this type", func(key string) bool {
		return slices.ContainsFunc(extensionLabelKinds(), func(kind string) bool { return strings.HasPrefix(key, kind+gardencorev1beta1.ExtensionTypeSuffix) })
	})
}

// syncSeedLabels sets one label per Seed and removes other Seed labels. Source: pkg/utils/gardener
// (MaintainSeedNameLabels).
func (r *changeRecorder) syncSeedLabels(object metav1.Object, names ...*string) {
	r.mutationID = anySeedLabels
	wanted := labelSet{}
	for _, name := range names {
		if name != nil && *name != "" {
			wanted[gardencorev1beta1.NameSeedPrefix+*name] = labelTrue
		}
	}
	r.syncLabels(object, wanted, "the object concerns this Seed", func(key string) bool { return strings.HasPrefix(key, gardencorev1beta1.NameSeedPrefix) })
}

// syncLabels makes the owned labels of an object equal to the wanted ones.
func (r *changeRecorder) syncLabels(object metav1.Object, wanted labelSet, reason string, ours func(key string) bool) {
	labels := maps.Clone(object.GetLabels())
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if _, stays := wanted[key]; ours(key) && !stays {
			delete(labels, key)
			r.recordChange("metadata.labels["+key+"]", nil, "the label no longer applies")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if labels[key] == wanted[key] {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = wanted[key]
		r.recordChange("metadata.labels["+key+"]", wanted[key], "%s", reason)
	}
	object.SetLabels(labels)
}

// autoEnabledExtension is an extension that is enabled by default.
type autoEnabledExtension struct {
	extensionType      string
	supportsWorkerless bool
}

// autoEnabledExtensions returns the extensions that ControllerRegistrations and Extensions enable
// for all clusters of a type.
func (s *Mutator) autoEnabledExtensions(cluster gardencorev1beta1.ClusterType) []autoEnabledExtension {
	if s.hasAutoEnabled {
		return s.autoEnabledByCluster[cluster]
	}
	s.hasAutoEnabled, s.autoEnabledByCluster = true, map[gardencorev1beta1.ClusterType][]autoEnabledExtension{}
	for _, object := range slices.Concat(s.lister.List(kindControllerRegistration), s.lister.List(kindOperatorExtension)) {
		// both kinds have spec.resources
		registration := toTyped[gardencorev1beta1.ControllerRegistration](object)
		if registration == nil {
			continue
		}
		for _, r := range registration.Spec.Resources {
			for _, enabled := range r.AutoEnable {
				if r.Kind == "Extension" {
					s.autoEnabledByCluster[enabled] = append(s.autoEnabledByCluster[enabled], autoEnabledExtension{r.Type, r.WorkerlessSupported != nil && *r.WorkerlessSupported})
				}
			}
		}
	}
	return s.autoEnabledByCluster[cluster]
}

// addExtensionLabels adds the enabled extensions of a cluster: the defaults and its own. Source:
// pkg/utils/gardener (ComputeEnabledTypesForKindExtension…).
func (s *Mutator) addExtensionLabels(wanted labelSet, cluster gardencorev1beta1.ClusterType, own []gardencorev1beta1.Extension, workerless bool) {
	for _, extension := range s.autoEnabledExtensions(cluster) {
		if !workerless || extension.supportsWorkerless {
			wanted.addType(labelExtension, extension.extensionType)
		}
	}
	for _, extension := range own {
		if extension.Disabled != nil && *extension.Disabled {
			delete(wanted, labelExtension+gardencorev1beta1.ExtensionTypeSuffix+extension.Type)
		} else {
			wanted.addType(labelExtension, extension.Type)
		}
	}
}

func (m *shootMutator) setLabels() {
	spec, wanted := &m.shoot.Spec, labelSet{}
	m.addExtensionLabels(wanted, gardencorev1beta1.ClusterTypeShoot, spec.Extensions, m.isWorkerless())
	wanted.addType(labelProvider, spec.Provider.Type)
	if spec.Networking != nil && spec.Networking.Type != nil {
		wanted.addType(labelNetworking, *spec.Networking.Type)
	}
	if spec.DNS != nil {
		for _, provider := range spec.DNS.Providers {
			if provider.Type != nil && *provider.Type != gardencorev1beta1.DNSUnmanaged {
				wanted.addType(labelDNSRecord, *provider.Type)
			}
		}
	}
	selfHosted := labelSet{}
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		if worker.CRI != nil {
			for _, runtime := range worker.CRI.ContainerRuntimes {
				wanted.addType(labelContainerRuntime, runtime.Type)
			}
		}
		if worker.Machine.Image != nil {
			wanted.addType(labelOperatingSystem, worker.Machine.Image.Name)
		}
		if worker.ControlPlane == nil {
			continue
		}
		selfHosted[gardencorev1beta1.ShootSelfHosted] = labelTrue
		if exposure := worker.ControlPlane.Exposure; exposure != nil && exposure.Extension != nil && exposure.Extension.Type != nil {
			wanted.addType(labelExposure, *exposure.Extension.Type)
		}
	}
	m.syncExtensionLabels(m.shoot, wanted)
	m.syncSeedLabels(m.shoot, spec.SeedName, m.shoot.Status.SeedName)
	m.mutationID = shootSelfHostedLabel
	m.syncLabels(m.shoot, selfHosted, "a pool of the Shoot is for its control plane", func(key string) bool { return key == gardencorev1beta1.ShootSelfHosted })
}
