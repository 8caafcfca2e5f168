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

// keyRotationPeriod is how often the key of etcd is rotated in Shoots that are new.
const keyRotationPeriod = 28 * 24 * time.Hour

// shootMutator works on one Shoot.
type shootMutator struct {
	*Surroundings
	*recorder
	shoot, old *gardencorev1beta1.Shoot
	profile    *profile
	// created turns on what only new Shoots get.
	created bool
	// anyVersion takes a version that cannot be chosen at the time before none.
	anyVersion bool
}

// Shoot gives a Shoot the defaults of the API and what mutations fill in; only the latter is in the
// result. old is the Shoot before the change, nil for a new one. A Shoot that is being deleted gets
// the defaults only.
func (s *Surroundings) Shoot(shoot, old *gardencorev1beta1.Shoot) Result {
	return s.fillShoot(shoot, old, old == nil, false)
}

// ShootSince is Shoot for a declaration that stands for the whole Shoot, at a later time than
// before: what only new Shoots get it gets again, since nothing else says that it has it, and what
// it leaves open stays as it was before. Nil before is the same as Shoot.
func (s *Surroundings) ShootSince(shoot, before *gardencorev1beta1.Shoot) Result {
	return s.fillShoot(shoot, before, true, false)
}

// RenderedShoot is ShootSince for rendering, where nobody knows whether the Shoot is new. A version
// that is left open, and of which none can be chosen at the time, is the newest one that the
// profile lists: the Shoot may have had it before it expired. The problem says so all the same.
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
	m.architectures() // the default of the API is for types that do not say it
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
	// Blocks that came in have defaults, too.
	gardencorev1beta1.SetDefaults_Shoot(shoot)
	return m.Result
}

func (m *shootMutator) workerless() bool { return len(m.shoot.Spec.Provider.Workers) == 0 }

// oldWorker is the pool of a name before the change.
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

// before says whether the version of the Shoot is older than a minor version; one that leaves it
// open counts as older.
func (m *shootMutator) before(minor uint64) bool {
	version, err := semver.NewVersion(m.shoot.Spec.Kubernetes.Version)
	return m.shoot.Spec.Kubernetes.Version == "" || err == nil && version.Major() == 1 && version.Minor() < minor
}

// profileName: until 1.34 Shoots may use the older field. Source: pkg/api/core/shoot
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

// dnsCredentials: until 1.35 providers may use the older field. Source:
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

// networks: what the Shoot leaves open comes from its Seed. A Shoot without workers and with IPv6
// gets a range for services that is made of its name, where upstream draws lots, so that the same
// declaration always means the same. The ranges from before stay: they cannot change, whatever the
// Seed says by now. Source: plugin/pkg/shoot/mutator (defaultShootNetworks).
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

// keepText fills in the value from before.
func (m *shootMutator) keepText(field string, to **string, before *string) {
	if *to == nil && before != nil {
		value := *before
		*to = &value
		m.filled(field, value, "the one from before")
	}
}

// ofFamily says whether a range is of one of the families.
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

// localServices is a /112 of RFC 4193 with a global id of 40 bits.
func localServices(namespace, name string) string {
	id := sha256.Sum256([]byte(namespace + "/" + name))
	address := netip.AddrFrom16([16]byte{0xfd, id[0], id[1], id[2], id[3], id[4]})
	return netip.PrefixFrom(address, 112).String()
}

// keyRotation: Source: plugin/pkg/shoot/mutator (defaultMaintenanceWindow).
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

// verticalPodAutoscaler: Source: plugin/pkg/shoot/vpa.
func (m *shootMutator) verticalPodAutoscaler() {
	if m.workerless() || m.shoot.Spec.Kubernetes.VerticalPodAutoscaler != nil {
		return
	}
	m.id = shootVPA
	m.shoot.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true}
	m.filled("spec.kubernetes.verticalPodAutoscaler.enabled", true, "enabled in new Shoots with workers")
}

// kubeReserved: Source: plugin/pkg/shoot/resourcereservation (with its default configuration).
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

// seedOf is the Seed of the Shoot, nil if it has none yet, or it is not known.
func (m *shootMutator) seedOf() *gardencorev1beta1.Seed {
	if name := m.shoot.Spec.SeedName; name != nil && *name != "" {
		return m.seed(*name)
	}
	return nil
}
