// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/landscapes"
)

func TestMissingAccess(t *testing.T) {
	dir := t.TempDir()
	there, missing := filepath.Join(dir, "config"), filepath.Join(dir, "nope")
	require.NoError(t, os.WriteFile(there, []byte(`{apiVersion: v1, kind: Config,
  clusters: [{name: c, cluster: {server: "https://localhost:1"}}],
  contexts: [{name: b, context: {cluster: c}}, {name: a, context: {cluster: c}}]}`), 0o600))
	for name, c := range map[string]struct {
		access  Access
		context string
		want    string
	}{
		"there":              {Access{DefaultKubeconfigs: []string{there}, ChosenByPerson: true}, "a", ""},
		"named, not there":   {Access{DefaultKubeconfigs: []string{missing}, ChosenByPerson: true}, "a", missing + " does not exist"},
		"default, not there": {Access{DefaultKubeconfigs: []string{missing}}, "a", "there is no kubeconfig: set KUBECONFIG"},
		"by name, not there": {Access{KubeconfigByCluster: map[string]string{Runtime: missing}}, "a", missing + ": no such file"},
		"other contexts":     {Access{DefaultKubeconfigs: []string{there}, ChosenByPerson: true}, "x", "use one of a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}
			l.Config.Spec.Clusters = &landscapev1alpha1.Clusters{Runtime: &landscapev1alpha1.ClusterAccess{Context: c.context}}
			_, err := c.access.RESTConfig(l, Runtime)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// TestKubectlFlags checks that the commands in hints use the intended cluster, whatever the
// current context is.
func TestKubectlFlags(t *testing.T) {
	dir := t.TempDir()
	other, own := filepath.Join(dir, "other"), filepath.Join(dir, "own file")
	require.NoError(t, os.WriteFile(other, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	require.NoError(t, os.WriteFile(own, []byte("apiVersion: v1\nkind: Config\ncontexts: [{name: c, context: {}}]\n"), 0o600))
	l := &landscapes.Landscape{Dir: "/land", Config: &landscapev1alpha1.Landscape{}}
	l.Config.Spec.Clusters = &landscapev1alpha1.Clusters{
		Runtime: &landscapev1alpha1.ClusterAccess{Context: "c"},
		Seeds:   map[string]landscapev1alpha1.ClusterAccess{"file": {Kubeconfig: "k", Context: "x y"}, "secret": {}},
	}
	for name, c := range map[string]struct {
		access  Access
		cluster string
		want    string
	}{
		"of the environment":          {Access{DefaultKubeconfigs: []string{own}}, Runtime, "--context c"},
		"of the command line":         {Access{DefaultKubeconfigs: []string{other, own}, FromCommandLine: true}, Runtime, "--kubeconfig '" + own + "' --context c"},
		"named for it":                {Access{KubeconfigByCluster: map[string]string{Runtime: other}}, Runtime, "--kubeconfig " + other},
		"of the landscape":            {Access{DefaultKubeconfigs: []string{own}, FromCommandLine: true}, "file", "--kubeconfig /land/k --context 'x y'"},
		"not known":                   {Access{DefaultKubeconfigs: []string{own}}, Virtual, ""},
		"of the cluster it is called": {Access{DefaultKubeconfigs: []string{own}}, "secret", ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.access.KubectlFlags(l, c.cluster)) })
	}
}

// TestForceHintNamesGit checks that the hint names Git where an operator applies
// the landscape, because another run gets no lease.
func TestForceHintNamesGit(t *testing.T) {
	w := newFolderLandscape(t, "forced", nil)
	w.changeOptions = func(o *Options) { o.Takeover.ForceHint = func(apply.Ref) string { return "by hand" } }
	c := w.newConverger()
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	c.recordOtherHolder(testContext(t))
	assert.Equal(t, "by hand", c.forceHint(ref))
	l, err := AcquireOperatorLease(testContext(t), c.connections.clusters[Runtime], "operator-1", w.clock, func(error) {}, nil)
	require.NoError(t, err)
	t.Cleanup(l.Release)
	c.recordOtherHolder(testContext(t))
	assert.Equal(t, `overwrite it with the annotation `+conventions.ManagedResourceKeys().ForceConflicts+`: "true" in Git, as operator-1 applies the landscape`, c.forceHint(ref))
}
