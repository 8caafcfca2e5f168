// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas"
)

func TestMisspeltNamespaces(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string) schemas.Input {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return schemas.Input{Object: o}
	}
	project := object("core.gardener.cloud/v1beta1", "Project", "", "local")
	project.Object.Object["spec"] = map[string]any{"namespace": "garden-local"}
	numbered := object("core.gardener.cloud/v1beta1", "Project", "", "one")
	numbered.Object.Object["spec"] = map[string]any{"namespace": "garden-team-1"}
	for name, test := range map[string]struct{ namespace, kind, apiVersion, meant string }{
		"a letter is missing":           {"garden-locl", "ConfigMap", "v1", "garden-local"},
		"two letters are swapped":       {"garden-loacl", "Secret", "v1", "garden-local"},
		"two letters are others":        {"gardem-lokal", "WorkloadIdentity", "security.gardener.cloud/v1alpha1", "garden-local"},
		"a letter is too much":          {"garden-locall", "CredentialsBinding", "security.gardener.cloud/v1alpha1", "garden-local"},
		"a hyphen is missing":           {"gardenlocal", "Quota", "core.gardener.cloud/v1beta1", "garden-local"},
		"the namespace of the garden":   {"gardn", "Secret", "v1", "garden"},
		"that of the system":            {"kube-sytem", "ConfigMap", "v1", "kube-system"},
		"a declared Namespace":          {"monitorng", "ConfigMap", "v1", "monitoring"},
		"the namespace of a Project":    {"garden-local", "ConfigMap", "v1", ""},
		"the one of the garden":         {"garden", "ConfigMap", "v1", ""},
		"a system namespace":            {"kube-system", "ConfigMap", "v1", ""},
		"a Namespace as declared":       {"monitoring", "ConfigMap", "v1", ""},
		"another name":                  {"garden-other", "ConfigMap", "v1", ""},
		"three letters are others":      {"garden-lxyz", "ConfigMap", "v1", ""},
		"another number":                {"garden-team-2", "ConfigMap", "v1", ""},
		"what exists elsewhere":         {"garden-locale", "ConfigMap", "v1", ""},
		"a Shoot has a rule of its own": {"garden-locl", "Shoot", "core.gardener.cloud/v1beta1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inputs := []schemas.Input{project, numbered, object("v1", "Namespace", "", "monitoring"), object(test.apiVersion, test.kind, test.namespace, "a")}
			var found []string
			for _, v := range Check(inputs, Options{External: []External{{Kind: "Namespace", Name: "garden-locale"}}}) {
				if v.Rule == "landscape/namespace-misspelt" {
					assert.Equal(t, schemas.SeverityWarning, v.Severity)
					assert.Equal(t, "metadata.namespace", v.Field)
					found = append(found, v.Message)
				}
			}
			if test.meant == "" {
				assert.Empty(t, found)
				return
			}
			assert.Equal(t, []string{`no Project and no Namespace of this landscape has the namespace "` + test.namespace + `"; did you mean "` + test.meant + `"?`}, found)
		})
	}
}
