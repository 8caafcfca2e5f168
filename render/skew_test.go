// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/schemas"
)

// TestVersionSkew checks images and gardenlets of releases other than the catalogue's Gardener
// v1.150.0.
func TestVersionSkew(t *testing.T) {
	version, err := GardenerVersion(components.FS)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(version, "v1.150."), version)
	gardenlet := func(deployment string) string {
		return "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: Gardenlet\nmetadata: {name: g, namespace: garden}\nspec: {deployment: " + deployment + "}\n"
	}
	managed := func(tag string) string {
		return "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: ManagedSeed\nmetadata: {name: g, namespace: garden}\nspec: {shoot: {name: g}, gardenlet: {deployment: {image: {tag: " + tag + "}}}}\n"
	}
	for name, test := range map[string]struct{ images, object, want string }{
		"the minor release before":   {images: "{name: gardener-apiserver, tag: v1.149.3}", want: "spec.images[0].tag"},
		"without v":                  {images: "{name: gardener-scheduler, tag: 1.151.0}", want: "spec.images[0].tag"},
		"a patch release":            {images: "{name: gardener-apiserver, tag: v1.150.9}"},
		"an image of its own pace":   {images: "{name: etcd-druid, tag: v0.37.0}"},
		"a digest":                   {images: "{name: gardener-apiserver, tag: 'sha256:" + strings.Repeat("a", 64) + "'}"},
		"only a mirror":              {images: "{name: gardener-apiserver, repository: mirror.example.org/apiserver}"},
		"another program":            {images: "{name: gardener-resource-manager, repository: registry.example.org/pergola, tag: 0.3.0}"},
		"a mirror, too old":          {images: "{name: gardener-apiserver, repository: mirror.example.org/gardener-apiserver, tag: v1.149.0}", want: "spec.images[0].tag"},
		"a gardenlet of old":         {object: gardenlet("{helm: {ociRepository: {ref: 'charts.example.org:5000/gardenlet:v1.105.0'}}}"), want: "spec.deployment.helm.ociRepository.ref"},
		"a newer gardenlet":          {object: gardenlet("{helm: {ociRepository: {repository: charts.example.org/gardenlet, tag: v1.151.0}}}"), want: "spec.deployment.helm.ociRepository.tag"},
		"its image is too old":       {object: gardenlet("{image: {tag: v1.147.2}}"), want: "spec.deployment.image.tag"},
		"two releases behind":        {object: gardenlet("{image: {tag: v1.148.2}}")},
		"a port, and no tag":         {object: gardenlet("{helm: {ociRepository: {ref: 'charts.example.org:5000/gardenlet'}}}")},
		"a digest of a chart":        {object: gardenlet("{helm: {ociRepository: {ref: 'charts.example.org/gardenlet:v1.0.0@sha256:" + strings.Repeat("a", 64) + "'}}}")},
		"a ManagedSeed":              {object: managed("v1.160.0"), want: "spec.gardenlet.deployment.image.tag"},
		"a ManagedSeed of that time": {object: managed("v1.150.1")},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"landscape.yaml": landscapeFile("{images: [" + test.images + "]}")}
			if test.object != "" {
				files["g.yaml"] = test.object
			}
			var got []string
			for _, v := range CheckLandscape(components.FS, loadLandscape(t, files)) {
				if v.Rule == ruleSkew || v.Rule == ruleImage {
					assert.Equal(t, schemas.SeverityWarning, v.Severity)
					got = append(got, v.Field)
				}
			}
			assert.Equal(t, test.want, strings.Join(got, " "))
		})
	}
}
