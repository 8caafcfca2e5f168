// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"slices"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
	"github.com/pergola-dev/pergola/schemas/unread"
)

// timeRuleIDs are the ids of rules that read the clock.
var timeRuleIDs = sync.OnceValue(func() map[string]bool {
	ids := map[string]bool{}
	for _, r := range allRules() {
		if r.Class == schemas.ClassTime {
			ids[r.ID] = true
		}
	}
	return ids
})

// IsTimeDependent reports whether a finding belongs to a rule that reads the clock. Such findings
// may change without a change of declarations.
func IsTimeDependent(v schemas.Violation) bool { return timeRuleIDs()[v.Rule] }

// allRules returns all rules in the order of their checks.
func allRules() []rule {
	def := func(kind, id, title, doc, source string, do func(*checker)) rule {
		return rule{schemas.Rule{ID: id, Kind: kind, Title: title, Doc: doc, Source: source, Language: "go", File: "schemas/crosscheck/rules.go", Scope: "landscape", Severity: schemas.SeverityError, Class: schemas.ClassStatic}, do}
	}
	warning := func(r rule) rule {
		r.Severity = schemas.SeverityWarning
		return r
	}
	const validator = "plugin/pkg/shoot/validator"
	const external = " Objects outside of the landscape are listed in landscape.yaml under spec.external."
	const autoscalerTitle, autoscalerSource = "A Seed in the runtime cluster and its Garden agree about the vertical pod autoscaler", "pkg/gardenlet/controller/seed/seed, pkg/operator/controller/garden/garden"
	const autoscalerDoc = "In that cluster only the setting of the Garden counts: the gardenlet neither installs nor removes definition and autoscaler. With the Garden off and the Seed on, no component installs one, and the gardenlet does not check that the cluster has the definition. With the Garden on and the Seed off, the autoscaler still runs; if the cluster has its own, two act on the same pods. This is a warning, because Git does not show whether the cluster has an autoscaler."
	const seedOfHostTitle = "A Seed has the provider, region, zones, networks, ingress domain and autoscaler of its Shoot"
	const seedOfHostDoc = "Leave them out: the API takes them from the Shoot, and rejects other values. Zones that the Seed had before stay."
	const seedDeclaredTitle, seedDeclaredSource = "A Seed is declared as its gardenlet writes it", "pkg/gardenlet/bootstrap, charts/gardener/gardenlet"
	const seedDeclaredDoc = "A gardenlet writes its Seed from its configuration. If the Seed is declared as well, use the same values in both, or remove one of them."
	all := []rule{
		def("Shoot", "shoot/profile-exists", "The cloud profile of a Shoot exists", "Declare it, or correct the name."+external, "plugin/pkg/global/resourcereferencemanager", (*checker).checkProfileExists).withFields("spec.cloudProfile", "spec.cloudProfileName"),
		def("Shoot", "shoot/seed-exists", "The Seed of a Shoot exists", "Declare it, correct the name, or leave it to the scheduler."+external, "plugin/pkg/global/resourcereferencemanager", (*checker).checkSeedExists).withFields("spec.seedName"),
		def("Shoot", "shoot/project-exists", "The namespace of a Shoot belongs to a Project", "Declare a Project with this spec.namespace, or correct the namespace."+external, validator, (*checker).checkProjectExists).withFields("metadata.namespace"),
		def("Shoot", "shoot/name-length", "The names of project and Shoot have at most 21 characters together", "Names of machines and infrastructure resources contain both and have a limited length. Choose a shorter name.", validator, (*checker).checkNameLength).withFields("metadata.name"),
		def("Shoot", "shoot/provider-offered", "A Shoot has the provider of its profile", "Use a profile of the provider.", validator, (*checker).checkProvider).withFields("spec.provider.type"),
		def("Shoot", "shoot/region-offered", "The profile offers the region, its zones and access restrictions", "Use what the profile lists under spec.regions.", validator, (*checker).checkRegion).withFields("spec.accessRestrictions", "spec.provider.workers.zones", "spec.region"),
		def("Shoot", "shoot/versions-offered", "The profile offers the Kubernetes versions", "Use a version of the profile.", validator, (*checker).checkVersions).withFields("spec.kubernetes.version", "spec.provider.workers.kubernetes.version").asChangeRule(),
		def("Shoot", mutation.RuleVersionsUsable, "The Kubernetes versions of a Shoot can be used now", "Use a version of the profile that has not expired. A version that was set before may stay when it expires: maintenance raises it.", validator, (*checker).checkVersions).withFields("spec.kubernetes.version", "spec.provider.workers.kubernetes.version").asTimeRule(),
		def("Shoot", "shoot/version-open", "A Shoot without a known cloud profile names its Kubernetes version in full", "A shortened version, such as 1.34, becomes the newest supported one of the profile. Declare the profile, or write the version in full."+external, "plugin/pkg/shoot/mutator", (*checker).checkIncompleteVersion).withFields("spec.kubernetes.version"),
		def("Shoot", "shoot/machines-offered", "The profile offers the machine and volume types", "Use types of the profile that the zones of the pool have.", validator, (*checker).checkMachines).withFields("spec.kubernetes.kubelet", "spec.provider.workers"),
		def("Shoot", "shoot/machines-usable", "Machine types of new pools can be used for new pools", "Use a type of the profile without usable: false. A pool that has the type keeps it.", validator, (*checker).checkUsableMachines).withFields("spec.provider.workers").asChangeRule(),
		def("Shoot", "shoot/images-offered", "The profile offers the machine images, and they fit the pool", "Use an image version for the architecture, container runtime and kubelet of the pool.", validator, (*checker).checkMachineImages).withFields("spec.provider.workers").asChangeRule(),
		def("Shoot", mutation.RuleImagesUsable, "The versions of machine images of a Shoot can be used now", "Use a version of the image that has not expired. A version that was set before may stay when it expires: maintenance raises it.", validator, (*checker).checkMachineImages).withFields("spec.provider.workers").asTimeRule(),
		def("Shoot", "shoot/nodes-limit", "Pools stay within the limit of the profile", "Lower minimum and maximum of the pools.", validator, (*checker).checkNodeLimit).withFields("spec.provider.workers"),
		def("Shoot", "shoot/seed-taints", "A Shoot tolerates the taints of its Seed", "Add the toleration, or choose another Seed.", validator, (*checker).checkTaints).withFields("spec.seedName").asChangeRule(),
		warning(def("Shoot", "shoot/tolerations-allowed", "The Project of a Shoot allows its tolerations", "Add the toleration to spec.tolerations.whitelist of the Project, or to the configuration of the admission plugin ShootTolerationRestriction in the Garden. A Shoot that has it already keeps it.", "plugin/pkg/shoot/tolerationrestriction", (*checker).checkTolerations).withFields("spec.tolerations").asChangeRule()),
		def("Shoot", "shoot/seed-selected", "The cloud profile of a Shoot allows its Seed", "Choose a Seed with the labels and the provider of spec.seedSelector of the cloud profile.", validator, (*checker).checkProfileAllowsSeed).withFields("spec.seedName").asChangeRule(),
		def("Shoot", "shoot/seed-zones", "The Seed has the zones that the control plane needs", "Choose a Seed with the zones.", validator, (*checker).checkControlPlaneZones).withFields("spec.controlPlane"),
		def("Shoot", "shoot/seed-access-restrictions", "The Seed has the access restrictions of its Shoots", "Choose a Seed with the restriction.", validator, (*checker).checkAccessRestrictions).withFields("spec.accessRestrictions"),
		def("Shoot", "shoot/seed-default-domain", "A name below a default domain is made of Shoot and project", "Leave spec.dns.domain out, or use your own domain.", "plugin/pkg/shoot/dns", (*checker).checkDefaultDomain).withFields("spec.dns.domain"),
		def("Shoot", "shoot/seed-networks", "The networks of a Shoot are set and do not overlap with networks of its Seed and Gardener", "Choose other ranges for the Shoot, because the ranges of a Seed cannot change. Gardener uses 240.0.0.0/8 to 244.0.0.0/8 and fd8f:6d53:b97a:1::/96 itself.", validator, (*checker).checkShootNetworks).withFields("spec.networking"),
		warning(def("Shoot", "shoot/runtime-networks", "The networks of a Shoot and the runtime cluster are disjoint", "Nothing routes between them unless someone connects the networks. Choose other ranges to be safe.", "ours: no upstream component compares them", (*checker).checkShootAgainstRuntime).withFields("spec.networking")),
		warning(def("Seed", "seed/runtime-networks", "The networks of a Seed and the runtime cluster are disjoint", "Nothing routes between them unless someone connects the networks. Choose other ranges to be safe.", "ours: no upstream component compares them", (*checker).checkSeedAgainstRuntime).withFields("spec.networks")),
		warning(def("Seed", "seed/autoscaler-of-garden", autoscalerTitle, autoscalerDoc, autoscalerSource, checkGardenAutoscaler(seedSpecPath)).withFields("spec.settings")),
		warning(def("Seed", "seed/shoots-fit", "A changed Seed still accepts Shoots like its current ones", "Existing Shoots stay. Tolerate the taint, or keep the label, unless new Shoots should go elsewhere.", validator, (*checker).checkShootsFit).withFields("metadata.labels", "spec.taints").asChangeRule()),
		warning(def("Seed", "seed/region-known", "The region and the zones of a Seed are in a cloud profile", "A region that no cloud profile has is reported only if it is nearly one of them. Zones have their names from the cloud profile.", "ours: the scheduler compares the names of regions", checkSeedRegion()).withFields("spec.provider")),
		def("Gardenlet", "gardenlet/seed-references", "Objects that the Seed of a gardenlet refers to exist", "As for Seeds.", "plugin/pkg/global/resourcereferencemanager", checkSeedReferences("Gardenlet")).withFields("spec.config"),
		def("ManagedSeed", "managedseed/seed-references", "Objects that the Seed of a gardenlet refers to exist", "As for Seeds.", "plugin/pkg/global/resourcereferencemanager", checkSeedReferences("ManagedSeed")).withFields("spec.gardenlet.config"),
		warning(def("Gardenlet", "gardenlet/region-known", "The region and the zones of a Seed are in a cloud profile", "As for Seeds.", "ours: the scheduler compares the names of regions", checkSeedRegion(seedTemplatePaths["Gardenlet"]...)).withFields("spec.config")),
		warning(def("ManagedSeed", "managedseed/region-known", "The region and the zones of a Seed are in a cloud profile", "As for Seeds.", "ours: the scheduler compares the names of regions", checkSeedRegion(seedTemplatePaths["ManagedSeed"]...)).withFields("spec.gardenlet.config")),
		warning(def("Shoot", "shoot/seed-matches", "The Seed selector of a Shoot matches a Seed", "Change the labels, or add them to a Seed. Otherwise the scheduler finds no Seed.", "pkg/scheduler/controller/shoot/reconciler.go", checkSeedSelector("spec", "seedSelector")).withFields("spec.seedSelector")),
		warning(def("Shoot", "shoot/seed-visible", "The scheduler finds a Seed for a Shoot without one", "Name a Seed, or set spec.settings.scheduling.visible of one to true.", "pkg/scheduler/controller/shoot/reconciler.go", (*checker).checkVisibleSeed).withFields("spec.seedName")),
		warning(def("ControllerRegistration", "controllerregistration/seed-matches", "The Seed selector of a registration matches a Seed", "Change the labels, or add them to a Seed. Otherwise the extension is installed nowhere.", "pkg/controllermanager/controller/controllerregistration", checkSeedSelector("spec", "deployment", "seedSelector")).withFields("spec.deployment.seedSelector")),
		warning(def("Bastion", "bastion/of-shoot", "A Bastion fits its Shoot", "Set the provider of the Shoot, and allow SSH access in the Shoot.", "pkg/controllermanager/controller/bastion", (*checker).checkBastion).withFields("spec")),
		warning(def("Shoot", "shoot/issuer-unique", "Each cluster has its own issuer of service account tokens", "Choose another issuer.", "https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin", (*checker).checkIssuerUnique).withFields("spec.kubernetes.kubeAPIServer")),
		warning(def("CloudProfile", "cloudprofile/seed-matches", "The Seed selector of a cloud profile matches a Seed", "Change the labels, or add them to a Seed. Otherwise no Shoot of the cloud profile gets a Seed.", "pkg/scheduler/controller/shoot/reconciler.go", checkSeedSelector("spec", "seedSelector")).withFields("spec.seedSelector")),
		warning(def("CloudProfile", "cloudprofile/seed-providers", "A Seed has one of the providers that the selector of a cloud profile names", "Otherwise no Shoot of the cloud profile gets a Seed.", "pkg/scheduler/controller/shoot/reconciler.go", (*checker).checkSelectedProviders).withFields("spec.seedSelector")),
		warning(def("BackupBucket", "backupbucket/of-seed", "A BackupBucket has the provider of the backups of its Seed", "Another extension has neither its credentials nor its configuration.", "pkg/gardenlet/controller/backupbucket", (*checker).checkBucketProvider).withFields("spec.provider.type")),
		warning(def("ManagedSeed", "managedseed/shoot-awake", "The Shoot of a ManagedSeed is never hibernated", "A Seed without nodes runs no control plane.", "ours", (*checker).checkShootNotHibernated).withFields("spec.shoot")),
		warning(def("CredentialsBinding", "credentialsbinding/credential-keys", "Credentials have the keys that the extension of their provider reads", "The extension ignores a key with nearly the same name.", "docs of github.com/gardener/gardener-extension-provider-*", checkCredentialKeys(credentialsBindingSecret)).withFields("credentialsRef")),
		warning(def("SecretBinding", "secretbinding/credential-keys", "Credentials have the keys that the extension of their provider reads", "The extension ignores a key with nearly the same name.", "docs of github.com/gardener/gardener-extension-provider-*", checkCredentialKeys(secretBindingSecret)).withFields("secretRef")),
		warning(def("CredentialsBinding", "credentialsbinding/secret-namespace", "The Secret of a binding is in its namespace, unless gardener-apiserver serves the API", "Only gardener-apiserver checks that the author of a binding may read a Secret elsewhere.", "ours (docs/reference/compatibility.md)", checkBindingNamespace("credentialsRef")).withFields("credentialsRef")),
		warning(def("SecretBinding", "secretbinding/secret-namespace", "The Secret of a binding is in its namespace, unless gardener-apiserver serves the API", "Only gardener-apiserver checks that the author of a binding may read a Secret elsewhere.", "ours (docs/reference/compatibility.md)", checkBindingNamespace("secretRef")).withFields("secretRef")),
		warning(def("Secret", "credentialsbinding/credential-keys", "Credentials have the keys that the extension of their provider reads", "The rule of the binding reports it at the Secret.", "docs of github.com/gardener/gardener-extension-provider-*", func(*checker) {}).withFields("data", "stringData")),
		warning(def("Secret", "secretbinding/credential-keys", "Credentials have the keys that the extension of their provider reads", "The rule of the binding reports it at the Secret.", "docs of github.com/gardener/gardener-extension-provider-*", func(*checker) {}).withFields("data", "stringData")),
		warning(def("ExposureClass", "exposureclass/seed-matches", "The Seed selector of an ExposureClass matches a Seed", "Change the labels, or add them to a Seed. Otherwise no Shoot of the class gets a Seed.", "plugin/pkg/shoot/exposureclass", checkSeedSelector("scheduling", "seedSelector")).withFields("scheduling.seedSelector")),
		warning(def("Quota", "quota/kept", "The Shoots that count for a Quota stay within it", "The Quota counts all Shoots whose bindings name it, with the maximum of their pools and their volumes. A Quota for a Project counts the Shoots of each namespace separately. Raise the limit, or make pools smaller. This is a warning, because existing Shoots stay.", "plugin/pkg/shoot/quotavalidator", (*checker).checkQuota).withFields("spec.metrics")),
		warning(def("Shoot", "shoot/domain-served", "The domain of a Shoot has a DNS provider", "Name a provider in spec.dns.providers, or use a domain below a default domain of the Seed. The API accepts the Shoot, but its reconciliation fails with a configuration error.", "pkg/utils/gardener (ConstructExternalDomain)", (*checker).checkDomainServed).withFields("spec.dns.domain")),
		warning(def("Gardenlet", "gardenlet/autoscaler-of-garden", autoscalerTitle, autoscalerDoc, autoscalerSource, checkGardenAutoscaler(gardenletSpecPath)).withFields("spec.config")),
		warning(def("Garden", "garden/ingress-config-unused", "Settings of the ingress controller are for a controller that runs", "No ingress controller runs in the runtime cluster while the feature gate DisableNginxIngressInGarden is on, as it is by default. Turn it off in landscape.yaml (spec.featureGates), or leave the settings out.", "pkg/operator/controller/garden/garden/components.go", (*checker).checkIngressConfigUsed).withFields(ingressConfigPath)),
		def("Project", "project/namespace-unique", "A namespace belongs to one project", "Give each Project its own namespace.", "plugin/pkg/global/resourcereferencemanager", (*checker).checkProjectNamespace).withFields("spec.namespace"),
		def("Project", "project/namespace-labelled", "The Namespace of a Project has the labels that let the Project adopt it", "Set the labels gardener.cloud/role: project and project.gardener.cloud/name: PROJECT on the Namespace. Or do not declare the Namespace, so that the Project creates it.", "pkg/controllermanager/controller/project", (*checker).checkNamespaceLabels).withFields("spec.namespace"),
		warning(def("Project", "project/member-namespaces", "Service accounts that are members are in existing namespaces", "Correct the namespace: in an unknown namespace the account does not exist.", "ours", (*checker).checkMemberNamespaces).withFields("spec.members.namespace")),
		warning(def("Namespace", "namespace/of-project", "A Namespace with the label of a Project is the Namespace of that Project", "Use the same name in both. Otherwise the Project creates another namespace and ignores the objects in this one.", "pkg/controllermanager/controller/project", (*checker).checkProjectOfNamespace).withFields("metadata.labels", "metadata.name")),
		def("Shoot", "shoot/domain-apart", "The domain of a Shoot is neither above nor below the domain of another Shoot", "Choose another domain.", validator, (*checker).checkShootDomain).withFields("spec.dns.domain"),
		def("ManagedSeed", "managedseed/shoot", "The Shoot of a ManagedSeed can become a Seed", "Change the Shoot.", "plugin/pkg/managedseed/validator", (*checker).checkManagedSeedShoot).withFields("spec.shoot"),
		def("ManagedSeed", "managedseed/seed-configured", "A ManagedSeed configures its Seed", "Set a GardenletConfiguration with a seedConfig; the API fills in the values of the Shoot.", "plugin/pkg/managedseed/validator, pkg/api/seedmanagement/helper", (*checker).checkSeedConfigured).withFields(managedSeedConfigPath),
		def("ManagedSeed", "managedseed/seed-of-shoot", seedOfHostTitle, seedOfHostDoc, "plugin/pkg/managedseed/validator", checkSeedMatchesShoot(managedSeedConfigPath, (*checker).shootOfManagedSeed)).withFields(managedSeedConfigPath),
		warning(def("ManagedSeed", "managedseed/seed-as-declared", seedDeclaredTitle, seedDeclaredDoc, seedDeclaredSource, checkDeclaredSeedEqual(managedSeedSpecPath)).withFields(managedSeedConfigPath)),
		warning(def("Gardenlet", "gardenlet/seed-as-declared", seedDeclaredTitle, seedDeclaredDoc, seedDeclaredSource, checkDeclaredSeedEqual(gardenletSpecPath)).withFields("spec.config")),
		def("ManagedSeedSet", "managedseedset/shoot", "The Shoots of a ManagedSeedSet can become Seeds", "Change spec.shootTemplate. The API rejects every ManagedSeed that the set creates.", "plugin/pkg/managedseed/validator", (*checker).checkManagedSeedSetShoot).withFields("spec.shootTemplate.spec"),
		def("ManagedSeedSet", "managedseedset/seed-of-shoot", seedOfHostTitle, seedOfHostDoc, "plugin/pkg/managedseed/validator", checkSeedMatchesShoot(managedSeedSetConfigPath, (*checker).shootOfManagedSeedSet)).withFields(managedSeedSetConfigPath),
		def("ManagedSeed", "landscape/gardenlet-unique", "A Seed has one gardenlet", "Declare the seed by a ManagedSeed or by a Gardenlet.", "plugin/pkg/global/resourcereferencemanager", (*checker).checkOneGardenlet).withFields("metadata.name"),
		def("Gardenlet", "landscape/gardenlet-unique", "A Seed has one gardenlet", "Declare the seed by a ManagedSeed or by a Gardenlet.", "plugin/pkg/global/resourcereferencemanager", (*checker).checkOneGardenlet).withFields("metadata.name"),
		def("ControllerRegistration", "controllerregistration/primary-unique", "One registration is responsible for a kind and type", "Set primary: false in all but one.", "plugin/pkg/controllerregistration/resources", (*checker).checkPrimary).withFields("spec.resources"),
		def("Extension", "controllerregistration/primary-unique", "One registration is responsible for a kind and type", "Set primary: false in all but one.", "plugin/pkg/controllerregistration/resources", (*checker).checkPrimary).withFields("spec.resources"),
		warning(def("Garden", "garden/providers-served", "Extensions that a Garden needs are declared", "Declare an Extension of operator.gardener.cloud whose spec.resources has the kind and the type, or correct the type. If the Extension is made elsewhere, list it under spec.external in landscape.yaml; its types are unknown, so nothing is checked. Without any Extension, the type local needs none.", "pkg/operator/controller/extension/required/runtime", (*checker).checkExtensions).withFields("spec.dns.providers.type", "spec.virtualCluster.etcd.main.backup.provider")),
		def("Seed", "seed/extensions-registered", "Extensions that a Seed needs are registered", "Declare a ControllerRegistration, or an Extension of operator.gardener.cloud. If it is made elsewhere, list it under spec.external in landscape.yaml; its types are unknown, so nothing is checked.", "plugin/pkg/global/extensionvalidation", (*checker).checkExtensions).withFields("spec.backup.provider", "spec.dns", "spec.extensions.type", "spec.provider.type"),
		def("Shoot", "shoot/extensions-registered", "Extensions that a Shoot needs are registered", "Declare a ControllerRegistration, or an Extension of operator.gardener.cloud. If it is made elsewhere, list it under spec.external in landscape.yaml; its types are unknown, so nothing is checked.", "plugin/pkg/global/extensionvalidation", (*checker).checkExtensions).withFields("spec.dns.providers.type", "spec.extensions.type", "spec.networking.type", "spec.provider"),
	}
	for _, kind := range []string{"Garden", "Seed", "Shoot"} {
		if fields := unread.FieldsOf(kind); len(fields) > 0 {
			all = append(all, warning(def(kind, strings.ToLower(kind)+unreadRuleSuffix, "A component or controller reads each field that is set",
				"The API has the field, but nothing in Pergola acts on it yet. Remove it, or leave it for extensions, which get the whole object. The list of these fields is derived from the sources of the catalogue and the controllers.",
				"schemas/unread", (*checker).checkUnreadFields).withFields(fields...)))
		}
	}
	return slices.Concat(all, domainRules(def), usedValueRules(def), credentialRules(def), configRules(def), namespaceRules(def), referenceRules())
}

