package landscape

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
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
