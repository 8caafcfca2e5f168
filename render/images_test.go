// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

func TestResolveImages(t *testing.T) {
	vector := []Image{
		{Name: "app", Repository: "example.org/app", Tag: "v1"},
		{Name: "kube-apiserver", Repository: "registry.k8s.io/kube-apiserver"},
		{Name: "split", Repository: "example.org/split", Tag: "old", TargetVersion: "< 1.34"},
		{Name: "split", Repository: "example.org/split", Tag: "new", TargetVersion: ">= 1.34"},
		{Name: "exact", Repository: "example.org/exact", Tag: "any"},
		{Name: "exact", Repository: "example.org/exact", Tag: "runtime", RuntimeVersion: ">= 1.33"},
		{Name: "exact", Repository: "example.org/exact", Tag: "both", RuntimeVersion: ">= 1.33", TargetVersion: ">= 1.35"},
		{Name: "digest", Repository: "example.org/digest", Tag: "sha256:abc"},
		{Name: "gone", Repository: "example.org/gone", Tag: "v1", TargetVersion: "< 1.30"},
	}
	tests := map[string]struct {
		runtime, target string
		overrides       []Image
		want            map[string]string
		absent          []string
		err             string
	}{
		"no overrides": {runtime: "1.33.5", target: "1.34.1", absent: []string{"gone"}, want: map[string]string{
			"app": "example.org/app:v1", "kube-apiserver": "registry.k8s.io/kube-apiserver:v1.34.1", "split": "example.org/split:new",
			"exact": "example.org/exact:runtime", "digest": "example.org/digest@sha256:abc",
		}},
		"other versions":     {runtime: "1.33.5", target: "1.35.0", want: map[string]string{"exact": "example.org/exact:both"}},
		"older versions":     {runtime: "1.32.0", target: "1.33.9", want: map[string]string{"exact": "example.org/exact:any", "split": "example.org/split:old"}},
		"override the tag":   {runtime: "1.33.5", target: "1.34.1", overrides: []Image{{Name: "app", Tag: "v2"}}, want: map[string]string{"app": "example.org/app:v2"}},
		"override the place": {runtime: "1.33.5", target: "1.34.1", overrides: []Image{{Name: "kube-apiserver", Repository: "mirror.example.org/k"}}, want: map[string]string{"kube-apiserver": "mirror.example.org/k:v1.34.1"}},
		"override by digest": {runtime: "1.33.5", target: "1.34.1", overrides: []Image{{Name: "exact", Tag: "sha256:def"}}, want: map[string]string{"exact": "example.org/exact@sha256:def"}},
		"the last one wins": {runtime: "1.33.5", target: "1.34.1", overrides: []Image{{Name: "app", Tag: "v2", TargetVersion: ">= 1.30"}, {Name: "app", Tag: "v3"}, {Name: "app", Repository: "mirror.example.org/app"}},
			want: map[string]string{"app": "mirror.example.org/app:v3"}},
		"only for some versions": {runtime: "1.33.5", target: "1.34.1", overrides: []Image{{Name: "app", Tag: "v2", TargetVersion: "< 1.34"}}, want: map[string]string{"app": "example.org/app:v1"}},
		"unknown name":           {runtime: "1.33.5", target: "1.34.1", overrides: []Image{{Name: "ap", Tag: "v2"}}, err: `image overrides of the landscape: no image "ap" in components/imagevector.yaml`},
		"bad constraint":         {runtime: "1.33.5", target: "1.34.1", overrides: []Image{{Name: "app", Tag: "v2", TargetVersion: "newest"}}, err: `image overrides of the landscape: image app: version constraint "newest"`},
		"bad version":            {runtime: "x", target: "1.34.1", err: `version "x" of Kubernetes`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ResolveImages(vector, test.overrides, test.runtime, test.target)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			for image, want := range test.want {
				assert.Equal(t, want, got[image], image)
			}
			for _, image := range test.absent {
				assert.NotContains(t, got, image)
			}
		})
	}
}

// TestImageVector: every image of the catalogue has a repository, and a tag unless it is tagged
// with the Kubernetes version.
func TestImageVector(t *testing.T) {
	vector, err := ReadImageVector(components.FS)
	require.NoError(t, err)
	require.NotEmpty(t, vector)
	byVersion := map[string]bool{"kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true, "kube-proxy": true, "hyperkube": true}
	for _, image := range vector {
		assert.NotEmpty(t, image.Repository, image.Name)
		if !byVersion[image.Name] {
			assert.NotEmpty(t, image.Tag, image.Name)
		}
	}
}