const unreadRuleSuffix = "/unread-fields"

// IsUnreadRule reports whether a rule is about fields without a reader.
func IsUnreadRule(rule string) bool { return strings.HasSuffix(rule, unreadRuleSuffix) }

// ruleConstructor is a constructor of rules.
type ruleConstructor func(kind, id, title, doc, source string, do func(*checker)) rule

// domainRules are about DNS names of Gardens, Seeds and Shoots.
func domainRules(def ruleConstructor) []rule {
	unique := func(kind string, fields ...string) rule {
		return def(kind, "landscape/domains-unique", "Each domain is used once, and each DNS name has one target",
			"A Garden has api.DOMAIN and gardener.DOMAIN of its virtual domains, *.DOMAIN of its ingress domains, and the domains of dashboard and discovery server. A Seed has *.DOMAIN of its ingress domain. A Shoot has api.DOMAIN, and *.ingress.DOMAIN with the ingress addon. If two records have one name, the later record wins and the earlier target is unreachable. A name that *.DOMAIN covers, such as dashboard.DOMAIN or p-seed.DOMAIN, stops working once DNS has a record for it or for a name below it. Choose another domain.",
			"ours: records would overwrite each other; RFC 4592, section 2.2.2 (empty non-terminals)", (*checker).checkDomainsUnique).withFields(fields...)
	}
	const gardener = "spec.virtualCluster.gardener."
	return []rule{
		unique("Garden", "spec.runtimeCluster.ingress.domains", "spec.virtualCluster.dns.domains", gardener+"gardenerDashboard.domain", gardener+"gardenerDiscoveryServer.domain"),
		unique("Seed", "spec.ingress.domain"),
		unique("ManagedSeed", "spec.gardenlet.config"),
		unique("Gardenlet", "spec.config"),
		unique("Shoot", "spec.dns.domain"),
	}
}

