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
	*Surroundings
	*recorder
	shoot, old *gardencorev1beta1.Shoot
	profile    *profile
	// created enables mutations of new Shoots.
	created bool
	// anyVersion accepts a version that is not supported now, if no other exists.
	anyVersion bool
}

// Shoot applies API defaults and mutations to a Shoot. The result contains only the mutations. old
// is nil for a new Shoot. A Shoot in deletion only gets defaults.
func (s *Surroundings) Shoot(shoot, old *gardencorev1beta1.Shoot) Result {
	return s.fillShoot(shoot, old, old == nil, false)
}

// ShootSince is Shoot for a declaration that is the whole Shoot, with its previous revision. It
// repeats the mutations of new Shoots, as nothing else stores their results, and fills in previous
// values. Without before, it is Shoot.
func (s *Surroundings) ShootSince(shoot, before *gardencorev1beta1.Shoot) Result {
	return s.fillShoot(shoot, before, true, false)
}

// RenderedShoot is ShootSince for rendering, where the Shoot may be new or old. If no supported
// version fits, it chooses the newest listed version, which the Shoot may have had before its
// expiration. The result reports the problem, too.
func (s *Surroundings) RenderedShoot(shoot, before *gardencorev1beta1.Shoot) Result {
	return s.fillShoot(shoot, before, true, true)
}

func (s *Surroundings) fillShoot(shoot, old *gardencorev1beta1.Shoot, created, anyVersion bool) Result {
	if shoot.DeletionTimestamp != nil {
		gardencorev1beta1.SetDefaults_Shoot(shoot)
		return Result{}
	}
	m := &shootMutator{
		Surroundings: s, recorder: &recorder{kind: kindShoot.Kind, namespace: shoot.Namespace, name: shoot.Name},
		shoot: shoot, old: old, profile: s.profileOf(shoot), created: created, anyVersion: anyVersion,
	}
	m.architectures() // before the API default, which covers other types
	gardencorev1beta1.SetDefaults_Shoot(shoot)
	m.profileName()
	if created {
		m.tolerations()
		m.exposureClass()
	}
	m.dns()
	m.networks()
	m.kubernetesVersions()
	m.machineImages()
	m.dnsCredentials()
	if created {
		m.keyRotation()
		m.verticalPodAutoscaler()
	}
	m.kubeReserved()
	m.labels()
	// New substructures have defaults, too.
	gardencorev1beta1.SetDefaults_Shoot(shoot)
	return m.Result
}

func (m *shootMutator) workerless() bool { return len(m.shoot.Spec.Provider.Workers) == 0 }

// oldWorker returns the previous revision of a pool.
func (m *shootMutator) oldWorker(name string) *gardencorev1beta1.Worker {
	if m.old == nil {
		return nil
	}
	for i := range m.old.Spec.Provider.Workers {
		if m.old.Spec.Provider.Workers[i].Name == name {
			return &m.old.Spec.Provider.Workers[i]
		}
	}
	return nil
}

// before reports whether the Kubernetes version is below 1.minor; an omitted version is.
func (m *shootMutator) before(minor uint64) bool {
	version, err := semver.NewVersion(m.shoot.Spec.Kubernetes.Version)
	return m.shoot.Spec.Kubernetes.Version == "" || err == nil && version.Major() == 1 && version.Minor() < minor
}

// profileName copies the older field, which Shoots may use before 1.34. Source: pkg/api/core/shoot
// (SyncCloudProfileFields).
func (m *shootMutator) profileName() {
	const lastOfOldField = 34
	spec := &m.shoot.Spec
	if spec.CloudProfile != nil || spec.CloudProfileName == nil || *spec.CloudProfileName == "" || !m.before(lastOfOldField) {
		return
	}
	m.id = shootProfile
	spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: gardencorev1beta1.CloudProfileKind, Name: *spec.CloudProfileName}
	m.filled("spec.cloudProfile.kind", gardencorev1beta1.CloudProfileKind, "the kind that spec.cloudProfileName stands for")
	m.filled("spec.cloudProfile.name", *spec.CloudProfileName, "the name in spec.cloudProfileName")
}

// dnsCredentials syncs the older field, which providers may use before 1.35. Source:
// pkg/apiserver/registry/core/shoot (SyncDNSProviderCredentials).
func (m *shootMutator) dnsCredentials() {
	const lastOfOldField = 35
	if m.shoot.Spec.DNS == nil || !m.before(lastOfOldField) {
		return
	}
	m.id = shootDNSCredentials
	for i := range m.shoot.Spec.DNS.Providers {
		provider, field := &m.shoot.Spec.DNS.Providers[i], fmt.Sprintf("spec.dns.providers[%d]", i)
		switch ref := provider.CredentialsRef; {
		case provider.SecretName != nil && ref == nil:
			provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kindSecret.Kind, Name: *provider.SecretName}
			m.filled(field+".credentialsRef", provider.CredentialsRef, "the Secret of secretName")
		case provider.SecretName == nil && ref != nil && ref.APIVersion == "v1" && ref.Kind == kindSecret.Kind:
			name := ref.Name
			provider.SecretName = &name
			m.filled(field+".secretName", name, "the Secret of credentialsRef")
		}
	}
}

