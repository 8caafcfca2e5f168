// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"slices"
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
	assert.Equal(t, []ConfigReference{
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
    gardener:
      gardenerAPIServer: {auditConfig: {auditPolicy: {configMapRef: {name: of-another}}}}
      gardenerDashboard: {tlsSecretName: certificate, gitHub: {secretRef: {name: github}}, oidcConfig: {certificateAuthoritySecretRef: {name: authority}}}
    kubernetes:
      kubeAPIServer:
        auditWebhook: {kubeconfigSecretName: audit}
        authentication: {webhook: {kubeconfigSecretName: authentication}}
        sni: {secretName: certificate}
`), &object))
	const virtual = "spec.virtualCluster.kubernetes.kubeAPIServer."
	assert.Equal(t, []ConfigReference{
		{"ConfigMap", "of-another", []string{"spec.virtualCluster.gardener.gardenerAPIServer.auditConfig.auditPolicy.configMapRef.name"}},
		{"Secret", "audit", []string{virtual + "auditWebhook.kubeconfigSecretName"}},
		{"Secret", "authentication", []string{virtual + "authentication.webhook.kubeconfigSecretName"}},
		{"Secret", "authority", []string{gardenDashboardPath + ".oidcConfig.certificateAuthoritySecretRef.name"}},
		{"Secret", "certificate", []string{virtual + "sni.secretName", gardenDashboardPath + ".tlsSecretName"}},
		{"Secret", "github", []string{gardenDashboardPath + ".gitHub.secretRef.name"}},
	}, ControlPlaneReferences("Garden", object))
	// API servers wait for their references, dashboards for the rest.
	rest, keys, authorities := []string{}, []string{}, []string{}
	for _, r := range ControlPlaneReferences("Garden", object) {
		for list, is := range map[*[]string]bool{&rest: r.IsDashboardOnly(), &keys: r.IsKeyDependent(), &authorities: r.HasTrustedCertificates()} {
			if is {
				*list = append(*list, r.Name)
			}
		}
	}
	assert.Equal(t, []string{"authority", "github"}, rest)
	assert.Equal(t, []string{"github"}, keys)
	assert.Equal(t, []string{"authority", "certificate"}, authorities)
}

// TestMountedKeysOfReferences checks that mountedKeysOfField knows the keys of all mounted fields.
func TestMountedKeysOfReferences(t *testing.T) {
	for _, r := range referenceFields() {
		if !isControlPlaneReference(r) || r.path == "spec.resources[].resourceRef" {
			continue
		}
		field := r.path
		if r.path[len(r.path)-3:] == "Ref" {
			field += ".name"
		}
		keys, _ := mountedKeysOfField(field)
		if whole := []string{gardenDashboardPath + ".assetsConfigMapRef", gardenDashboardPath + ".gitHub.secretRef", gardenDashboardPath + ".oidcConfig.secretRef"}; slices.Contains(whole, r.path) {
			assert.Empty(t, keys, "%s is mounted as it is", r.path)
			continue
		}
		assert.NotEmpty(t, keys, "%s %s", r.referrerKind, r.path)
	}
}

// TestCheckContentAcceptsWarnings checks that Check accepts a configuration with warnings.
func TestCheckContentAcceptsWarnings(t *testing.T) {
	policy := ConfigReference{Fields: []string{shootKubeAPIServerPath + auditPolicyRefPath + ".name"}}
	require.NoError(t, policy.CheckContent(map[string]string{auditPolicyKey: `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Request"}, {"level": "None"}]}`}))
	require.ErrorContains(t, policy.CheckContent(map[string]string{auditPolicyKey: `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Requst"}]}`}), "rules[0].level")
	require.NoError(t, policy.CheckContent(map[string]string{auditPolicyKey: `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", "verbs": ["gett"]}]}`}), "an error of validate, which API servers take")
	authn := ConfigReference{Fields: []string{shootKubeAPIServerPath + ".structuredAuthentication.configMapName"}}
	require.NoError(t, authn.CheckContent(map[string]string{apiServerConfigKey: `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "anonymous": {"enabled": true}}`}))
}
