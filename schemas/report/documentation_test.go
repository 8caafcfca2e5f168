// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

func TestEveryKindHasDocumentation(t *testing.T) {
	pages := map[string]bool{}
	for _, gvk := range schemas.KnownKinds() {
		link := fieldReferencePage(gvk)
		_, err := url.ParseRequestURI(link)
		assert.NoError(t, err, gvk)
		if gvk.Group != "operations.gardener.cloud" {
			assert.False(t, pages[link] && gvk.Version != "v1beta1", "%s has the page of another kind", gvk)
		}
		pages[link] = true
	}
}

func TestDocumentation(t *testing.T) {
	const reference = "https://github.com/gardener/gardener/blob/master/docs/api-reference/"
	tests := map[string]struct {
		v       schemas.Violation
		content string
		want    string
	}{
		"a kind":              {schemas.Violation{Kind: "Garden", Rule: "structure"}, "", reference + "operator.md#garden"},
		"a kind of Kube":      {schemas.Violation{Kind: "ConfigMap", Rule: "configmap/data"}, "", "https://kubernetes.io/docs/reference/kubernetes-api/core/config-map-v1/"},
		"our own":             {schemas.Violation{Kind: "Landscape", Rule: "landscape/config"}, "", "https://github.com/pergola-dev/pergola/blob/main/landscapes/README.md#landscapeyaml"},
		"told by the rule":    {schemas.Violation{Kind: "BackupBucket", Rule: "extensions.backupbucket/spec"}, "", reference + "extensions.md#backupbucket"},
		"told by its other":   {schemas.Violation{Kind: "BackupBucket", Rule: "backupbucket/stays"}, "", reference + "core.md#backupbucket"},
		"told by the file":    {schemas.Violation{Kind: "Extension", Rule: "structure", Line: 5}, "kind: Seed\n---\napiVersion: extensions.gardener.cloud/v1alpha1\nkind: Extension\nspec: {}\n", reference + "extensions.md#extension"},
		"told by the version": {schemas.Violation{Kind: "ControllerDeployment", Rule: "structure", Line: 1}, "apiVersion: core.gardener.cloud/v1\nkind: ControllerDeployment\n", reference + "core-v1.md#controllerdeployment"},
		"not told":            {schemas.Violation{Kind: "Extension", Rule: "structure", Line: 1}, "", ""},
		"another kind":        {schemas.Violation{Kind: "Deployment", Rule: "any/metadata"}, "", ""},
		"a file":              {schemas.Violation{Rule: "landscape/file"}, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.v.Severity, test.v.File = schemas.SeverityError, "f.yaml"
			text := writeReport(t, []schemas.Violation{test.v}, Options{Format: FormatJSON, ReadSource: func(string) ([]byte, error) {
				if test.content == "" {
					return nil, os.ErrNotExist
				}
				return []byte(test.content), nil
			}})
			var list []map[string]any
			require.NoError(t, json.Unmarshal([]byte(text), &list))
			require.Len(t, list, 1)
			link, _ := list[0]["documentation"].(string)
			assert.Equal(t, test.want, link)
		})
	}
}
