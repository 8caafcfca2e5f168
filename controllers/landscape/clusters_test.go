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

func TestAccessThatIsNotThere(t *testing.T) {
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
		"there":              {Access{Default: []string{there}, Given: true}, "a", ""},
		"named, not there":   {Access{Default: []string{missing}, Given: true}, "a", missing + " does not exist"},
		"default, not there": {Access{Default: []string{missing}}, "a", "there is no kubeconfig: set KUBECONFIG"},
		"by name, not there": {Access{ByName: map[string]string{Runtime: missing}}, "a", missing + ": no such file"},
		"other contexts":     {Access{Default: []string{there}, Given: true}, "x", "use one of a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}
			l.Config.Spec.Clusters = &landscapev1alpha1.Clusters{Runtime: &landscapev1alpha1.ClusterAccess{Context: c.context}}
			_, err := c.access.Config(l, Runtime)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// TestFlagsOfACluster checks that the commands in hints use the intended cluster, whatever the
// current context is.
func TestFlagsOfACluster(t *testing.T) {
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
		"of the environment":          {Access{Default: []string{own}}, Runtime, "--context c"},
		"of the command line":         {Access{Default: []string{other, own}, Named: true}, Runtime, "--kubeconfig '" + own + "' --context c"},
		"named for it":                {Access{ByName: map[string]string{Runtime: other}}, Runtime, "--kubeconfig " + other},
		"of the landscape":            {Access{Default: []string{own}, Named: true}, "file", "--kubeconfig /land/k --context 'x y'"},
		"not known":                   {Access{Default: []string{own}}, Virtual, ""},
		"of the cluster it is called": {Access{Default: []string{own}}, "secret", ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.access.Flags(l, c.cluster)) })
	}
}

// TestWhoOverwritesInTheClusterIsToldInGit checks that the hint names Git where an operator applies
// the landscape, because another run gets no lease.
func TestWhoOverwritesInTheClusterIsToldInGit(t *testing.T) {
	w := newWritten(t, "forced", nil)
	w.changes = func(o *Options) { o.Take.ForceHint = func(apply.Ref) string { return "by hand" } }
	c := w.converger()
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	c.noteKeeper(testContext(t))
	assert.Equal(t, "by hand", c.forceHint(ref))
	l, err := AcquireOperatorLease(testContext(t), c.links.clusters[Runtime], "operator-1", w.clock, func(error) {}, nil)
	require.NoError(t, err)
	t.Cleanup(l.Release)
	c.noteKeeper(testContext(t))
	assert.Equal(t, `overwrite it with the annotation `+conventions.ManagedResourceKeys().ForceConflicts+`: "true" in Git, as operator-1 applies the landscape`, c.forceHint(ref))
}
