// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/schemas"
)

// TestImageOverrides: entries without effect, or with an unlikely one, are reported.
func TestImageOverrides(t *testing.T) {
	shoot := "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: s, namespace: garden-a}\nspec: {kubernetes: {version: %s}}\n"
	for name, test := range map[string]struct{ images, shoot, config, want string }{
		"a mirror":                        {images: "{name: kube-apiserver, repository: mirror.example.org/kube-apiserver}"},
		"nothing":                         {images: "{name: kube-apiserver}", want: "spec.images[0]: it changes nothing; give a repository or a tag"},
		"a range and nothing":             {images: "{name: kube-apiserver, version: '>= 1.34'}", want: "spec.images[0]: it changes nothing; give"},
		"replaced in part":                {images: "{name: etcd-druid, repository: a.example.org/etcd-druid, tag: v0.1.0}, {name: etcd-druid, tag: v0.1.1}", want: "spec.images[0].tag: it has no effect, since spec.images[1].tag replaces it"},
		"replaced":                        {images: "{name: etcd-druid, tag: v0.1.0}, {name: etcd-druid, repository: a.example.org/druid, tag: v0.1.1}", want: "spec.images[0]: it changes nothing, since spec.images[1] replaces all of it"},
		"replaced for the same versions":  {images: "{name: etcd-druid, tag: v0.1.0, version: '>= 1.33'}, {name: etcd-druid, tag: v0.1.1, version: '>= 1.33'}", want: "spec.images[0]: it changes nothing, since"},
		"both count":                      {images: "{name: etcd-druid, tag: v0.1.0}, {name: etcd-druid, repository: a.example.org/druid}"},
		"an exception":                    {images: "{name: etcd-druid, tag: v0.1.0}, {name: etcd-druid, tag: v0.1.1, version: '>= 1.33'}"},
		"no cluster":                      {images: "{name: etcd-druid, tag: v0.1.1, version: '< 1.20'}", shoot: "1.34.2", want: "spec.images[0].version: it changes nothing, since no cluster has or can get such a Kubernetes version; the versions are 1.34.2, 1.36.0"},
		"a minor release without a patch": {images: "{name: etcd-druid, tag: v0.1.1, version: '>= 1.34.5, < 1.35'}", shoot: "'1.34'"},
		"Shoots that the API has":         {images: "{name: etcd-druid, tag: v0.1.1, version: '< 1.20'}", config: "external: [{kind: Shoot, namespace: garden-a, name: '*'}], "},
		"another Kubernetes":              {images: "{name: kube-apiserver, tag: v1.33.2}", shoot: "1.34.2", want: "spec.images[0].tag: v1.33.2 is not the minor release of a cluster with Kubernetes 1.34.2"},
		"for those that have it":          {images: "{name: kube-apiserver, tag: v1.33.2, version: ~1.33}", shoot: "1.34.2", want: "spec.images[0].version: it changes nothing"},
		"its patch release":               {images: "{name: kube-apiserver, tag: v1.34.3, version: ~1.34.2}", shoot: "1.34.2"},
		"latest":                          {images: "{name: etcd-druid, tag: latest}", want: "spec.images[0].tag: latest can become another image"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"landscape.yaml": landscapeFile("{" + test.config + "images: [" + test.images + "]}")}
			if test.shoot != "" {
				files["s.yaml"] = fmt.Sprintf(shoot, test.shoot)
			}
			var got []string
			for _, v := range CheckLandscape(components.FS, loadLandscape(t, files)) {
				if v.Rule == ruleImage {
					assert.Equal(t, schemas.SeverityWarning, v.Severity)
					got = append(got, v.Field+": "+v.Message)
				}
			}
			if test.want == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Contains(t, got[0], test.want)
		})
	}
}
