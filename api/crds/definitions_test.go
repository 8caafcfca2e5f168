// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// TestDefinitionsMatchUpstream compares names, scope, labels, columns and subresources of our
// definitions with upstream's, so that operators see the same in kubectl.
func TestDefinitionsMatchUpstream(t *testing.T) {
	dir := corpus.Dir(t)
	ours := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range crds.All() {
		ours[crd.Name] = crd
	}
	// EtcdOpsTask is not served: etcd-druid's configuration disables its controller.
	left := map[string]bool{"etcdopstasks.druid.gardener.cloud": true}
	compared := 0
	for _, folder := range []string{"garden/crds-extensions-gardener-cloud", "garden/crds-druid-gardener-cloud", "seed/crds-extensions-gardener-cloud", "seed/gardener-resourcemanager"} {
		data, err := os.ReadFile(filepath.Join(dir, "objects", folder, "reconcile-example.yaml"))
		require.NoError(t, err)
		for _, raw := range documentSeparator.Split(string(data), -1) {
			var want apiextensionsv1.CustomResourceDefinition
			if err := yaml.Unmarshal([]byte(strings.ReplaceAll(raw, "schema: OMITTED", "schema: {}")), &want); err != nil || want.Kind != "CustomResourceDefinition" || left[want.Name] {
				continue
			}
			got, ok := ours[want.Name]
			if !assert.True(t, ok, "no definition of %s", want.Name) {
				continue
			}
			compared++
			assert.Equal(t, want.Labels, got.Labels, "labels of %s", want.Name)
			assert.Equal(t, want.Spec.Names, got.Spec.Names, want.Name)
			assert.Equal(t, want.Spec.Scope, got.Spec.Scope, want.Name)
			require.Len(t, got.Spec.Versions, len(want.Spec.Versions), want.Name)
			for i, v := range want.Spec.Versions {
				assert.Equal(t, v.Subresources, got.Spec.Versions[i].Subresources, "subresources of %s", want.Name)
				have := slices.DeleteFunc(columnsWithoutDescriptions(got.Spec.Versions[i]), func(c apiextensionsv1.CustomResourceColumnDefinition) bool {
					// This column is our addition.
					return want.Name == "managedresources.resources.gardener.cloud" && c.Name == "Summary"
				})
				assert.Equal(t, columnsWithoutDescriptions(v), have, "columns of %s", want.Name)
			}
		}
	}
	assert.Greater(t, compared, 10)
}

// columnsWithoutDescriptions returns the columns without descriptions, which are our own words.
func columnsWithoutDescriptions(v apiextensionsv1.CustomResourceDefinitionVersion) []apiextensionsv1.CustomResourceColumnDefinition {
	var out []apiextensionsv1.CustomResourceColumnDefinition
	for _, c := range v.AdditionalPrinterColumns {
		c.Description = ""
		out = append(out, c)
	}
	return out
}
