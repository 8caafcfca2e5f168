// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// defaultProvider encrypts if none is declared (upstream's default).
const defaultProvider = "aescbc"

func encryptionConfigs(garden map[string]any) (kubernetes, gardener map[string]any) {
	kubernetes, _, _ = unstructured.NestedMap(garden, "spec", "virtualCluster", "kubernetes", "kubeAPIServer", "encryptionConfig")
	gardener, _, _ = unstructured.NestedMap(garden, "spec", "virtualCluster", "gardener", "gardenerAPIServer", "encryptionConfig")
	return kubernetes, gardener
}

// DeclaredProvider returns the encryption provider that a Garden declares.
func DeclaredProvider(garden map[string]any) string {
	config, _ := encryptionConfigs(garden)
	provider, _, _ := unstructured.NestedString(config, "provider", "type")
	if provider == "" {
		return defaultProvider
	}
	return provider
}

// DeclaredEncryption returns the encryption that a Garden declares, in the form of the status.
func DeclaredEncryption(garden map[string]any) gardencorev1beta1.EncryptionAtRest {
	out := gardencorev1beta1.EncryptionAtRest{Provider: gardencorev1beta1.EncryptionProviderStatus{Type: gardencorev1beta1.EncryptionProviderType(DeclaredProvider(garden))}}
	kubernetes, gardener := encryptionConfigs(garden)
	for _, config := range []map[string]any{kubernetes, gardener} {
		resources, _, _ := unstructured.NestedStringSlice(config, "resources")
		out.Resources = append(out.Resources, resources...)
	}
	return out
}
