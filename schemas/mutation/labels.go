package mutation

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// yes is the value of boolean labels.
const yes = "true"

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

func labelKinds() []string {
	return []string{labelExtension, labelProvider, labelDNSRecord, labelNetworking, labelOperatingSystem, labelContainerRuntime, labelExposure}
}

// labelledKinds returns the kinds with extension labels.
func labelledKinds() []string {
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

func (l labelSet) add(kind, typ string) {
	if typ != "" {
		l[kind+gardencorev1beta1.ExtensionTypeSuffix+typ] = yes
	}
}

// extensionLabels sets the extension labels of an object and removes others. Source:
// plugin/pkg/global/extensionlabels.
func (r *recorder) extensionLabels(object metav1.Object, wanted labelSet) {
	r.id = anyExtensionLabels
	r.maintain(object, wanted, "the object uses extensions of this type", func(key string) bool {
		return slices.ContainsFunc(labelKinds(), func(kind string) bool { return strings.HasPrefix(key, kind+gardencorev1beta1.ExtensionTypeSuffix) })
	})
}

// seedLabels sets one label per Seed and removes other Seed labels. Source: pkg/utils/gardener
// (MaintainSeedNameLabels).
func (r *recorder) seedLabels(object metav1.Object, names ...*string) {
	r.id = anySeedLabels
	wanted := labelSet{}
	for _, name := range names {
		if name != nil && *name != "" {
			wanted[gardencorev1beta1.NameSeedPrefix+*name] = yes
		}
	}
	r.maintain(object, wanted, "the object concerns this Seed", func(key string) bool { return strings.HasPrefix(key, gardencorev1beta1.NameSeedPrefix) })
}

// maintain makes the owned labels of an object equal to the wanted ones.
func (r *recorder) maintain(object metav1.Object, wanted labelSet, reason string, ours func(key string) bool) {
	labels := maps.Clone(object.GetLabels())
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if _, stays := wanted[key]; ours(key) && !stays {
			delete(labels, key)
			r.filled("metadata.labels["+key+"]", nil, "kept by the API: no longer so")
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
		r.filled("metadata.labels["+key+"]", wanted[key], "%s", reason)
	}
	object.SetLabels(labels)
}

// autoEnabled is an extension that is enabled by default.
type autoEnabled struct {
	typ        string
	workerless bool
}

// autoEnabled returns the extensions that ControllerRegistrations and Extensions enable for all
// clusters of a type.
func (s *Surroundings) autoEnabled(cluster gardencorev1beta1.ClusterType) []autoEnabled {
	if s.askedEnabled {
		return s.enabled[cluster]
	}
	s.askedEnabled, s.enabled = true, map[gardencorev1beta1.ClusterType][]autoEnabled{}
	for _, object := range slices.Concat(s.around.List(kindControllerRegistration), s.around.List(kindOperatorExtension)) {
		// both kinds have spec.resources
		registration := read[gardencorev1beta1.ControllerRegistration](object)
		if registration == nil {
			continue
		}
		for _, r := range registration.Spec.Resources {
			for _, enabled := range r.AutoEnable {
				if r.Kind == "Extension" {
					s.enabled[enabled] = append(s.enabled[enabled], autoEnabled{r.Type, r.WorkerlessSupported != nil && *r.WorkerlessSupported})
				}
			}
		}
	}
	return s.enabled[cluster]
}

// extensions adds the enabled extensions of a cluster: the defaults and its own. Source:
// pkg/utils/gardener (ComputeEnabledTypesForKindExtension…).
func (s *Surroundings) extensions(wanted labelSet, cluster gardencorev1beta1.ClusterType, own []gardencorev1beta1.Extension, workerless bool) {
	for _, extension := range s.autoEnabled(cluster) {
		if !workerless || extension.workerless {
			wanted.add(labelExtension, extension.typ)
		}
	}
	for _, extension := range own {
		if extension.Disabled != nil && *extension.Disabled {
			delete(wanted, labelExtension+gardencorev1beta1.ExtensionTypeSuffix+extension.Type)
		} else {
			wanted.add(labelExtension, extension.Type)
		}
	}
}

func (m *shootMutator) labels() {
	spec, wanted := &m.shoot.Spec, labelSet{}
	m.extensions(wanted, gardencorev1beta1.ClusterTypeShoot, spec.Extensions, m.workerless())
	wanted.add(labelProvider, spec.Provider.Type)
	if spec.Networking != nil && spec.Networking.Type != nil {
		wanted.add(labelNetworking, *spec.Networking.Type)
	}
	if spec.DNS != nil {
		for _, provider := range spec.DNS.Providers {
			if provider.Type != nil && *provider.Type != gardencorev1beta1.DNSUnmanaged {
				wanted.add(labelDNSRecord, *provider.Type)
			}
		}
	}
	selfHosted := labelSet{}
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		if worker.CRI != nil {
			for _, runtime := range worker.CRI.ContainerRuntimes {
				wanted.add(labelContainerRuntime, runtime.Type)
			}
		}
		if worker.Machine.Image != nil {
			wanted.add(labelOperatingSystem, worker.Machine.Image.Name)
		}
		if worker.ControlPlane == nil {
			continue
		}
		selfHosted[gardencorev1beta1.ShootSelfHosted] = yes
		if exposure := worker.ControlPlane.Exposure; exposure != nil && exposure.Extension != nil && exposure.Extension.Type != nil {
			wanted.add(labelExposure, *exposure.Extension.Type)
		}
	}
	m.extensionLabels(m.shoot, wanted)
	m.seedLabels(m.shoot, spec.SeedName, m.shoot.Status.SeedName)
	m.id = shootSelfHostedLabel
	m.maintain(m.shoot, selfHosted, "a pool of the Shoot is for its control plane", func(key string) bool { return key == gardencorev1beta1.ShootSelfHosted })
}