// networks fills in ranges from the Seed; immutable previous ranges take precedence. A Shoot
// without workers and with IPv6 gets a services range derived from its name. Upstream chooses a
// random range, but a declaration must give the same result each time. Source:
// plugin/pkg/shoot/mutator (defaultShootNetworks).
func (m *shootMutator) networks() {
	seed := m.seedOf()
	if m.shoot.Spec.Networking == nil {
		return
	}
	m.id = shootNetworks
	if m.old != nil && m.old.Spec.Networking != nil {
		m.keepText("spec.networking.pods", &m.shoot.Spec.Networking.Pods, m.old.Spec.Networking.Pods)
		m.keepText("spec.networking.services", &m.shoot.Spec.Networking.Services, m.old.Spec.Networking.Services)
	}
	if seed == nil {
		return
	}
	networking, defaults := m.shoot.Spec.Networking, seed.Spec.Networks.ShootDefaults
	if defaults == nil {
		defaults = &gardencorev1beta1.ShootNetworks{}
	}
	take := func(field string, to **string, from *string) {
		if *to == nil && from != nil && ofFamily(*from, networking.IPFamilies) {
			value := *from
			*to = &value
			m.filled("spec.networking."+field, value, "the one that Seed %s has for Shoots", seed.Name)
		}
	}
	if !m.workerless() {
		take("pods", &networking.Pods, defaults.Pods)
	}
	take("services", &networking.Services, defaults.Services)
	if networking.Services == nil && m.workerless() && slices.Contains(networking.IPFamilies, gardencorev1beta1.IPFamilyIPv6) {
		own := localServices(m.shoot.Namespace, m.shoot.Name)
		networking.Services = &own
		m.filled("spec.networking.services", own, "a range of unique local addresses, made of the name of the Shoot")
	}
}

// keepText fills in the previous value.
func (m *shootMutator) keepText(field string, to **string, before *string) {
	if *to == nil && before != nil {
		value := *before
		*to = &value
		m.filled(field, value, "the one from before")
	}
}

// ofFamily reports whether a range belongs to one of the families.
func ofFamily(cidr string, families []gardencorev1beta1.IPFamily) bool {
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

// localServices returns a /112 range of RFC 4193 with a global id of 40 bits.
func localServices(namespace, name string) string {
	id := sha256.Sum256([]byte(namespace + "/" + name))
	address := netip.AddrFrom16([16]byte{0xfd, id[0], id[1], id[2], id[3], id[4]})
	return netip.PrefixFrom(address, 112).String()
}

// keyRotation sets the rotation period. Source: plugin/pkg/shoot/mutator
// (defaultMaintenanceWindow).
func (m *shootMutator) keyRotation() {
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
	m.id = shootRotation
	period := metav1.Duration{Duration: keyRotationPeriod}
	maintenance.AutoRotation.Credentials.ETCDEncryptionKey = &gardencorev1beta1.MaintenanceRotationConfig{RotationPeriod: &period}
	m.filled("spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod", period.Duration.String(), "the period of new Shoots")
}

// verticalPodAutoscaler enables the autoscaler. Source: plugin/pkg/shoot/vpa.
func (m *shootMutator) verticalPodAutoscaler() {
	if m.workerless() || m.shoot.Spec.Kubernetes.VerticalPodAutoscaler != nil {
		return
	}
	m.id = shootVPA
	m.shoot.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true}
	m.filled("spec.kubernetes.verticalPodAutoscaler.enabled", true, "enabled in new Shoots with workers")
}

// kubeReserved sets reservations. Source: plugin/pkg/shoot/resourcereservation (default
// configuration).
func (m *shootMutator) kubeReserved() {
	if m.workerless() {
		return
	}
	m.id = shootReservation
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
			m.filled("spec.kubernetes.kubelet.kubeReserved."+name, value, "the usual reservation")
		}
	}
	reserve("cpu", &kubelet.KubeReserved.CPU, "80m")
	reserve("memory", &kubelet.KubeReserved.Memory, "1Gi")
	reserve("pid", &kubelet.KubeReserved.PID, "20k")
}

// seedOf returns the Seed of the Shoot; nil if it has none or the Seed is unknown.
func (m *shootMutator) seedOf() *gardencorev1beta1.Seed {
	if name := m.shoot.Spec.SeedName; name != nil && *name != "" {
		return m.seed(*name)
	}
	return nil
}
