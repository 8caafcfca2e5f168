// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// TestFieldsOfUpstreamExamples checks that our types have every field that upstream's examples
// name, even in comments. The examples show nearly all fields, so that the test finds fields added
// upstream.
func TestFieldsOfUpstreamExamples(t *testing.T) {
	dir := corpus.Dir(t)
	key := regexp.MustCompile(`^\s*#?\s*(?:- )*([a-z][A-Za-z0-9]+):(?:\s|$)`)
	// These are keys of maps, opaque configuration, Secrets beside the object, and words at the
	// start of a comment.
	free := []string{"foo", "secretRef", "stringData", "hostPath", "cpu", "memory", "see", "namespace1", "namespace2",
		"podNodeSelectorPluginConfig", "clusterDefaultNodeSelector", "commonSuffixes", "secrets", "rmem", "wmem"}
	for kind, file := range map[string]string{
		"Garden": "operator/20-garden.yaml", "Seed": "50-seed.yaml", "Shoot": "90-shoot.yaml", "Project": "05-project-dev.yaml", "CloudProfile": "30-cloudprofile.yaml",
	} {
		t.Run(kind, func(t *testing.T) {
			index := slices.IndexFunc(crds.All(), func(crd *apiextensionsv1.CustomResourceDefinition) bool {
				return crd.Spec.Names.Kind == kind && !strings.HasPrefix(crd.Spec.Group, "extensions.")
			})
			require.GreaterOrEqual(t, index, 0)
			known := map[string]bool{}
			collectFieldNames(crds.All()[index].Spec.Versions[0].Schema.OpenAPIV3Schema, known)
			for _, name := range append(free, "name", "namespace", "annotations", "labels") {
				known[name] = true
			}
			data, err := os.ReadFile(filepath.Join(dir, "valid", "example", filepath.FromSlash(file)))
			require.NoError(t, err)
			found := 0
			for i, line := range strings.Split(string(data), "\n") {
				if match := key.FindStringSubmatch(line); match != nil {
					found++
					assert.True(t, known[match[1]], "%s:%d: our %s has no field %s", file, i+1, kind, match[1])
				}
			}
			assert.Greater(t, found, 20)
		})
	}
}

func collectFieldNames(props *apiextensionsv1.JSONSchemaProps, names map[string]bool) {
	for name, child := range props.Properties {
		names[name] = true
		collectFieldNames(&child, names)
	}
	if props.Items != nil {
		collectFieldNames(props.Items.Schema, names)
	}
	if extra := props.AdditionalProperties; extra != nil && extra.Schema != nil {
		collectFieldNames(extra.Schema, names)
	}
}
