package v1alpha1

import (
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// SetDefaults_CredentialsBinding fills in what a CredentialsBinding leaves open: what it refers to is in its own namespace.
func SetDefaults_CredentialsBinding(binding *CredentialsBinding) {
	if binding.CredentialsRef.Namespace == "" {
		binding.CredentialsRef.Namespace = binding.Namespace
	}
	gardencorev1beta1.SetDefaults_Quotas(binding.Quotas, binding.Namespace)
}
