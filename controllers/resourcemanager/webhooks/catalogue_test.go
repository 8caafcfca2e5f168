// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/webhook/admission"
)

// TestCatalogueConfigurations checks that the webhook configurations of the catalogue
// match this package.
func TestCatalogueConfigurations(t *testing.T) {
	always := Webhooks{ProjectedTokenMount: ProjectedTokenMount{Enabled: true}, HighAvailabilityConfig: HighAvailabilityConfig{Enabled: true}}
	profiles := always
	profiles.SeccompProfile.Enabled = true
	for name, webhooks := range map[string]Webhooks{
		"garden/gardener-resource-manager/cases/default": always,
		// feature gate DefaultSeccompProfile
		"garden/gardener-resource-manager/cases/seccomp": profiles,
		"seed/gardener-resource-manager/cases/default":   always,
	} {
		t.Run(name, func(t *testing.T) {
			want, err := MutatingWebhookConfiguration(Configuration{
				Webhooks: webhooks, Responsibility: ForRuntime,
				Target: admission.Target{Service: &admissionregistrationv1.ServiceReference{Namespace: "garden", Name: "gardener-resource-manager"}},
			})
			require.NoError(t, err)
			data, err := os.ReadFile("../../../components/" + name + "/gardener-resource-manager-webhooks.yaml")
			require.NoError(t, err)
			documents := bytes.Split(data, []byte("\n---\n"))
			require.Len(t, documents, 2, "what belongs to the bundle, and its one object")
			var got admissionregistrationv1.MutatingWebhookConfiguration
			require.NoError(t, yaml.UnmarshalStrict(documents[1], &got))
			for i := range got.Webhooks {
				assert.NotEmpty(t, got.Webhooks[i].ClientConfig.CABundle)
				got.Webhooks[i].ClientConfig.CABundle = nil
			}
			assert.Equal(t, want, &got)
		})
	}
}
