// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/controllers/references"
	"github.com/pergola-dev/pergola/deploy"
	"github.com/pergola-dev/pergola/render"
)

// TestRightsOfTheGardenletInTheGarden reads objects that Shoots refer to with the rights of the
// gardenlet's access: each kind of binding, and its path to the credentials.
func TestRightsOfTheGardenletInTheGarden(t *testing.T) {
	admin := connectAs(t, "", nil)
	for _, d := range append(crds.ByGroup("core.gardener.cloud"), crds.ByGroup("security.gardener.cloud")...) {
		text, err := yaml.Marshal(d)
		require.NoError(t, err)
		definition := manifestOf(t, string(text))
		unstructured.RemoveNestedField(definition.Object, "status")
		applyAsAdmin(t, admin, definition)
	}
	applyAsAdmin(t, admin, renderRole(t, deploy.GardenletAccess).Objects...)
	namespace(t, admin, "garden-access")
	for _, manifest := range []string{
		`{apiVersion: v1, kind: Secret, metadata: {name: account, namespace: garden-access}, stringData: {key: value}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: policy, namespace: garden-access}, data: {policy: '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}'}}`,
		`{apiVersion: security.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: b, namespace: garden-access}, provider: {type: local}, credentialsRef: {apiVersion: v1, kind: Secret, name: account, namespace: garden-access}}`,
		`{apiVersion: core.gardener.cloud/v1beta1, kind: SecretBinding, metadata: {name: b, namespace: garden-access}, provider: {type: local}, secretRef: {name: account, namespace: garden-access}}`,
	} {
		applyAsAdmin(t, admin, manifestOf(t, manifest))
	}
	for name, spec := range map[string]string{
		"CredentialsBinding": `{credentialsBindingName: b, provider: {workers: [{name: a}]}}`,
		"SecretBinding":      `{secretBindingName: b, provider: {workers: [{name: a}]}}`,
		"audit policy":       `{kubernetes: {kubeAPIServer: {auditConfig: {auditPolicy: {configMapRef: {name: policy}}}}}}`,
		"resource":           `{resources: [{name: account, resourceRef: {apiVersion: v1, kind: Secret, name: account}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			requests := &requestLog{}
			shoot := manifestOf(t, `{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s, namespace: garden-access}, spec: `+spec+`}`)
			input := render.Input{
				Owner:   render.Owner{Kind: "shoot", Name: "s", Namespace: "garden-access", ControlPlaneNamespace: "shoot--access--s"},
				Objects: map[string]map[string]any{"shoot": shoot.Object},
			}
			found, err := references.Read(testContext(t), connectAs(t, "garden:gardenlet-local", requests), input)
			require.NoError(t, err)
			require.NotEmpty(t, found)
			require.NoError(t, references.JoinProblems(found))
			assert.Empty(t, requests.forbiddenRequests())
		})
	}
}

func manifestOf(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), o))
	return o
}
