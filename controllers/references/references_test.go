// SPDX-License-Identifier: Apache-2.0

package references

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &out.Object))
	return out
}

var shoot = render.Owner{Kind: "shoot", Namespace: "garden-local", Name: "s", ControlPlaneNamespace: "shoot--local--s"}

// TestCopies checks that a copy has only the content of its original, without the users' metadata.
func TestCopies(t *testing.T) {
	original := object(t, `
apiVersion: v1
kind: Secret
metadata:
  name: one
  namespace: garden-local
  uid: "1"
  finalizers: [gardener.cloud/reference-protection]
  labels: {app: kubernetes, role: apiserver}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
immutable: true
type: kubernetes.io/tls
data: {tls.crt: YQ==, tls.key: Yg==}
`)
	b, has, err := CopyBundle(shoot, []LookupResult{{ConfigReference: crosscheck.ConfigReference{Kind: "Secret", Name: "one"}, Object: original}})
	require.NoError(t, err)
	require.True(t, has)
	require.Len(t, b.Objects, 1)
	assert.Equal(t, object(t, `
apiVersion: v1
kind: Secret
metadata:
  name: ref-one
  namespace: shoot--local--s
  labels: {references.pergola.dev/copy: "true"}
  annotations: {resources.gardener.cloud/delete-on-invalid-update: "true"}
type: kubernetes.io/tls
data: {tls.crt: YQ==, tls.key: Yg==}
`).Object, b.Objects[0].Object)
	assert.Empty(t, b.Unresolved)
	assert.NotEmpty(t, b.Digest.Resolved)

	changed := original.DeepCopy()
	changed.Object["data"].(map[string]any)["tls.key"] = "Yw=="
	after, _, err := CopyBundle(shoot, []LookupResult{{Object: changed}})
	require.NoError(t, err)
	assert.NotEqual(t, b.Digest, after.Digest, "what was applied is told from what is to be")
}

// TestMissingCopies checks that nothing is applied or deleted while an object is missing.
func TestMissingCopies(t *testing.T) {
	found := []LookupResult{
		{ConfigReference: crosscheck.ConfigReference{Kind: "ConfigMap", Name: "policy"}, Object: object(t, "{kind: ConfigMap, metadata: {name: policy}, data: {policy: a}}")},
		{ConfigReference: crosscheck.ConfigReference{Kind: "Secret", Name: "gone"}, Problem: errors.New("object not found")},
	}
	b, has, err := CopyBundle(shoot, found)
	require.NoError(t, err)
	assert.True(t, has)
	assert.Len(t, b.Objects, 1)
	assert.Equal(t, []string{"Secret garden-local/gone"}, b.Unresolved)
	assert.Empty(t, b.Digest.Resolved)
	assert.EqualError(t, JoinProblems(found), "object not found")

	_, has, err = CopyBundle(shoot, nil)
	require.NoError(t, err)
	assert.False(t, has)
}

// TestContentErrorsQuoteNothing checks that errors about content do not quote it.
func TestContentErrorsQuoteNothing(t *testing.T) {
	policy := func(text string) string {
		return "{kind: ConfigMap, metadata: {name: a}, data: {policy: " + text + "}}"
	}
	const field = "spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef.name"
	for name, c := range map[string]struct{ kind, field, text, wrong string }{
		"a policy":              {"ConfigMap", field, policy(`"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]"`), ""},
		"a policy in binaries":  {"ConfigMap", field, "{kind: ConfigMap, metadata: {name: a}, binaryData: {policy: YXBpVmVyc2lvbjogYXVkaXQuazhzLmlvL3YxCmtpbmQ6IFBvbGljeQpydWxlczogW3tsZXZlbDogTm9uZX1d}}", ""},
		"no object":             {"ConfigMap", field, policy("nonsense"), "is not valid for " + field + ": data[policy]: is not a Policy of audit.k8s.io/v1 but a text, number or list; write an object with apiVersion and kind"},
		"no policy":             {"ConfigMap", field, policy(`"apiVersion: audit.k8s.io/v1\nkind: Other"`), "is not valid for " + field + ": data[policy]: is not a Policy of audit.k8s.io/v1"},
		"another key":           {"ConfigMap", field, "{kind: ConfigMap, metadata: {name: a}, data: {other: b}}", `has no key "policy", which ` + field + " needs"},
		"binaries that are not": {"ConfigMap", field, "{kind: ConfigMap, metadata: {name: a}, binaryData: {policy: \"*\"}}", "has binaryData[policy] that is not base64"},
		"for an extension":      {"ConfigMap", "spec.resources[0].resourceRef.name", "{kind: ConfigMap, metadata: {name: a}}", ""},
		"a kubeconfig":          {"Secret", "spec.kubernetes.kubeAPIServer.admissionPlugins[0].kubeconfigSecretName", "{kind: Secret, metadata: {name: a}, data: {kubeconfig: c2VjcmV0}}", ""},
		"no kubeconfig":         {"Secret", "spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[0].secretName", "{kind: Secret, metadata: {name: a}, data: {config: c2VjcmV0}}", `has no key "kubeconfig"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkContent(crosscheck.ConfigReference{Kind: c.kind, Name: "a", Fields: []string{c.field}}, object(t, c.text))
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
			assert.NotContains(t, err.Error(), "c2VjcmV0")
		})
	}
}
