// SPDX-License-Identifier: Apache-2.0

package authorizer

// kind is the kind of an object, by its resource.
type kind uint8

// Kinds in the order of their rank. Edges lead to a higher rank: an object belongs to the owners of
// the object that its edge leads to.
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
	kindCount
)

// resourceNames are the resource names of kinds, as in requests and messages.
var resourceNames = [kindCount]string{
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

func (k kind) String() string { return resourceNames[k] }

func (k kind) rank() int { return int(k) }

// isClusterScoped reports whether a kind has no namespace.
func (k kind) isClusterScoped() bool {
	switch k {
	case kindProject, kindNamespace, kindCloudProfile, kindExposureClass, kindClusterRoleBinding, kindCertificateSigningRequest, kindControllerRegistration,
		kindControllerDeployment, kindControllerInstallation, kindBackupBucket, kindSeed:
		return true
	}
	return false
}

// kindsByResource maps resources with their group to kinds.
var kindsByResource = func() map[string]kind {
	all := map[string]kind{}
	for k, resource := range resourceNames {
		if resource != "" {
			all[resource] = kind(k)
		}
	}
	all["events.events.k8s.io"] = kindEvent
	return all
}()
