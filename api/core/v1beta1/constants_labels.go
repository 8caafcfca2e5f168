// SPDX-License-Identifier: Apache-2.0

package v1beta1

// GardenRole is the role of an object in Gardener.
const GardenRole = "gardener.cloud/role"

// Values of GardenRole.
const (
	// GardenRoleGarden marks namespace `garden`.
	GardenRoleGarden = "garden"
	// GardenRoleProject marks namespaces of Projects.
	GardenRoleProject = "project"
	// GardenRoleSeed marks Seeds and the namespaces of Seeds in the garden.
	GardenRoleSeed = "seed"
	// GardenRoleShoot marks namespaces of control planes.
	GardenRoleShoot = "shoot"
	// GardenRoleExtension marks namespaces of extensions.
	GardenRoleExtension = "extension"
	// GardenRoleControlPlane marks objects of a control plane.
	GardenRoleControlPlane = "controlplane"
	// GardenRoleSystemComponent marks system components in a cluster.
	GardenRoleSystemComponent = "system-component"
	// GardenRoleSeedSystemComponent marks system components in a seed.
	GardenRoleSeedSystemComponent = "seed-system-component"
	// GardenRoleMonitoring marks objects of monitoring.
	GardenRoleMonitoring = "monitoring"
	// GardenRoleLogging marks objects of logging.
	GardenRoleLogging = "logging"
	// GardenRoleObservability marks objects of monitoring and logging.
	GardenRoleObservability = "observability"
	// GardenRoleIstioSystem marks the namespace of istiod.
	GardenRoleIstioSystem = "istio-system"
	// GardenRoleIstioIngress marks namespaces of ingress gateways.
	GardenRoleIstioIngress = "istio-ingress"
	// GardenRoleKubeconfig marks Secrets with kubeconfigs.
	GardenRoleKubeconfig = "kubeconfig"
	// GardenRoleCACluster marks ConfigMaps and Secrets with the certificate authority of a cluster.
	GardenRoleCACluster = "ca-cluster"
	// GardenRoleSSHKeyPair marks Secrets with SSH keys.
	GardenRoleSSHKeyPair = "ssh-keypair"
	// GardenRoleDefaultDomain marks Secrets with a default domain.
	GardenRoleDefaultDomain = "default-domain"
	// GardenRoleInternalDomain marks the Secret with the internal domain.
	GardenRoleInternalDomain = "internal-domain"
	// GardenRoleGardenCert marks the Secret with the server certificate of the Garden.
	GardenRoleGardenCert = "garden-cert"
	// GardenRoleControlPlaneWildcardCert marks the Secret with the server certificate of a Seed.
	GardenRoleControlPlaneWildcardCert = "controlplane-cert"
	// GardenRoleGlobalMonitoring marks the Secret with the passwords of the landscape's monitoring.
	GardenRoleGlobalMonitoring = "global-monitoring"
	// GardenRoleGlobalShootRemoteWriteMonitoring marks the Secret with the passwords for remote
	// writes of Shoots.
	GardenRoleGlobalShootRemoteWriteMonitoring = "global-shoot-remote-write-monitoring"
	// GardenRoleAlerting marks the Secret with the receivers of alerts.
	GardenRoleAlerting = "alerting"
	// GardenRoleHelmPullSecret marks Secrets for pulling charts.
	GardenRoleHelmPullSecret = "helm-pull-secret"
	// GardenRoleExtensionProjectRole marks roles of Projects that the landscape defines.
	GardenRoleExtensionProjectRole = "extension-project-role"
)

