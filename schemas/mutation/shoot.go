// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// keyRotationPeriod is the rotation period of the etcd key in new Shoots.
const keyRotationPeriod = 28 * 24 * time.Hour

// shootMutator mutates one Shoot.
type shootMutator struct {
	*Mutator
	*changeRecorder
	shoot, oldShoot *gardencorev1beta1.Shoot
	profile         *shootProfileSpec
	// isNew enables mutations of new Shoots.
	isNew bool
	// allowsUnusable accepts a version that is not supported now, if no other exists.
	allowsUnusable bool
}

// MutateShoot applies API defaults and mutations to a Shoot. The result contains only the
// mutations. old is nil for a new Shoot. A Shoot in deletion only gets defaults.
func (s *Mutator) MutateShoot(shoot, old *gardencorev1beta1.Shoot) Result {
	return s.mutateShoot(shoot, old, old == nil, false)
}

// MutateShootRevision is Shoot for a declaration that is the whole Shoot, with its previous
// revision. It repeats the mutations of new Shoots, as nothing else stores their results, and fills
// in previous values. Without before, it is Shoot.
func (s *Mutator) MutateShootRevision(shoot, before *gardencorev1beta1.Shoot) Result {
	return s.mutateShoot(shoot, before, true, false)
}

// MutateRenderedShoot is MutateShootRevision for rendering, where the Shoot may be new or old. If
// no supported version fits, it chooses the newest listed version, which the Shoot may have had
// before its expiration. The result reports the problem, too.
func (s *Mutator) MutateRenderedShoot(shoot, before *gardencorev1beta1.Shoot) Result {
	return s.mutateShoot(shoot, before, true, true)
}

func (s *Mutator) mutateShoot(shoot, old *gardencorev1beta1.Shoot, created, anyVersion bool) Result {
	if shoot.DeletionTimestamp != nil {
		gardencorev1beta1.SetDefaults_Shoot(shoot)
		return Result{}
	}
	m := &shootMutator{
		Mutator: s, changeRecorder: &changeRecorder{kind: kindShoot.Kind, namespace: shoot.Namespace, name: shoot.Name},
		shoot: shoot, oldShoot: old, profile: s.profileOf(shoot), isNew: created, allowsUnusable: anyVersion,
	}
	m.setArchitectures() // before the API default, which covers other types
	gardencorev1beta1.SetDefaults_Shoot(shoot)
	m.syncProfileFields()
	if created {
		m.addProjectTolerations()
		m.addExposureClass()
	}
	m.setDNS()
	m.setNetworks()
	m.setKubernetesVersions()
	m.setMachineImages()
	m.syncDNSCredentials()
	if created {
		m.setKeyRotation()
		m.enableVPA()
	}
	m.setKubeReserved()
	m.setLabels()
	// New substructures have defaults, too.
	gardencorev1beta1.SetDefaults_Shoot(shoot)
	return m.Result
}

func (m *shootMutator) isWorkerless() bool { return len(m.shoot.Spec.Provider.Workers) == 0 }

// oldWorker returns the previous revision of a pool.
func (m *shootMutator) oldWorker(name string) *gardencorev1beta1.Worker {
	if m.oldShoot == nil {
		return nil
	}
	for i := range m.oldShoot.Spec.Provider.Workers {
		if m.oldShoot.Spec.Provider.Workers[i].Name == name {
			return &m.oldShoot.Spec.Provider.Workers[i]
		}
	}
	return nil
}

// isKubernetesBefore reports whether the Kubernetes version is below 1.minor; an omitted version
// is.
func (m *shootMutator) isKubernetesBefore(minor uint64) bool {
	version, err := semver.NewVersion(m.shoot.Spec.Kubernetes.Version)
	return m.shoot.Spec.Kubernetes.Version == "" || err == nil && version.Major() == 1 && version.Minor() < minor
}

