// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"context"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/internal/filearchive"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

const (
	configText = `apiVersion: landscape.pergola.dev/v1alpha1
kind: Landscape
metadata: {name: demo}
spec:
  catalogue: {version: 0.3.0}
  layers: [../base]
  clusters: {runtime: {context: secret-context}}
  source: {url: https://git.example.org/landscape.git}
  components:
    garden: {vpa: {enabled: false}}
    seed: {etcd-druid: {enabled: false}}
  conditionThresholds:
  - {type: RuntimeComponentsHealthy, duration: 1m}
  - {type: ObservabilityComponentsHealthy, duration: 1m}
  - {type: ControlPlaneHealthy, duration: 2m}
`
	baseText = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: base}\nspec: {forceConflicts: true}\n"
	patch    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	domain   = `apiVersion: v1
kind: Secret
metadata:
  name: default-domain
  namespace: garden
  labels: {gardener.cloud/role: default-domain}
  annotations: {dns.gardener.cloud/domain: example.org, dns.gardener.cloud/provider: local, other: x}
stringData: {password: hunter2}
`
)

func landscapeFiles(changes map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range map[string]string{
		"live/landscape.yaml": configText, "base/landscape.yaml": baseText, "live/domain.yaml": domain,
		"live/components/seed/system/kustomization.yaml": "patches: [{path: p.yaml}]\n", "live/components/seed/system/p.yaml": patch,
		"base/components/shoot/etcd-main/kustomization.yaml":       "patches: [{path: p.yaml}]\n",
		"base/components/shoot/etcd-main/p.yaml":                   patch,
		"live/components/garden/vpa/kustomization.yaml":            "patches: []\n",
		"live/components/seed/system/deeper/notes.txt":             "kept\n",
		"live/components/shoot/kube-apiserver/kustomization.yaml":  "resources: [x.yaml]\n",
		"live/components/shoot/kube-apiserver/x.yaml":              patch,
		"live/components/shoot/kube-apiserver/unrelated-file.json": "{}\n",
	} {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, text := range changes {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func loadLandscape(t *testing.T, from fs.FS, dir string) *landscapes.Landscape {
	t.Helper()
	l, violations, err := landscapes.LoadFS(context.Background(), from, dir, landscapes.Options{})
	require.NoError(t, err)
	for _, v := range violations {
		require.NotEqual(t, schemas.SeverityError, v.Severity, v.Message)
	}
	return l
}

func publication(t *testing.T, changes map[string]string) *Publication {
	t.Helper()
	c, err := ContentOf(loadLandscape(t, landscapeFiles(changes), "live"), ObjectSettings{})
	require.NoError(t, err)
	p, err := New(c, "main@1")
	require.NoError(t, err)
	return p
}

// TestContent checks that the content is a landscape with the same settings and overlays for seeds,
// and nothing else.
func TestContent(t *testing.T) {
	p := publication(t, nil)
	assert.Equal(t, []string{
		"base/components/shoot/etcd-main/kustomization.yaml", "base/components/shoot/etcd-main/p.yaml", "base/landscape.yaml",
		"live/components/seed/system/deeper/notes.txt", "live/components/seed/system/kustomization.yaml", "live/components/seed/system/p.yaml",
		"live/components/shoot/kube-apiserver/kustomization.yaml", "live/components/shoot/kube-apiserver/unrelated-file.json", "live/components/shoot/kube-apiserver/x.yaml",
		"live/landscape.yaml", "live/pergola-default-domains.yaml",
	}, slices.Sorted(maps.Keys(p.Files)))
	all := ""
	for _, data := range p.Files {
		all += string(data)
	}
	for _, forbidden := range []string{"hunter2", "git.example.org", "secret-context", "RuntimeComponentsHealthy", "ObservabilityComponentsHealthy", "vpa"} {
		assert.NotContains(t, all, forbidden)
	}

	from, err := filearchive.FS(p.Files)
	require.NoError(t, err)
	l := loadLandscape(t, from, p.Folder)
	assert.Equal(t, []landscapes.Overlay{
		{Owner: "shoot", Component: "etcd-main", Path: "base/components/shoot/etcd-main", Layer: "../base"},
		{Owner: "seed", Component: "system", Path: "live/components/seed/system"},
		{Owner: "shoot", Component: "kube-apiserver", Path: "live/components/shoot/kube-apiserver"},
	}, l.Overlays)
	assert.True(t, l.Config.Spec.ForceConflicts, "settings of layers are merged")
	assert.Len(t, l.Config.Spec.ConditionThresholds, 1)
	assert.Equal(t, "0.3.0", l.Config.Spec.Catalogue.Version)
	require.Len(t, l.Declarations, 1)
	assert.Equal(t, map[string]string{"dns.gardener.cloud/domain": "example.org", "dns.gardener.cloud/provider": "local"}, l.Declarations[0].Object().GetAnnotations())
}

// TestDigestCoversSeedSettings checks that only settings for seeds change the digest.
func TestDigestCoversSeedSettings(t *testing.T) {
	before := publication(t, nil).Digest
	for name, changes := range map[string]map[string]string{
		"nothing":                   nil,
		"a declaration":             {"live/seed.yaml": "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: s}\n"},
		"an overlay of the garden":  {"live/components/garden/vpa/more.txt": "x"},
		"settings of the garden":    {"live/landscape.yaml": strings.Replace(configText, "vpa: {enabled: false}", "vpa: {enabled: true}", 1)},
		"the source":                {"live/landscape.yaml": strings.Replace(configText, "landscape.git", "other.git", 1)},
		"a threshold of the garden": {"live/landscape.yaml": strings.Replace(configText, "duration: 1m", "duration: 9m", 1)},
		"another one":               {"live/landscape.yaml": strings.Replace(configText, "ObservabilityComponentsHealthy, duration: 1m", "ObservabilityComponentsHealthy, duration: 9m", 1)},
		"a password":                {"live/domain.yaml": strings.Replace(domain, "hunter2", "hunter3", 1)},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, before, publication(t, changes).Digest) })
	}
	for name, changes := range map[string]map[string]string{
		"an overlay":            {"live/components/seed/system/p.yaml": patch + "data: {a: b}\n"},
		"an overlay of a layer": {"base/components/shoot/etcd-main/p.yaml": patch + "data: {a: b}\n"},
		"a setting":             {"live/landscape.yaml": strings.Replace(configText, "etcd-druid: {enabled: false}", "etcd-druid: {enabled: true}", 1)},
		"a threshold":           {"live/landscape.yaml": strings.Replace(configText, "duration: 2m", "duration: 9m", 1)},
	} {
		t.Run(name, func(t *testing.T) { assert.NotEqual(t, before, publication(t, changes).Digest) })
	}
}

