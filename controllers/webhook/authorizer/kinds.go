package authorizer

// kind of an object, by the resource that requests name.
type kind uint8

// In the order of their rank: an object refers to one before it, and belongs to whom that one
// belongs to.
const (
	kindNone kind = iota
	kindProject
	kindNamespace
	kindCloudProfile
	kindNamespacedCloudProfile
	kindExposureClass
	kindEvent
	kindLease
	kindSecret
	kindInternalSecret
	kindConfigMap
	kindWorkloadIdentity
	kindServiceAccount
	kindClusterRoleBinding
	kindCertificateSigningRequest
	kindSecretBinding
	kindCredentialsBinding
	kindIssuer // the public keys of a Shoot's tokens, by the UID of the Shoot
	kindShootState
	kindControllerRegistration
	kindControllerDeployment
	kindControllerInstallation
	kindBackupBucket
	kindBackupEntry
	kindBastion
	kindGardenlet
	kindSeed
	kindManagedSeed
	kindShoot
	kinds
)

// resources of kinds, as requests and messages name them.
var resources = [kinds]string{
	kindProject:                   "projects.core.gardener.cloud",
	kindNamespace:                 "namespaces",
	kindCloudProfile:              "cloudprofiles.core.gardener.cloud",
	kindNamespacedCloudProfile:    "namespacedcloudprofiles.core.gardener.cloud",
	kindExposureClass:             "exposureclasses.core.gardener.cloud",
	kindEvent:                     "events",
	kindLease:                     "leases.coordination.k8s.io",
	kindSecret:                    "secrets",
	kindInternalSecret:            "internalsecrets.core.gardener.cloud",
	kindConfigMap:                 "configmaps",
	kindWorkloadIdentity:          "workloadidentities.security.gardener.cloud",
	kindServiceAccount:            "serviceaccounts",
	kindClusterRoleBinding:        "clusterrolebindings.rbac.authorization.k8s.io",
	kindCertificateSigningRequest: "certificatesigningrequests.certificates.k8s.io",
	kindSecretBinding:             "secretbindings.core.gardener.cloud",
	kindCredentialsBinding:        "credentialsbindings.security.gardener.cloud",
	kindIssuer:                    "",
	kindShootState:                "shootstates.core.gardener.cloud",
	kindControllerRegistration:    "controllerregistrations.core.gardener.cloud",
	kindControllerDeployment:      "controllerdeployments.core.gardener.cloud",
	kindControllerInstallation:    "controllerinstallations.core.gardener.cloud",
	kindBackupBucket:              "backupbuckets.core.gardener.cloud",
	kindBackupEntry:               "backupentries.core.gardener.cloud",
	kindBastion:                   "bastions.operations.gardener.cloud",
	kindGardenlet:                 "gardenlets.seedmanagement.gardener.cloud",
	kindSeed:                      "seeds.core.gardener.cloud",
	kindManagedSeed:               "managedseeds.seedmanagement.gardener.cloud",
	kindShoot:                     "shoots.core.gardener.cloud",
}

func (k kind) String() string { return resources[k] }

func (k kind) rank() int { return int(k) }

// clusterScoped kinds have no namespace.
func (k kind) clusterScoped() bool {
	switch k {
	case kindProject, kindNamespace, kindCloudProfile, kindExposureClass, kindClusterRoleBinding, kindCertificateSigningRequest, kindControllerRegistration,
		kindControllerDeployment, kindControllerInstallation, kindBackupBucket, kindSeed:
		return true
	}
	return false
}

// byResource finds kinds by their resource and group.
var byResource = func() map[string]kind {
	all := map[string]kind{}
	for k, resource := range resources {
		if resource != "" {
			all[resource] = kind(k)
		}
	}
	all["events.events.k8s.io"] = kindEvent
	return all
}()
