// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

func TestLandscapeSchema(t *testing.T) {
	crd := crds.Get(landscapev1alpha1.GroupName, "Landscape")
	require.NotNil(t, crd)
	validator := newValidator(t, crd)
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"empty": {spec: "{}"},
		"full": {spec: `
catalogue: {version: v0.1.0}
layers: [../base]
gardenAPI: aggregated
clusters:
  runtime: {context: runtime}
  virtual: {secretRef: {name: virtual, key: kubeconfig}}
  seeds: {local: {kubeconfig: ../local.yaml, context: seed}}
components:
  garden: {istio: {enabled: false}}
images: [{name: etcd-druid, repository: example.org/druid, tag: v0.38.1}]
deletionGate: {maxDeletions: 0, maxShare: 10%, protectedKinds: [Etcd.druid.gardener.cloud]}
conditionThresholds: [{type: APIServerAvailable, duration: 1m}]
managedResourceProgressingThreshold: 1h
health:
  rules: [{apiGroup: example.org, kind: A, healthy: 'true', progressing: 'false', message: '""'}, {kind: A, healthy: 'true'}, {apiGroup: example.org, kind: B}]
  otherKinds: Existence
facts: facts.yaml
source:
  url: https://git.example.org/landscape.git
  ref: {branch: main}
  path: landscapes/live
  interval: 1m
  secretRef: {name: git}
  verify: {secretRef: {name: keys}}
decryption: {secretRef: {name: sops}}
serviceAccountName: landscape
suspend: false
interval: 10m
timeout: 1h
`},
		"catalogue without version": {spec: "catalogue: {}", want: []string{"spec.catalogue.version"}},
		"version":                   {spec: "catalogue: {version: latest}", want: []string{"spec.catalogue.version"}},
		"garden API":                {spec: "gardenAPI: both", want: []string{"spec.gardenAPI"}},
		"two ways to a cluster":     {spec: "clusters: {runtime: {kubeconfig: a, secretRef: {name: b}}}", want: []string{"spec.clusters.runtime"}},
		"share":                     {spec: "deletionGate: {maxShare: 110%}", want: []string{"spec.deletionGate.maxShare"}},
		"negative gate":             {spec: "deletionGate: {maxDeletions: -1}", want: []string{"spec.deletionGate.maxDeletions"}},
		"threshold twice":           {spec: "conditionThresholds: [{type: A, duration: 1m}, {type: A, duration: 2m}]", want: []string{"spec.conditionThresholds[1]"}},
		"threshold":                 {spec: "conditionThresholds: [{type: A, duration: soon}]", want: []string{"spec.conditionThresholds[0].duration"}},
		"rule twice":                {spec: "health: {rules: [{kind: A, healthy: 'true'}, {apiGroup: '', kind: A, healthy: 'true'}]}", want: []string{"spec.health.rules[1]"}},
		"rule without kind":         {spec: "health: {rules: [{apiGroup: a.org, healthy: 'true'}]}", want: []string{"spec.health.rules[0].kind"}},
		"other kinds":               {spec: "health: {otherKinds: None}", want: []string{"spec.health.otherKinds"}},
		"progressing threshold":     {spec: "managedResourceProgressingThreshold: soon", want: []string{"spec.managedResourceProgressingThreshold"}},
		"source":                    {spec: "source: {url: git.example.org/landscape}", want: []string{"spec.source.url"}},
		"commit":                    {spec: "source: {url: 'https://example.org', ref: {commit: abc}}", want: []string{"spec.source.ref.commit"}},
		"image without name":        {spec: "images: [{tag: v1}]", want: []string{"spec.images[0].name"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.spec), &spec))
			object := map[string]any{
				"apiVersion": "landscape.pergola.dev/v1alpha1", "kind": "Landscape",
				"metadata": map[string]any{"name": "local"}, "spec": normalizeNumbers(spec),
			}
			require.Empty(t, validator.pruneAndDefault(object), "unknown fields")
			var fields []string
			for _, err := range validator.validate(object, nil) {
				// This error only reports that rules were skipped because of the other errors.
				if err.Field != "<nil>" && err.Field != "" {
					fields = append(fields, err.Field)
				}
			}
			assert.Equal(t, test.want, fields)
		})
	}
}

func TestLandscapeDefaults(t *testing.T) {
	validator := newValidator(t, crds.Get(landscapev1alpha1.GroupName, "Landscape"))
	object := map[string]any{"spec": map[string]any{}}
	validator.pruneAndDefault(object)
	assert.Equal(t, map[string]any{"gardenAPI": "crd"}, object["spec"])
}
