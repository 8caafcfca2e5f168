// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// SetDefaults_SecretBinding sets missing namespaces of references to the namespace of the binding.
func SetDefaults_SecretBinding(binding *SecretBinding) {
	if binding.SecretRef.Namespace == "" {
		binding.SecretRef.Namespace = binding.Namespace
	}
	SetDefaults_Quotas(binding.Quotas, binding.Namespace)
}

// SetDefaults_Quotas sets the missing namespaces of a binding's references to Quotas.
func SetDefaults_Quotas(quotas []corev1.ObjectReference, namespace string) {
	for i := range quotas {
		if quotas[i].Namespace == "" {
			quotas[i].Namespace = namespace
		}
	}
}
