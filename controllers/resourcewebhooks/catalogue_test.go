package resourcewebhooks

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/admission"
)

// TestCatalogueRegistersWhatIsAnswered: what the catalogue has for the feature gate DefaultSeccompProfile is what this package says of its webhook.
func TestCatalogueRegistersWhatIsAnswered(t *testing.T) {
	want, err := MutatingWebhookConfiguration(Configuration{
		Webhooks: Webhooks{SeccompProfile: Switch{Enabled: true}}, Responsibility: ForRuntime,
		Target: admission.Target{Service: &admissionregistrationv1.ServiceReference{Namespace: "garden", Name: "gardener-resource-manager"}},
	})
	require.NoError(t, err)
	data, err := os.ReadFile("../../components/garden/gardener-resource-manager/cases/seccomp/gardener-resource-manager-webhooks.yaml")
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
}
