// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// TestKindNamesDistinct checks that kinds of the same name have their own definition in each group
// and version, and their own rules in each group.
func TestKindNamesDistinct(t *testing.T) {
	definitions, rules := map[string]schema.GroupVersionKind{}, map[string]schema.GroupKind{}
	for gvk, kind := range kindsWithSchema(t) {
		other, taken := definitions[kind.CUEDefinition()]
		assert.False(t, taken, "%s and %s have the same definition", gvk, other)
		definitions[kind.CUEDefinition()] = gvk
		group, taken := rules[structure.RulesName(gvk)]
		assert.True(t, !taken || group == gvk.GroupKind(), "%s and %s have the same rules", gvk, group)
		rules[structure.RulesName(gvk)] = gvk.GroupKind()
	}
	assert.Equal(t, len(KnownKinds()), len(definitions))
}

// TestKindsWithSameName checks that an object gets the schema of its own group and version.
func TestKindsWithSameName(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"operator's Extension":        {"apiVersion: operator.gardener.cloud/v1alpha1\nkind: Extension\nmetadata: {name: a}\nspec: {deployment: {}}", nil},
		"extension object":            {"apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Extension\nmetadata: {name: a, namespace: b}\nspec: {type: a, deployment: {}}", []string{"spec.deployment Forbidden"}},
		"v1 as v1":                    {"apiVersion: core.gardener.cloud/v1\nkind: ControllerDeployment\nmetadata: {name: a}\nhelm: {rawChart: aGk=}", nil},
		"v1 as v1beta1":               {"apiVersion: core.gardener.cloud/v1beta1\nkind: ControllerDeployment\nmetadata: {name: a}\nhelm: {rawChart: aGk=}", []string{"helm Forbidden", "type Required"}},
		"v1beta1 as v1beta1":          {"apiVersion: core.gardener.cloud/v1beta1\nkind: ControllerDeployment\nmetadata: {name: a}\ntype: helm\nproviderConfig: {chart: aGk=}", nil},
		"v1beta1 as v1":               {"apiVersion: core.gardener.cloud/v1\nkind: ControllerDeployment\nmetadata: {name: a}\ntype: helm\nproviderConfig: {chart: aGk=}", []string{"providerConfig Forbidden", "type Forbidden"}},
		"missing object at the top":   {"apiVersion: security.gardener.cloud/v1alpha1\nkind: CredentialsBinding\nmetadata: {name: a, namespace: b}\ncredentialsRef: {kind: Secret}", []string{"provider.type Required"}},
		"incomplete Shoot template":   {managedSeedSet + "{dns: {domain: a}}}}", nil},
		"wrong field in the template": {managedSeedSet + "{dns: {domian: a}}}}", []string{"spec.shootTemplate.spec.dns.domian Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			violations, err := Validate(t.Context(), []Input{{Object: parseObject(t, test.text)}}, Options{})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				if v.Rule == RuleStructure {
					found = append(found, v.Field+" "+string(v.Type))
				}
			}
			assert.Equal(t, test.want, found, "%v", formatViolations(violations))
		})
	}
}

const managedSeedSet = "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: ManagedSeedSet\nmetadata: {name: a, namespace: garden}\n" +
	"spec: {selector: {matchLabels: {a: b}}, template: {spec: {gardenlet: {}}}, shootTemplate: {spec: "