// syncProfileFields copies the older field, which Shoots may use before 1.34. Source:
// pkg/api/core/shoot (SyncCloudProfileFields).
func (m *shootMutator) syncProfileFields() {
	const lastOfOldField = 34
	spec := &m.shoot.Spec
	if spec.CloudProfile != nil || spec.CloudProfileName == nil || *spec.CloudProfileName == "" || !m.isKubernetesBefore(lastOfOldField) {
		return
	}
	m.mutationID = shootProfileFields
	spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: gardencorev1beta1.CloudProfileKind, Name: *spec.CloudProfileName}
	m.recordChange("spec.cloudProfile.kind", gardencorev1beta1.CloudProfileKind, "the kind that spec.cloudProfileName stands for")
	m.recordChange("spec.cloudProfile.name", *spec.CloudProfileName, "the name in spec.cloudProfileName")
}

// syncDNSCredentials syncs the older field, which providers may use before 1.35. Source:
// pkg/apiserver/registry/core/shoot (SyncDNSProviderCredentials).
func (m *shootMutator) syncDNSCredentials() {
	const lastOfOldField = 35
	if m.shoot.Spec.DNS == nil || !m.isKubernetesBefore(lastOfOldField) {
		return
	}
	m.mutationID = shootDNSCredentials
	for i := range m.shoot.Spec.DNS.Providers {
		provider, field := &m.shoot.Spec.DNS.Providers[i], fmt.Sprintf("spec.dns.providers[%d]", i)
		switch ref := provider.CredentialsRef; {
		case provider.SecretName != nil && ref == nil:
			provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kindSecret.Kind, Name: *provider.SecretName}
			m.recordChange(field+".credentialsRef", provider.CredentialsRef, "the Secret of secretName")
		case provider.SecretName == nil && ref != nil && ref.APIVersion == "v1" && ref.Kind == kindSecret.Kind:
			name := ref.Name
			provider.SecretName = &name
			m.recordChange(field+".secretName", name, "the Secret of credentialsRef")
		}
	}
}

// setNetworks fills in ranges from the Seed; immutable previous ranges take precedence. A Shoot
// without workers and with IPv6 gets a services range derived from its name. Upstream chooses a
// random range, but a declaration must give the same result each time. Source:
// plugin/pkg/shoot/mutator (defaultShootNetworks).
func (m *shootMutator) setNetworks() {
	seed := m.seedOfShoot()
	if m.shoot.Spec.Networking == nil {
		return
	}
	m.mutationID = shootNetworks
	if m.oldShoot != nil && m.oldShoot.Spec.Networking != nil {
		m.restoreText("spec.networking.pods", &m.shoot.Spec.Networking.Pods, m.oldShoot.Spec.Networking.Pods)
		m.restoreText("spec.networking.services", &m.shoot.Spec.Networking.Services, m.oldShoot.Spec.Networking.Services)
	}
	if seed == nil {
		return
	}
	networking, defaults := m.shoot.Spec.Networking, seed.Spec.Networks.ShootDefaults
	if defaults == nil {
		defaults = &gardencorev1beta1.ShootNetworks{}
	}
	take := func(field string, to **string, from *string) {
		if *to == nil && from != nil && isOfFamily(*from, networking.IPFamilies) {
			value := *from
			*to = &value
			m.recordChange("spec.networking."+field, value, "the range that Seed %s has for Shoots", seed.Name)
		}
	}
	if !m.isWorkerless() {
		take("pods", &networking.Pods, defaults.Pods)
	}
	take("services", &networking.Services, defaults.Services)
	if networking.Services == nil && m.isWorkerless() && slices.Contains(networking.IPFamilies, gardencorev1beta1.IPFamilyIPv6) {
		own := localServicesRange(m.shoot.Namespace, m.shoot.Name)
		networking.Services = &own
		m.recordChange("spec.networking.services", own, "a range of unique local addresses, made of the name of the Shoot")
	}
}

// restoreText fills in the previous value.
func (m *shootMutator) restoreText(field string, to **string, before *string) {
	if *to == nil && before != nil {
		value := *before
		*to = &value
		m.recordChange(field, value, "the previous value")
	}
}

