package across

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestControlPlaneReferences(t *testing.T) {
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(`
spec:
  credentialsBindingName: binding
  dns: {providers: [{credentialsRef: {apiVersion: v1, kind: Secret, name: dns}}]}
  resources:
  - {name: a, resourceRef: {apiVersion: v1, kind: Secret, name: plugin}}
  - {name: b, resourceRef: {apiVersion: v1, kind: ConfigMap, name: for-extension}}
  - {name: c, resourceRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: identity}}
  kubernetes:
    kubeAPIServer:
      admissionPlugins: [{name: ImagePolicyWebhook, kubeconfigSecretName: plugin}, {name: PodSecurity}]
      auditConfig: {auditPolicy: {configMapRef: {name: policy}}}
      structuredAuthentication: {configMapName: authentication}
      structuredAuthorization: {configMapName: authorization, kubeconfigs: [{authorizerName: one, secretName: webhook}]}
`), &object))
	const server = "spec.kubernetes.kubeAPIServer."
	assert.Equal(t, []Reference{
		{"ConfigMap", "authentication", []string{server + "structuredAuthentication.configMapName"}},
		{"ConfigMap", "authorization", []string{server + "structuredAuthorization.configMapName"}},
		{"ConfigMap", "for-extension", []string{"spec.resources[1].resourceRef.name"}},
		{"ConfigMap", "policy", []string{server + "auditConfig.auditPolicy.configMapRef.name"}},
		{"Secret", "plugin", []string{server + "admissionPlugins[0].kubeconfigSecretName", "spec.resources[0].resourceRef.name"}},
		{"Secret", "webhook", []string{server + "structuredAuthorization.kubeconfigs[0].secretName"}},
	}, ControlPlaneReferences("Shoot", object))
	assert.Empty(t, ControlPlaneReferences("Garden", object))
	assert.Empty(t, ControlPlaneReferences("Shoot", nil))

	require.NoError(t, yaml.Unmarshal([]byte(`
spec:
  resources: [{name: a, resourceRef: {apiVersion: v1, kind: Secret, name: for-extension}}]
  dns: {providers: [{name: d, secretRef: {name: dns}}]}
  virtualCluster:
    gardener: {gardenerAPIServer: {auditConfig: {auditPolicy: {configMapRef: {name: of-another}}}}}
    kubernetes:
      kubeAPIServer:
        auditWebhook: {kubeconfigSecretName: audit}
        authentication: {webhook: {kubeconfigSecretName: authentication}}
        sni: {secretName: certificate}
`), &object))
	const virtual = "spec.virtualCluster.kubernetes.kubeAPIServer."
	assert.Equal(t, []Reference{
		{"ConfigMap", "of-another", []string{"spec.virtualCluster.gardener.gardenerAPIServer.auditConfig.auditPolicy.configMapRef.name"}},
		{"Secret", "audit", []string{virtual + "auditWebhook.kubeconfigSecretName"}},
		{"Secret", "authentication", []string{virtual + "authentication.webhook.kubeconfigSecretName"}},
		{"Secret", "certificate", []string{virtual + "sni.secretName"}},
	}, ControlPlaneReferences("Garden", object))
}

// Every file that a field mounts is known by its key.
func TestFilesOfReferences(t *testing.T) {
	for _, r := range references() {
		if !isForControlPlane(r) || r.path == "spec.resources[].resourceRef" {
			continue
		}
		field := r.path
		if r.path[len(r.path)-3:] == "Ref" {
			field += ".name"
		}
		keys, _ := fileOf(field)
		assert.NotEmpty(t, keys, "%s %s", r.of, r.path)
	}
}