// usedValueRules are about values that must remain while other objects use them.
func usedValueRules(def ruleConstructor) []rule {
	const manager = "plugin/pkg/global/resourcereferencemanager"
	const zonesTitle, zonesDoc = "A seed keeps its zones while Shoots are on it", "Move the Shoots first, or keep the zone: volumes of control planes are bound to their zone."
	const domainsTitle, domainsDoc = "A seed keeps its domains while Shoots use them", "Move the Shoots first, or keep the domain: control planes use the internal domain, and Shoots have names below the default domains."
	return []rule{
		def("CloudProfile", "cloudprofile/versions-in-use", "A cloud profile keeps the Kubernetes versions in use", "First raise the Shoots, and remove the version from the NamespacedCloudProfiles; until then the version may expire. If maintenance has already raised a Shoot, write its version into Git.", manager, (*checker).checkVersionsInUse).
			withFields("spec.kubernetes.versions").asChangeRule(),
		def("CloudProfile", "cloudprofile/images-in-use", "A cloud profile keeps the machine images in use", "First raise the pools, and remove the version from the NamespacedCloudProfiles; until then the version may expire. If maintenance has already raised a pool, write its version into Git.", manager, (*checker).checkImagesInUse).
			withFields("spec.machineImages").asChangeRule(),
		def("CloudProfile", "cloudprofile/capabilities-in-use", "A cloud profile keeps the capabilities that others name", "First remove the values from the types and images of NamespacedCloudProfiles.", manager, (*checker).checkCapabilitiesInUse).withFields("spec.machineCapabilities").asChangeRule(),
		def("NamespacedCloudProfile", "namespacedcloudprofile/versions-in-use", "A namespaced cloud profile keeps the versions in use that its parent does not offer", "First raise the Shoots and pools.", manager, (*checker).checkOverridesInUse).
			withFields("spec.kubernetes", "spec.machineImages").asTimeRule(),
		def("Seed", "seed/zones-in-use", zonesTitle, zonesDoc, "plugin/pkg/seed/validator", checkZonesInUse(seedSpecPath)).withFields("spec.provider.zones").asChangeRule(),
		def("ManagedSeed", "managedseed/zones-in-use", zonesTitle, zonesDoc, "plugin/pkg/managedseed/validator", checkZonesInUse(managedSeedSpecPath)).withFields("spec.gardenlet.config").asChangeRule(),
		def("Seed", "seed/domains-in-use", domainsTitle, domainsDoc, "plugin/pkg/seed/validator", checkDomainsInUse(seedSpecPath)).withFields("spec.dns").asChangeRule(),
		def("ManagedSeed", "managedseed/domains-in-use", domainsTitle, domainsDoc, "plugin/pkg/managedseed/validator", checkDomainsInUse(managedSeedSpecPath)).withFields("spec.gardenlet.config").asChangeRule(),
	}
}