// isOfFamily reports whether a range belongs to one of the families.
func isOfFamily(cidr string, families []gardencorev1beta1.IPFamily) bool {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return false
	}
	family := gardencorev1beta1.IPFamilyIPv6
	if prefix.Addr().Is4() {
		family = gardencorev1beta1.IPFamilyIPv4
	}
	return slices.Contains(families, family)
}

// localServicesRange returns a /112 range of RFC 4193 with a global id of 40 bits.
func localServicesRange(namespace, name string) string {
	id := sha256.Sum256([]byte(namespace + "/" + name))
	address := netip.AddrFrom16([16]byte{0xfd, id[0], id[1], id[2], id[3], id[4]})
	return netip.PrefixFrom(address, 112).String()
}

// setKeyRotation sets the rotation period. Source: plugin/pkg/shoot/mutator
// (defaultMaintenanceWindow).
func (m *shootMutator) setKeyRotation() {
	maintenance := m.shoot.Spec.Maintenance
	if maintenance == nil {
		maintenance = &gardencorev1beta1.Maintenance{}
		m.shoot.Spec.Maintenance = maintenance
	}
	if maintenance.AutoRotation == nil {
		maintenance.AutoRotation = &gardencorev1beta1.MaintenanceAutoRotation{}
	}
	if maintenance.AutoRotation.Credentials == nil {
		maintenance.AutoRotation.Credentials = &gardencorev1beta1.MaintenanceCredentialsAutoRotation{}
	}
	if maintenance.AutoRotation.Credentials.ETCDEncryptionKey != nil {
		return
	}
	m.mutationID = shootKeyRotation
	period := metav1.Duration{Duration: keyRotationPeriod}
	maintenance.AutoRotation.Credentials.ETCDEncryptionKey = &gardencorev1beta1.MaintenanceRotationConfig{RotationPeriod: &period}
	m.recordChange("spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod", period.Duration.String(), "the period of new Shoots")
}

// enableVPA enables the autoscaler. Source: plugin/pkg/shoot/vpa.
func (m *shootMutator) enableVPA() {
	if m.isWorkerless() || m.shoot.Spec.Kubernetes.VerticalPodAutoscaler != nil {
		return
	}
	m.mutationID = shootVPA
	m.shoot.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true}
	m.recordChange("spec.kubernetes.verticalPodAutoscaler.enabled", true, "enabled in new Shoots with workers")
}

// setKubeReserved sets reservations. Source: plugin/pkg/shoot/resourcereservation (default
// configuration).
func (m *shootMutator) setKubeReserved() {
	if m.isWorkerless() {
		return
	}
	m.mutationID = shootKubeReserved
	kubelet := m.shoot.Spec.Kubernetes.Kubelet
	if kubelet == nil {
		kubelet = &gardencorev1beta1.KubeletConfig{}
		m.shoot.Spec.Kubernetes.Kubelet = kubelet
	}
	if kubelet.KubeReserved == nil {
		kubelet.KubeReserved = &gardencorev1beta1.KubeletConfigReserved{}
	}
	reserve := func(name string, to **resource.Quantity, value string) {
		if *to == nil {
			quantity := resource.MustParse(value)
			*to = &quantity
			m.recordChange("spec.kubernetes.kubelet.kubeReserved."+name, value, "the usual reservation")
		}
	}
	reserve("cpu", &kubelet.KubeReserved.CPU, "80m")
	reserve("memory", &kubelet.KubeReserved.Memory, "1Gi")
	reserve("pid", &kubelet.KubeReserved.PID, "20k")
}

// seedOfShoot returns the Seed of the Shoot, or nil if it has none or the Seed is unknown.
func (m *shootMutator) seedOfShoot() *gardencorev1beta1.Seed {
	if name := m.shoot.Spec.SeedName; name != nil && *name != "" {
		return m.findSeed(*name)
	}
	return nil
}
