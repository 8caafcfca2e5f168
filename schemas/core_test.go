// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	secretYAMLHeader    = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: garden}\n"
	configMapYAMLHeader = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden}\n"
	foreignYAMLHeader   = "apiVersion: example.org/v1\nkind: Widget\n"
	secretValue         = "hunter2"
)

// TestCoreKindsAndForeignKinds checks Namespaces, Secrets, ConfigMaps, and the metadata of kinds
// without a schema.
func TestCoreKindsAndForeignKinds(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"namespace":                {"apiVersion: v1\nkind: Namespace\nmetadata: {name: garden-local, labels: {gardener.cloud/role: project}}\nspec: {finalizers: [kubernetes]}\nstatus: {phase: Active}", nil},
		"namespace, no label name": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: garden.local}", []string{"metadata.name Invalid"}},
		"namespace, wrong fields": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\nspec: {finalizer: []}\ndata: {}",
			[]string{"data Forbidden", "metadata.namespace Forbidden", "spec.finalizer Forbidden"}},
		"secret":               {secretYAMLHeader + "type: Opaque\nimmutable: true\ndata: {a.b_c-d: aGk=}\nstringData: {e: plain}", nil},
		"secret without key":   {secretYAMLHeader + "type: kubernetes.io/tls\ndata: {tls.crt: \"\", tls.key: \"\"}", nil},
		"secret without data":  {secretYAMLHeader, nil},
		"no metadata":          {"apiVersion: v1\nkind: Secret\ndata: {}", []string{"metadata Required"}},
		"secret, no place":     {"apiVersion: v1\nkind: Secret\nmetadata: {name: A_b}", []string{"metadata.name Invalid", "metadata.namespace Required"}},
		"secret, wrong values": {secretYAMLHeader + "data: {a: " + secretValue + ", b: 5, c: true, d: 1.5, e: {f: " + secretValue + "}, f: [" + secretValue + "]}", []string{"data[a] Invalid", "data[b] TypeInvalid", "data[c] TypeInvalid", "data[d] TypeInvalid", "data[e] TypeInvalid", "data[f] TypeInvalid"}},
		"secret, plain values": {secretYAMLHeader + "stringData: {a: 424242, b: false}", []string{"stringData[a] TypeInvalid", "stringData[b] TypeInvalid"}},
		"secret, data is text": {secretYAMLHeader + "data: " + secretValue + "\nimmutable: \"yes\"\nstringdata: {a: " + secretValue + "}", []string{"data TypeInvalid", "immutable TypeInvalid", "stringdata Forbidden"}},
		"secret, types":        {secretYAMLHeader + "type: kubernetes.io/service-account-token\nstringData: {username: a}", []string{"metadata.annotations[kubernetes.io/service-account.name] Required"}},
		"secret, basic auth":   {secretYAMLHeader + "type: kubernetes.io/basic-auth\nstringData: {username: a}", nil},
		"secret too large":     {secretYAMLHeader + "stringData: {a: " + strings.Repeat("x", 1<<20) + ", b: x}", []string{"data TooLong"}},
		"secret, just fits":    {secretYAMLHeader + "data: {a: " + base64.StdEncoding.EncodeToString(make([]byte, 1<<20)) + "}\nstringData: {a: x}", nil},
		"config map":           {configMapYAMLHeader + "data: {a: b}\nbinaryData: {c: aGk=}\nimmutable: false", nil},
		"config map, wrong":    {configMapYAMLHeader + "data: {a: 5, b: yes}\nbinaryData: {c: \"not base64\"}\nstringData: {}", []string{"binaryData[c] Invalid", "data[a] TypeInvalid", "data[b] TypeInvalid", "stringData Forbidden"}},
		"long key":             {configMapYAMLHeader + "data: {" + strings.Repeat("k", 254) + ": x}", []string{"data[" + strings.Repeat("k", 254) + "] Invalid"}},
		"foreign":              {foreignYAMLHeader + "metadata: {name: provider-local, labels: {a.b/c: d}}\nspec: {anything: [5]}", nil},
		"foreign, wrong": {foreignYAMLHeader + "metadata: {name: Provider, lables: {}, labels: {a: 5, b: -}, annotations: {a b: c}}\nspec: 5",
			[]string{"metadata.annotations Invalid", "metadata.labels Invalid", "metadata.labels[a] TypeInvalid", "metadata.lables Forbidden", "metadata.name Invalid"}},
		"foreign, metadata is a number": {foreignYAMLHeader + "metadata: 5", []string{"metadata TypeInvalid"}},
		"foreign, path segment":         {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"system:a\"}", nil},
		"large annotations":             {foreignYAMLHeader + "metadata: {name: a, annotations: {a: " + strings.Repeat("x", 1<<18) + "}}", []string{"metadata.annotations TooLong"}},
		"owners":                        {configMapYAMLHeader[:len(configMapYAMLHeader)-2] + ", ownerReferences: [{apiVersion: v1, kind: Secret, name: a, uuid: b}]}", []string{"metadata.ownerReferences[0].uuid Forbidden"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			violations, err := Validate(t.Context(), []Input{{Object: parseObject(t, test.text)}}, Options{})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				found = append(found, v.Field+" "+string(v.Type))
				assert.NotContains(t, v.Message, secretValue)
				assert.NotContains(t, v.Message, "424242")
				assert.NotEmpty(t, v.Message)
			}
			assert.Equal(t, test.want, found, "%v", formatViolations(violations))
		})
	}
}