// credentialRules are about credentials, quotas and exposure classes that Shoots, Seeds and backups
// use.
func credentialRules(def ruleConstructor) []rule {
	const manager = "plugin/pkg/global/resourcereferencemanager"
	const identityTitle, identityDoc = "A WorkloadIdentity is used for its own type of provider", "Use a WorkloadIdentity whose spec.targetSystem.type is the type of the provider."
	const quotaTitle, quotaDoc = "A binding has one quota for each scope", "Remove one of the quotas: two quotas of one scope would conflict."
	return []rule{
		def("CredentialsBinding", "credentialsbinding/workload-identity", identityTitle, identityDoc, manager, checkWorkloadIdentity("credentialsRef", "provider.type")).withFields("provider.type"),
		def("Seed", "seed/workload-identity", identityTitle, identityDoc, "plugin/pkg/seed/validator", checkWorkloadIdentity("spec.backup.credentialsRef", "spec.backup.provider")).withFields("spec.backup.provider"),
		def("BackupBucket", "backupbucket/workload-identity", identityTitle, identityDoc, "plugin/pkg/global/backupbucketvalidator", checkWorkloadIdentity("spec.credentialsRef", "spec.provider.type")).withFields("spec.provider.type"),
		def("CredentialsBinding", "credentialsbinding/quota-scopes", quotaTitle, quotaDoc, manager, (*checker).checkQuotaScopes).withFields("quotas"),
		def("SecretBinding", "secretbinding/quota-scopes", quotaTitle, quotaDoc, manager, (*checker).checkQuotaScopes).withFields("quotas"),
		def("Shoot", "shoot/credentials-provider", "The credentials of a Shoot are for its provider", "Name a binding with the provider.type of the Shoot.", "plugin/pkg/shoot/validator", (*checker).checkBindingProvider).withFields("spec.provider.type").asChangeRule(),
		def("Shoot", "shoot/plugin-kubeconfigs", "The kubeconfig of an admission plugin is in a Secret of spec.resources", "List the Secret in spec.resources, and put the kubeconfig under its key kubeconfig.", "plugin/pkg/shoot/validator", (*checker).checkPluginKubeconfigs).
			withFields("spec.kubernetes.kubeAPIServer.admissionPlugins"),
		def("Shoot", "shoot/exposure-class-scheduling", "A Shoot leaves the scheduling of its exposure class to the class", "The API adds labels and tolerations of the class to the Shoot, and rejects a new Shoot that has others with the same key.", "plugin/pkg/shoot/exposureclass", (*checker).checkExposureScheduling).
			withFields("spec.seedSelector.matchLabels", "spec.tolerations").asChangeRule(),
	}
}

