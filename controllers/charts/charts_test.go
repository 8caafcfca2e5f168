// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	"github.com/pergola-dev/pergola/hack/chartregistry"
	"github.com/pergola-dev/pergola/render"
)

// loginRegistry is a registry that requires a login.
type loginRegistry struct{ *chartregistry.Registry }

func newLoginRegistry(t *testing.T) loginRegistry { return loginRegistry{chartregistry.New(t)} }

func (r loginRegistry) loginSecrets(t *testing.T, password string) func(string) (map[string][]byte, error) {
	return func(name string) (map[string][]byte, error) {
		if name == "authority" {
			return map[string][]byte{"bundle.crt": r.CA()}, nil
		}
		return map[string][]byte{corev1.DockerConfigJsonKey: r.DockerConfigJSON(t, password)}, nil
	}
}

func (r loginRegistry) chartReference(ref string) gardencorev1.OCIRepository {
	ref = r.Host() + "/" + chartregistry.Repository + ref
	return gardencorev1.OCIRepository{Ref: &ref, PullSecretRef: &corev1.LocalObjectReference{Name: "login"}, CABundleSecretRef: &corev1.LocalObjectReference{Name: "authority"}}
}

func chartFiles(version string) map[string]string {
	return map[string]string{
		"watcher/Chart.yaml":          "apiVersion: v2\nname: watcher\nversion: " + version + "\n",
		"watcher/templates/some.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: watcher}\n",
	}
}

func TestPull(t *testing.T) {
	r := newLoginRegistry(t)
	first := r.Push(t, "v1", chartFiles("1.0.0"))
	clock := clocktesting.NewFakePassiveClock(time.Now())
	p := &Puller{Dir: t.TempDir(), Clock: clock}
	pull := func(p *Puller, ref, password string) render.Chart {
		t.Helper()
		all := p.PullAll(t.Context(), []gardencorev1.OCIRepository{r.chartReference(ref)}, r.loginSecrets(t, password))
		require.Len(t, all, 1)
		for _, c := range all {
			return c
		}
		return render.Chart{}
	}
	wrong := pull(p, ":v1", "wrong")
	assert.Contains(t, wrong.Problem, "chart "+r.Host()+"/charts/watcher:v1 cannot be pulled")
	assert.Contains(t, wrong.Problem, "rejects the credentials")
	assert.NotContains(t, wrong.Problem, "wrong\"")
	assert.Equal(t, first, pull(p, ":v1", chartregistry.Password).Digest)
	assert.Equal(t, first, pull(p, "@"+first, chartregistry.Password).Digest)

	second := r.Push(t, "v1", chartFiles("1.0.1"))
	asked := r.RequestCount.Load()
	assert.Equal(t, first, pull(p, ":v1", chartregistry.Password).Digest, "the answer about the tag is believed for a while")
	assert.Equal(t, asked, r.RequestCount.Load())
	clock.SetTime(clock.Now().Add(time.Hour))
	r.Unavailable.Store(true)
	assert.Equal(t, first, pull(p, ":v1", chartregistry.Password).Digest, "nothing changes while the registry does not answer")
	assert.Contains(t, pull(p, ":v2", chartregistry.Password).Problem, "status 503")
	r.Unavailable.Store(false)
	assert.Equal(t, second, pull(p, ":v1", chartregistry.Password).Digest)

	r.Unavailable.Store(true)
	again := &Puller{Dir: p.Dir, Clock: clock}
	assert.Equal(t, second, pull(again, "@"+second, chartregistry.Password).Digest, "what is named by its digest is in the cache")
	assert.Contains(t, pull(again, ":v1", chartregistry.Password).Problem, "status 503", "what a tag names is not")
}

func TestInvalidCharts(t *testing.T) {
	large := chartFiles("1.0.0")
	large["watcher/large"] = strings.Repeat("x", int(chartLimits.File)+1)
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no Chart.yaml": {map[string]string{"watcher/values.yaml": ""}, "not a Helm chart"},
		"out of it":     {map[string]string{"../watcher/Chart.yaml": ""}, "cannot be pulled"},
		"a large file":  {large, "cannot be pulled"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newLoginRegistry(t)
			r.Push(t, "v1", test.files)
			for _, c := range (&Puller{}).PullAll(t.Context(), []gardencorev1.OCIRepository{r.chartReference(":v1")}, r.loginSecrets(t, chartregistry.Password)) {
				assert.Contains(t, c.Problem, test.want)
				assert.Empty(t, c.Digest)
			}
		})
	}
}

func TestMissingSecrets(t *testing.T) {
	r := newLoginRegistry(t)
	all := (&Puller{}).PullAll(t.Context(), []gardencorev1.OCIRepository{r.chartReference(":v1")}, func(name string) (map[string][]byte, error) {
		return map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}, nil
	})
	for _, c := range all {
		assert.Contains(t, c.Problem, "Secret authority has no key bundle.crt")
	}
	require.Len(t, all, 1)
	assert.Zero(t, r.RequestCount.Load())
}