// TestGardenConditionTypes checks that no component of a Seed or Shoot has a condition whose
// threshold is not published.
func TestGardenConditionTypes(t *testing.T) {
	found := regexp.MustCompile(`\tcondition: +"(\w+)"`)
	count := 0
	for _, kind := range []string{"seed", "shoot"} {
		files, err := fs.Glob(components.FS, kind+"/*/component.cue")
		require.NoError(t, err)
		for _, file := range files {
			text, err := fs.ReadFile(components.FS, file)
			require.NoError(t, err)
			for _, condition := range found.FindAllStringSubmatch(string(text), -1) {
				count++
				assert.NotContains(t, gardenConditionTypes(), gardencorev1beta1.ConditionType(condition[1]), file)
			}
		}
	}
	assert.Positive(t, count)
}

func TestEncryptedOverlaysAreRefused(t *testing.T) {
	sealed := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: x}\nsops:\n  mac: y\n"
	for name, text := range map[string]string{"secret.yaml": sealed, "secret.env": "PASSWORD=ENC[AES256_GCM,data:abc]\n"} {
		_, err := ContentOf(loadLandscape(t, landscapeFiles(map[string]string{"live/components/seed/system/" + name: text}), "live"), ObjectSettings{})
		var encrypted *EncryptedError
		require.ErrorAs(t, err, &encrypted)
		assert.Equal(t, "live/components/seed/system/"+name, encrypted.File)
	}
}

func TestContentLimits(t *testing.T) {
	big := map[string]string{}
	for i := range 9 {
		big["live/components/seed/system/"+string(rune('a'+i))+".txt"] = strings.Repeat("x", 1<<20)
	}
	_, err := ContentOf(loadLandscape(t, landscapeFiles(big), "live"), ObjectSettings{})
	require.ErrorContains(t, err, "can be published")
}

// TestReadPublication checks that a publication can be read back, and that an incomplete one is an
// error.
func TestReadPublication(t *testing.T) {
	p := publication(t, map[string]string{"live/components/seed/system/big.txt": strings.Repeat("0123456789", 100_000)})
	parts := map[string]*unstructured.Unstructured{}
	for _, o := range p.Parts("s") {
		parts[o.GetName()] = o
		assert.Equal(t, "seed-s", o.GetNamespace())
	}
	require.Len(t, parts, 2)
	pointer := p.Pointer("s")
	part := func(name string) *unstructured.Unstructured { return parts[name] }
	got, err := Read(pointer, part)
	require.NoError(t, err)
	assert.Equal(t, p.Content, got.Content)
	assert.Equal(t, "main@1", got.Revision)

	first := p.Parts("s")[0].GetName()
	t.Run("a part is missing", func(t *testing.T) {
		_, err := Read(pointer, func(name string) *unstructured.Unstructured {
			if name == first {
				return nil
			}
			return parts[name]
		})
		var incomplete *IncompleteError
		require.ErrorAs(t, err, &incomplete)
		assert.Equal(t, "Secret seed-s/"+first, incomplete.Part)
	})
	t.Run("a part was exchanged", func(t *testing.T) {
		_, err := Read(pointer, func(name string) *unstructured.Unstructured {
			o := parts[name].DeepCopy()
			require.NoError(t, unstructured.SetNestedField(o.Object, "QUFBQQ==", "data", "data"))
			return o
		})
		require.ErrorAs(t, err, new(*InvalidError))
	})
	for field, value := range map[string]string{"digest": "../../x", "parts": "100000", "since": "yesterday", "catalogue": "9.9.9"} {
		t.Run("the pointer has another "+field, func(t *testing.T) {
			o := pointer.DeepCopy()
			require.NoError(t, unstructured.SetNestedField(o.Object, value, "data", field))
			_, err := Read(o, part)
			require.ErrorAs(t, err, new(*InvalidError))
		})
	}
}
