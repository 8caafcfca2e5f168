package v1beta1

// GardenRole says what an object is to Gardener.
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
	// GardenRoleGlobalShootRemoteWriteMonitoring marks the Secret with the passwords for remote writes of Shoots.
	GardenRoleGlobalShootRemoteWriteMonitoring = "global-shoot-remote-write-monitoring"
	// GardenRoleAlerting marks the Secret with the addresses that alerts go to.
	GardenRoleAlerting = "alerting"
	// GardenRoleHelmPullSecret marks Secrets for pulling charts.
	GardenRoleHelmPullSecret = "helm-pull-secret"
	// GardenRoleExtensionProjectRole marks roles of Projects that the landscape defines.
	GardenRoleExtensionProjectRole = "extension-project-role"
)

// Labels of declared objects and namespaces.
const (
	// ShootStatusLabel is the health of a Shoot as a whole: `healthy`, `progressing`, `unhealthy` or `unknown`.
	ShootStatusLabel = "shoot.gardener.cloud/status"
	// ShootSelfHosted marks Shoots that run their own control plane.
	ShootSelfHosted = "shoot.gardener.cloud/self-hosted"
	// ShootPurposeLabel is the purpose of a Shoot, on objects that outlive it.
	ShootPurposeLabel = "shoot.gardener.cloud/purpose"
	// ShootNoCleanup `true` keeps an object when the Shoot it is in is deleted; Gardener deletes it itself.
	ShootNoCleanup = "shoot.gardener.cloud/no-cleanup"
	// ProjectName is the name of the Project a namespace belongs to.
	ProjectName = "project.gardener.cloud/name"
	// NameSeedPrefix begins labels with the names of the Seeds an object concerns; their value is `true`.
	NameSeedPrefix = "name.seed.gardener.cloud/"
	// SeedSelfHostedShootCluster marks Seeds that are self-hosted Shoots.
	SeedSelfHostedShootCluster = "seed.gardener.cloud/self-hosted-shoot-cluster"
	// ExtensionTypeSuffix ends the prefix of labels with the extension types an object uses, as in
	// `network.extensions.gardener.cloud/calico=true`.
	ExtensionTypeSuffix = ".extensions.gardener.cloud/"
	// LabelShootProvider names the provider of the Shoot, on the namespace of its control plane.
	LabelShootProvider = "shoot.gardener.cloud/provider"
	// LabelSeedProvider names the provider of the Seed, on the same namespace.
	LabelSeedProvider = "seed.gardener.cloud/provider"
	// LabelNetworkingProvider names the network plugin, on the same namespace.
	LabelNetworkingProvider = "networking.shoot.gardener.cloud/provider"
	// LabelCareConditionType is the condition that judges a ManagedResource.
	LabelCareConditionType = "care.gardener.cloud/condition-type"
	// HighAvailabilityConfigConsider `true` has pods of a namespace spread by the resource manager.
	HighAvailabilityConfigConsider = "high-availability-config.resources.gardener.cloud/consider"
	// HighAvailabilityConfigType is the kind of a workload: `controller` or `server`.
	HighAvailabilityConfigType = "high-availability-config.resources.gardener.cloud/type"
	// LabelApp is the name of the component a pod belongs to.
	LabelApp = "app"
	// LabelRole is the part of the component a pod plays.
	LabelRole = "role"
)

// Labels of pods that network policies read; their value is LabelNetworkPolicyAllowed.
const (
	// LabelNetworkPolicyToDNS allows DNS queries.
	LabelNetworkPolicyToDNS = "networking.gardener.cloud/to-dns"
	// LabelNetworkPolicyToPublicNetworks allows connections to public networks.
	LabelNetworkPolicyToPublicNetworks = "networking.gardener.cloud/to-public-networks"
	// LabelNetworkPolicyToPrivateNetworks allows connections to private networks outside the cluster.
	LabelNetworkPolicyToPrivateNetworks = "networking.gardener.cloud/to-private-networks"
	// LabelNetworkPolicyToBlockedCIDRs allows connections to networks that are blocked otherwise.
	LabelNetworkPolicyToBlockedCIDRs = "networking.gardener.cloud/to-blocked-cidrs"
	// LabelNetworkPolicyToRuntimeAPIServer allows connections to the API server of the cluster the pod is in.
	LabelNetworkPolicyToRuntimeAPIServer = "networking.gardener.cloud/to-runtime-apiserver"
	// LabelNetworkPolicyAccessTargetAPIServer allows connections to the API server the component serves.
	LabelNetworkPolicyAccessTargetAPIServer = "networking.gardener.cloud/access-target-apiserver"
	// LabelNetworkPolicyToPrefix begins labels that allow connections to a port of a Service.
	LabelNetworkPolicyToPrefix = "networking.resources.gardener.cloud/to-"
	// LabelNetworkPolicyAllowed is the value of these labels.
	LabelNetworkPolicyAllowed = "allowed"
)

// Finalizers of declared objects.
const (
	// GardenerName is the finalizer of objects that Gardener has to take down.
	GardenerName = "gardener"
	// ExternalGardenerName is its older form.
	ExternalGardenerName = "gardener.cloud/gardener"
	// GardenFinalizer is the finalizer of a Garden.
	GardenFinalizer = "gardener.cloud/operator"
	// ReferenceProtectionFinalizer keeps objects that others refer to.
	ReferenceProtectionFinalizer = "gardener.cloud/reference-protection"
	// ControllerRegistrationFinalizer keeps Seeds and Shoots that extensions are installed for.
	ControllerRegistrationFinalizer = "core.gardener.cloud/controllerregistration"
	// ControllerInstallationFinalizer keeps a ControllerInstallation whose extension is installed.
	ControllerInstallationFinalizer = "core.gardener.cloud/controllerinstallation"
)

// Names of namespaces.
const (
	// GardenNamespace is the namespace of the landscape itself, in the runtime cluster, the virtual garden and seeds.
	GardenNamespace = "garden"
	// GardenerSystemSeedLeaseNamespace holds the heartbeats of gardenlets.
	GardenerSystemSeedLeaseNamespace = "gardener-system-seed-lease"
	// GardenerSystemPublicNamespace holds what everybody may read.
	GardenerSystemPublicNamespace = "gardener-system-public"
	// ProjectNamespacePrefix begins names of namespaces of Projects.
	ProjectNamespacePrefix = "garden-"
	// SeedNamespacePrefix begins names of the namespaces of Seeds in the garden.
	SeedNamespacePrefix = "seed-"
	// TechnicalIDPrefix begins the technical ids of Shoots: `shoot--<project>--<shoot>`.
	TechnicalIDPrefix = "shoot--"
)