// TestUnquotedTextHint checks that the message about a number or boolean instead of text, the
// classic error in ConfigMaps, contains the fix.
func TestUnquotedTextHint(t *testing.T) {
	violations, err := Validate(t.Context(), []Input{{Object: parseObject(t, configMapYAMLHeader+"data: {port: 8080, debug: true}")}, {Object: parseObject(t, secretYAMLHeader+"stringData: {pin: 424242}")}}, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"data[debug] TypeInvalid must be text, but is true; put it in quotes [structure]",
		"data[port] TypeInvalid must be text, but is the number 8080; put it in quotes [structure]",
		"stringData[pin] TypeInvalid must be text, but is a number; put it in quotes [structure]",
	}, formatViolations(violations))
}

// TestFollowUpFindingsDropped checks that rule findings that only follow from schema findings are
// dropped, and others are not.
func TestFollowUpFindingsDropped(t *testing.T) {
	const pool = `name: a, minimum: 1, machine: {type: local, image: {name: local, version: 1.0.0}}, cri: {name: containerd}`
	tests := map[string]struct {
		kind, change string
		want         []string
	}{
		"misspelt field": {"Shoot", `spec: {provider: {workers: [{` + pool + `, maximun: 7}]}}`,
			[]string{"spec.provider.workers[0].maximun Forbidden"}},
		"misspelt field, and another rule broken beside it": {"Shoot", `spec: {provider: {workers: [{` + pool + `, maximun: 7, maxSurge: 0, maxUnavailable: 0}]}, kubernetes: {kubeAPIServer: {eventTTL: 48h}}}`,
			[]string{"spec.kubernetes.kubeAPIServer.eventTTL Invalid", "spec.provider.workers[0].maxUnavailable Invalid", "spec.provider.workers[0].maximun Forbidden"}},
		"wrong type": {"Shoot", `spec: {provider: {workers: [{` + pool + `, maximum: "7"}]}}`,
			[]string{"spec.provider.workers[0].maximum TypeInvalid"}},
		"unknown field without a guess": {"Shoot", `spec: {provider: {workers: [{` + pool + `, maximum: 0, minimum: 0, other: 7}]}}`,
			[]string{"spec.provider.workers[0].other Forbidden"}},
		"misspelt beside the field that was meant": {"Shoot", `spec: {provider: {workers: [{` + pool + `, maximum: 0, maximun: 7}]}}`,
			[]string{"spec.provider.workers[0].maximum Forbidden", "spec.provider.workers[0].maximun Forbidden"}},
		"a double is one whatever else is wrong in it": {"Project", `spec: {members: [{kind: User, name: a, role: admin}, {kind: User, name: a, role: admin, rules: []}]}`,
			[]string{"spec.members[1] Duplicate", "spec.members[1].rules Forbidden"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			violations, err := Validate(t.Context(), []Input{{Object: patchObject(t, validObject(t, test.kind), test.change)}}, Options{})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				found = append(found, v.Field+" "+string(v.Type))
			}
			assert.Equal(t, test.want, found, "%v", formatViolations(violations))
		})
	}
}

// pathPositioner returns the path as the file, so that a test sees which path was looked up.
type pathPositioner struct{}

func (pathPositioner) Position(path string) Position { return Position{File: path} }

// TestRolePosition checks that the field counts roles as the API does, and the position as the file
// does.
func TestRolePosition(t *testing.T) {
	project := patchObject(t, validObject(t, "Project"), `spec: {members: [{kind: User, name: a, role: viewer, roles: [boss, uam]}, {kind: User, name: b, role: chief}]}`)
	violations, err := Validate(t.Context(), []Input{{Object: project, Positions: pathPositioner{}}}, Options{})
	require.NoError(t, err)
	require.Len(t, violations, 2)
	assert.Equal(t, []string{"spec.members[0].roles[1]", "spec.members[0].roles[0]"}, []string{violations[0].Field, violations[0].File})
	assert.Equal(t, []string{"spec.members[1].roles[0]", "spec.members[1].role"}, []string{violations[1].Field, violations[1].File})
}

// TestWrongParentTypeIsOneFinding checks that a parent of a wrong type is one finding, even if
// rules read its fields.
func TestWrongParentTypeIsOneFinding(t *testing.T) {
	for _, kind := range []string{"Garden", "CloudProfile", "Seed", "Project", "Shoot", "Landscape"} {
		shoot := &unstructured.Unstructured{Object: validObject(t, kind).Object}
		shoot.Object["spec"] = int64(5)
		violations, err := Validate(t.Context(), []Input{{Object: shoot}}, Options{})
		require.NoError(t, err)
		assert.Equal(t, []string{"spec TypeInvalid must be an object, but is the number 5 [structure]"}, formatViolations(violations), kind)
	}
}
