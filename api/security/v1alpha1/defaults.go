// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// SetDefaults_CredentialsBinding sets missing namespaces of references to the namespace of the
// binding.
func SetDefaults_CredentialsBinding(binding *CredentialsBinding) {
	if binding.CredentialsRef.Namespace == "" {
		binding.CredentialsRef.Namespace = binding.Namespace
	}
	gardencorev1beta1.SetDefaults_Quotas(binding.Quotas, binding.Namespace)
}