// TestNoSecretValuesInMessages checks that no wrong secret value gets into a message.
func TestNoSecretValuesInMessages(t *testing.T) {
	for name, text := range map[string]string{
		"InternalSecret, not base64":  "apiVersion: core.gardener.cloud/v1beta1\nkind: InternalSecret\nmetadata: {name: a, namespace: b}\ndata: {a: " + secretValue + "}",
		"InternalSecret, not a map":   "apiVersion: core.gardener.cloud/v1beta1\nkind: InternalSecret\nmetadata: {name: a, namespace: b}\nstringData: " + secretValue,
		"InternalSecret, number":      "apiVersion: core.gardener.cloud/v1beta1\nkind: InternalSecret\nmetadata: {name: a, namespace: b}\nstringData: {a: 424242}",
		"Secret, immutable":           secretYAMLHeader + "immutable: " + secretValue,
		"Secret, unknown field":       secretYAMLHeader + secretValue + ": a",
		"Secret, unknown fields":      secretYAMLHeader + secretValue + ": a\n" + secretValue + "2: {b: 424242}",
		"InternalSecret, immutable":   "apiVersion: core.gardener.cloud/v1beta1\nkind: InternalSecret\nmetadata: {name: a, namespace: b}\nimmutable: " + secretValue,
		"InternalSecret, unknown":     "apiVersion: core.gardener.cloud/v1beta1\nkind: InternalSecret\nmetadata: {name: a, namespace: b}\n" + secretValue + ": " + secretValue,
		"Secret, no JSON":             secretYAMLHeader + "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: " + secretValue + "}",
		"ShootState, gardener":        "apiVersion: core.gardener.cloud/v1beta1\nkind: ShootState\nmetadata: {name: a, namespace: b}\nspec: {gardener: [{name: a, type: b, data: " + secretValue + "}]}",
		"ShootState, extensions":      "apiVersion: core.gardener.cloud/v1beta1\nkind: ShootState\nmetadata: {name: a, namespace: b}\nspec: {extensions: [{kind: a, state: " + secretValue + "}]}",
		"ShootState, resources":       "apiVersion: core.gardener.cloud/v1beta1\nkind: ShootState\nmetadata: {name: a, namespace: b}\nspec: {resources: [{kind: a, name: b, data: " + secretValue + "}]}",
		"extension object, its state": "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Worker\nmetadata: {name: a, namespace: b}\nstatus: {state: " + secretValue + "}",
		"bastion, its user data":      "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Bastion\nmetadata: {name: a, namespace: b}\nspec: {type: a, ingress: [], userData: " + secretValue + "}",
	} {
		t.Run(name, func(t *testing.T) {
			violations, err := Validate(t.Context(), []Input{{Object: parseObject(t, text)}}, Options{})
			require.NoError(t, err)
			require.NotEmpty(t, violations)
			assert.True(t, HasErrors(violations))
			said := strings.Join(formatViolations(violations), "\n")
			assert.NotContains(t, said, secretValue)
			assert.NotContains(t, said, "424242")
		})
	}
}

// TestMisspeltFieldOfASecret checks that a misspelt field is reported with its name and the right
// one.
func TestMisspeltFieldOfASecret(t *testing.T) {
	violations, err := Validate(t.Context(), []Input{{Object: parseObject(t, secretYAMLHeader+"stringdata: {a: b}\nmetadat: {}")}}, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{
		`metadat Forbidden the field "metadat" does not exist; did you mean "metadata"? [structure]`,
		`stringdata Forbidden the field "stringdata" does not exist; did you mean "stringData"? [structure]`,
	}, formatViolations(violations))
}

// TestFractionalQuantities checks fractional quantities: Gardener's API server accepts any number
// as a quantity, a definition only whole numbers.
func TestFractionalQuantities(t *testing.T) {
	profile := patchObject(t, validObject(t, "CloudProfile"), `spec: {machineTypes: [{name: local, cpu: 0.5, gpu: 0, memory: 1.5e9}]}`)
	negative := patchObject(t, validObject(t, "CloudProfile"), `spec: {machineTypes: [{name: local, cpu: -0.5, gpu: 0, memory: 1Gi}]}`)
	surge := patchObject(t, validObject(t, "Shoot"), `spec: {provider: {workers: [{name: a, machine: {type: local, image: {name: local, version: 1.0.0}}, minimum: 1, maximum: 1, maxSurge: 0.5}]}}`)
	garden := patchObject(t, validObject(t, "Garden"), `spec: {virtualCluster: {etcd: {main: {autoscaling: {minAllowed: {cpu: 0.5}}}}}}`)
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		want   []string
	}{
		"quantity":                 {profile, nil},
		"negative quantity":        {negative, []string{"spec.machineTypes[0].cpu Invalid"}},
		"int or string":            {surge, []string{"spec.provider.workers[0].maxSurge TypeInvalid"}},
		"quantity of a definition": {garden, []string{"spec.virtualCluster.etcd.main.autoscaling.minAllowed[cpu] TypeInvalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			violations, err := Validate(t.Context(), []Input{{Object: test.object}}, Options{})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				found = append(found, v.Field+" "+string(v.Type))
			}
			assert.Equal(t, test.want, found, "%v", formatViolations(violations))
		})
	}
}