// configRules are about API server configuration in ConfigMaps.
func configRules(def ruleConstructor) []rule {
	const webhooks = "pkg/admissioncontroller/webhook/admission/"
	const policyTitle, policyDoc = "The ConfigMap of an audit policy holds an audit policy", "Its key policy holds a Policy of audit.k8s.io/v1. kube-apiserver does not start without it."
	const frontendTitle, frontendSource = "The ConfigMap of the dashboard's front end has a map of settings", "pkg/operator/controller/garden/garden/components.go"
	const frontendDoc = "Its key frontend-config.yaml holds YAML with settings such as landingPageUrl, branding, themes and features, which become part of the configuration of the dashboard."
	const authenticationTitle, authenticationDoc = "The ConfigMap of the structured authentication holds its configuration", "Its key config.yaml holds an AuthenticationConfiguration of apiserver.config.k8s.io, whose issuers are not issuers of service accounts."
	const authorizationTitle, authorizationDoc = "The ConfigMap of the structured authorization holds its configuration, with a kubeconfig for each webhook", "Its key config.yaml holds an AuthorizationConfiguration of apiserver.config.k8s.io with webhooks; structuredAuthorization.kubeconfigs sets the access to each webhook."
	// The rule of the object that refers to a ConfigMap reports the ConfigMap's faults.
	inConfigMap := func(id, title, doc, source string) rule {
		return def("ConfigMap", id, title, doc, source, func(*checker) {}).withFields("data")
	}
	return []rule{
		inConfigMap("garden/audit-policy", policyTitle, policyDoc, "pkg/operator/webhook/validation"),
		inConfigMap("shoot/audit-policy", policyTitle, policyDoc, webhooks+"auditpolicy"),
		inConfigMap("garden/dashboard-frontend", frontendTitle, frontendDoc, frontendSource),
		inConfigMap("garden/structured-authentication", authenticationTitle, authenticationDoc, webhooks+"authenticationconfig"),
		inConfigMap("shoot/structured-authentication", authenticationTitle, authenticationDoc, webhooks+"authenticationconfig"),
		inConfigMap("garden/structured-authorization", authorizationTitle, authorizationDoc, webhooks+"authorizationconfig"),
		inConfigMap("shoot/structured-authorization", authorizationTitle, authorizationDoc, webhooks+"authorizationconfig"),
		def("Garden", "garden/audit-policy", policyTitle, policyDoc, "pkg/operator/webhook/validation", checkAuditPolicies(gardenKubeAPIServerPath, gardenAPIServerPath)).withFields(gardenAPIServerPath+auditPolicyRefPath, gardenKubeAPIServerPath+auditPolicyRefPath),
		def("Shoot", "shoot/audit-policy", policyTitle, policyDoc, webhooks+"auditpolicy", checkAuditPolicies(shootKubeAPIServerPath)).withFields(shootKubeAPIServerPath + auditPolicyRefPath),
		def("Garden", "garden/dashboard-frontend", frontendTitle, frontendDoc, frontendSource, checkFrontendConfig).withFields(gardenDashboardPath + ".frontendConfigMapRef"),
		def("Garden", "garden/structured-authentication", authenticationTitle, authenticationDoc, webhooks+"authenticationconfig", checkAuthentication(gardenKubeAPIServerPath)).withFields(gardenKubeAPIServerPath+".structuredAuthentication", gardenDashboardPath+".oidcConfig"),
		def("Shoot", "shoot/structured-authentication", authenticationTitle, authenticationDoc, webhooks+"authenticationconfig", checkAuthentication(shootKubeAPIServerPath)).withFields(shootKubeAPIServerPath + ".structuredAuthentication"),
		def("Garden", "garden/structured-authorization", authorizationTitle, authorizationDoc, webhooks+"authorizationconfig", checkAuthorization(gardenKubeAPIServerPath)).withFields(gardenKubeAPIServerPath + ".structuredAuthorization"),
		def("Shoot", "shoot/structured-authorization", authorizationTitle, authorizationDoc, webhooks+"authorizationconfig", checkAuthorization(shootKubeAPIServerPath)).withFields(shootKubeAPIServerPath + ".structuredAuthorization"),
	}
}
