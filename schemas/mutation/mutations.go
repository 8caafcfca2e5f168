// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	operationsv1alpha1 "github.com/pergola-dev/pergola/api/operations/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

// Kinds that mutations change or read.
var (
	kindBackupBucket           = coreKind("BackupBucket")
	kindBackupEntry            = coreKind("BackupEntry")
	kindCloudProfile           = coreKind("CloudProfile")
	kindControllerRegistration = coreKind("ControllerRegistration")
	kindExposureClass          = coreKind("ExposureClass")
	kindNamespacedCloudProfile = coreKind("NamespacedCloudProfile")
	kindProject                = coreKind("Project")
	kindSecretBinding          = coreKind("SecretBinding")
	kindSeed                   = coreKind("Seed")
	kindShoot                  = coreKind("Shoot")
	kindSecret                 = schema.GroupKind{Kind: "Secret"}
	kindBastion                = operationsv1alpha1.SchemeGroupVersion.WithKind("Bastion").GroupKind()
	kindOperatorExtension      = operatorv1alpha1.SchemeGroupVersion.WithKind("Extension").GroupKind()
	kindCredentialsBinding     = securityv1alpha1.SchemeGroupVersion.WithKind("CredentialsBinding").GroupKind()
	kindWorkloadIdentity       = securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity").GroupKind()
	kindManagedSeed            = seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeed").GroupKind()
)

// Kinds returns the kinds that mutations change.
func Kinds() []schema.GroupKind {
	return []schema.GroupKind{
		kindBackupBucket, kindBackupEntry, kindBastion, kindCloudProfile, kindCredentialsBinding, kindManagedSeed, kindNamespacedCloudProfile,
		kindProject, kindSecretBinding, kindSeed, kindShoot, kindWorkloadIdentity,
	}
}

// Mutation describes a mutation for documentation.
type Mutation struct {
	// ID is KIND/NAME in lower case; any/NAME for several kinds.
	ID string `json:"id"`
	// Kinds are the mutated kinds.
	Kinds []string `json:"kinds"`
	// Title describes the change in a sentence.
	Title string `json:"title"`
	// Source is the upstream code.
	Source string `json:"source"`
	// OnCreate is true if the mutation only applies to new objects.
	OnCreate bool `json:"onCreate,omitempty"`
}

// Ids of the mutations.
const (
	shootTolerations       = "shoot/project-tolerations"
	shootExposureClass     = "shoot/exposure-class"
	shootDefaultDomain     = "shoot/default-domain"
	shootPrimaryProvider   = "shoot/primary-dns-provider"
	shootDNSCredentials    = "shoot/dns-credentials"
	shootNetworks          = "shoot/networks"
	shootKubernetesVersion = "shoot/kubernetes-version"
	shootPoolVersions      = "shoot/pool-versions"
	shootArchitecture      = "shoot/architecture"
	shootMachineImages     = "shoot/machine-images"
	shootKeyRotation       = "shoot/key-rotation"
	shootVPA               = "shoot/vertical-pod-autoscaler"
	shootKubeReserved      = "shoot/kube-reserved"
	shootProfileFields     = "shoot/cloud-profile"
	projectOwner           = "project/owner"
	projectMembers         = "project/owner-is-member"
	managedSeedConfig      = "managedseed/seed-config"
	bastionFromShoot       = "bastion/shoot"
	anyExtensionLabels     = "any/extension-labels"
	anySeedLabels          = "any/seed-labels"
	shootSelfHostedLabel   = "shoot/self-hosted-label"
)

// Mutations returns all mutations in the order of their execution.
func Mutations() []Mutation {
	const mutator, dns = "plugin/pkg/shoot/mutator", "plugin/pkg/shoot/dns"
	return []Mutation{
		{shootProfileFields, []string{"Shoot"}, "The older field for the name of the cloud profile is copied to the newer one, for versions before 1.34.", "pkg/apiserver/registry/core/shoot (strategy)", false},
		{shootTolerations, []string{"Shoot"}, "Tolerations that the Project has for all its Shoots are added, unless the Shoot has the key.", "plugin/pkg/shoot/tolerationrestriction", true},
		{shootExposureClass, []string{"Shoot"}, "Selector and tolerations of the exposure class are added.", "plugin/pkg/shoot/exposureclass", true},
		{shootPrimaryProvider, []string{"Shoot"}, "The first DNS provider becomes the primary provider of a custom domain.", dns, false},
		{shootDefaultDomain, []string{"Shoot"}, "The domain is SHOOT.PROJECT.DEFAULT-DOMAIN, once the Seed is known.", dns, false},
		{shootDNSCredentials, []string{"Shoot"}, "The older and the newer field for credentials of a DNS provider are copied to each other, for versions before 1.35.", "pkg/apiserver/registry/core/shoot (strategy)", false},
		{shootNetworks, []string{"Shoot"}, "Networks of pods and services are those that the Seed has for Shoots, if they are of the family of the Shoot.", mutator, false},
		{shootKubernetesVersion, []string{"Shoot"}, "A Kubernetes version that is missing or shortened becomes the newest supported one of the cloud profile.", mutator, false},
		{shootPoolVersions, []string{"Shoot"}, "A shortened Kubernetes version of a pool becomes the newest supported one of the cloud profile.", mutator, false},
		{shootArchitecture, []string{"Shoot"}, "The architecture of a pool is that of its machine type, or amd64.", mutator, false},
		{shootMachineImages, []string{"Shoot"}, "A machine image is the first of the cloud profile that fits the pool, in its newest version that is not in preview.", mutator, false},
		{shootKeyRotation, []string{"Shoot"}, "The key of etcd is rotated every 28 days.", mutator, true},
		{shootVPA, []string{"Shoot"}, "The vertical pod autoscaler is enabled for clusters with workers.", "plugin/pkg/shoot/vpa", true},
		{shootKubeReserved, []string{"Shoot"}, "Resources are reserved for the kubelet: 80m CPU, 1Gi memory, 20k process ids.", "plugin/pkg/shoot/resourcereservation", false},
		{shootSelfHostedLabel, []string{"Shoot"}, "A label says that the Shoot runs its own control plane.", "pkg/apiserver/registry/core/shoot (strategy)", false},
		{projectOwner, []string{"Project"}, "The owner is the first member with the role owner.", "plugin/pkg/project/mutator", true},
		{projectMembers, []string{"Project"}, "The owner is a member with the roles admin and owner.", "plugin/pkg/project/mutator", false},
		{managedSeedConfig, []string{"ManagedSeed"}, "Provider, region, zones, networks, ingress and DNS of the Seed are those of the Shoot; its vertical pod autoscaler is off.", "plugin/pkg/managedseed/validator", false},
		{bastionFromShoot, []string{"Bastion"}, "Seed, provider and owner are those of the Shoot.", "plugin/pkg/bastion/validator", false},
		{anySeedLabels, []string{"ManagedSeed", "Seed", "Shoot"}, "Labels name the Seeds that the object concerns.", "plugin/pkg/seed/mutator, plugin/pkg/managedseed/validator, pkg/apiserver/registry/core/shoot (strategy)", false},
		{anyExtensionLabels, kindsWithExtensionLabels(), "Labels name the types of extensions that the object uses.", "plugin/pkg/global/extensionlabels", false},
	}
}