// Labels of declared objects and namespaces.
const (
	// ShootStatusLabel is the health of a Shoot as a whole: `healthy`, `progressing`, `unhealthy`
	// or `unknown`.
	ShootStatusLabel = "shoot.gardener.cloud/status"
	// ShootSelfHosted marks Shoots that run their own control plane.
	ShootSelfHosted = "shoot.gardener.cloud/self-hosted"
	// ShootPurposeLabel is the purpose of a Shoot, on objects that outlive it.
	ShootPurposeLabel = "shoot.gardener.cloud/purpose"
	// ShootNoCleanup `true` excludes an object from the cleanup of its Shoot; Gardener deletes it
	// itself.
	ShootNoCleanup = "shoot.gardener.cloud/no-cleanup"
	// ProjectName is the name of the Project that a namespace belongs to.
	ProjectName = "project.gardener.cloud/name"
	// NameSeedPrefix starts labels with the names of the Seeds that an object concerns; their value
	// is `true`.
	NameSeedPrefix = "name.seed.gardener.cloud/"
	// SeedSelfHostedShootCluster marks Seeds that are self-hosted Shoots.
	SeedSelfHostedShootCluster = "seed.gardener.cloud/self-hosted-shoot-cluster"
	// ExtensionTypeSuffix ends the prefix of labels with the extension types that an object uses,
	// as in `network.extensions.gardener.cloud/calico=true`.
	ExtensionTypeSuffix = ".extensions.gardener.cloud/"
	// LabelShootProvider is the provider of the Shoot, on the namespace of its control plane.
	LabelShootProvider = "shoot.gardener.cloud/provider"
	// LabelSeedProvider is the provider of the Seed, on the same namespace.
	LabelSeedProvider = "seed.gardener.cloud/provider"
	// LabelNetworkingProvider is the network plugin, on the same namespace.
	LabelNetworkingProvider = "networking.shoot.gardener.cloud/provider"
	// LabelCareConditionType is the type of the condition that a ManagedResource counts for.
	LabelCareConditionType = "care.gardener.cloud/condition-type"
	// HighAvailabilityConfigConsider `true` makes the resource manager spread the pods of a
	// namespace.
	HighAvailabilityConfigConsider = "high-availability-config.resources.gardener.cloud/consider"
	// HighAvailabilityConfigType is the kind of a workload: `controller` or `server`.
	HighAvailabilityConfigType = "high-availability-config.resources.gardener.cloud/type"
	// LabelApp is the name of the component that a pod belongs to.
	LabelApp = "app"
	// LabelRole is the role of a pod within the component.
	LabelRole = "role"
)

// Labels of pods that network policies read; their value is LabelNetworkPolicyAllowed.
const (
	// LabelNetworkPolicyToDNS allows DNS queries.
	LabelNetworkPolicyToDNS = "networking.gardener.cloud/to-dns"
	// LabelNetworkPolicyToPublicNetworks allows connections to public networks.
	LabelNetworkPolicyToPublicNetworks = "networking.gardener.cloud/to-public-networks"
	// LabelNetworkPolicyToPrivateNetworks allows connections to private networks outside the
	// cluster.
	LabelNetworkPolicyToPrivateNetworks = "networking.gardener.cloud/to-private-networks"
	// LabelNetworkPolicyToBlockedCIDRs allows connections to networks that are otherwise blocked.
	LabelNetworkPolicyToBlockedCIDRs = "networking.gardener.cloud/to-blocked-cidrs"
	// LabelNetworkPolicyToRuntimeAPIServer allows connections to the API server of the pod's
	// cluster.
	LabelNetworkPolicyToRuntimeAPIServer = "networking.gardener.cloud/to-runtime-apiserver"
	// LabelNetworkPolicyAccessTargetAPIServer allows connections to the API server that the
	// component serves.
	LabelNetworkPolicyAccessTargetAPIServer = "networking.gardener.cloud/access-target-apiserver"
	// LabelNetworkPolicyToPrefix starts labels that allow connections to a port of a Service.
	LabelNetworkPolicyToPrefix = "networking.resources.gardener.cloud/to-"
	// LabelNetworkPolicyAllowed is the value of these labels.
	LabelNetworkPolicyAllowed = "allowed"
)

// Finalizers of declared objects.
const (
	// GardenerName is the finalizer of objects that Gardener must tear down.
	GardenerName = "gardener"
	// ExternalGardenerName is the older form of GardenerName.
	ExternalGardenerName = "gardener.cloud/gardener"
	// GardenFinalizer is the finalizer of a Garden.
	GardenFinalizer = "gardener.cloud/operator"
	// ReferenceProtectionFinalizer protects objects that others refer to.
	ReferenceProtectionFinalizer = "gardener.cloud/reference-protection"
	// ControllerRegistrationFinalizer protects Seeds and Shoots that extensions are installed for.
	ControllerRegistrationFinalizer = "core.gardener.cloud/controllerregistration"
	// ControllerInstallationFinalizer protects a ControllerInstallation whose extension is
	// installed.
	ControllerInstallationFinalizer = "core.gardener.cloud/controllerinstallation"
)

// Names of namespaces.
const (
	// GardenNamespace is the namespace of the landscape itself, in the runtime cluster, the virtual
	// garden and seeds.
	GardenNamespace = "garden"
	// GardenerSystemSeedLeaseNamespace holds the heartbeats of gardenlets.
	GardenerSystemSeedLeaseNamespace = "gardener-system-seed-lease"
	// GardenerSystemPublicNamespace holds objects that everybody may read.
	GardenerSystemPublicNamespace = "gardener-system-public"
	// ProjectNamespacePrefix starts names of namespaces of Projects.
	ProjectNamespacePrefix = "garden-"
	// SeedNamespacePrefix starts names of the namespaces of Seeds in the garden.
	SeedNamespacePrefix = "seed-"
	// TechnicalIDPrefix starts the technical ids of Shoots: `shoot--<project>--<shoot>`.
	TechnicalIDPrefix = "shoot--"
)
