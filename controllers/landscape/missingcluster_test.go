// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
)

func TestMissingClustersMakeAPlanIncomplete(t *testing.T) {
	for name, c := range map[string]struct {
		clusters []string
		seeds    map[string]landscapev1alpha1.ClusterAccess
		want     []string
	}{
		"misspelt seed": {[]string{Runtime, Virtual}, map[string]landscapev1alpha1.ClusterAccess{"lokal": {}},
			[]string{"seed local: no access to cluster local: ", "(spec.clusters.seeds has lokal, but no Seed has that name)"}},
		"no virtual": {[]string{Runtime, "local"}, map[string]landscapev1alpha1.ClusterAccess{"local": {}},
			[]string{"seed local: no access to cluster virtual: ", "declarations of the virtual cluster: no access to it"}},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
			require.NoError(t, err)
			l.Config.Spec.Clusters = &landscapev1alpha1.Clusters{Seeds: c.seeds}
			configs := map[string]*rest.Config{}
			for _, cluster := range c.clusters {
				configs[cluster] = &rest.Config{Host: "https://127.0.0.1:1"}
			}
			converger, err := New(l, Options{Catalogue: components.FS, Connections: Connections{Configs: configs}, Clock: clocktesting.NewFakeClock(noon)})
			require.NoError(t, err)
			defer converger.Close()
			p, err := converger.Plan(testContext(t))
			require.Error(t, err)
			require.NotEmpty(t, p.Notes)
			note := p.Notes[len(p.Notes)-1]
			assert.Regexp(t, "^incomplete: ", note)
			for _, text := range c.want {
				require.ErrorContains(t, err, text)
				assert.Contains(t, note, text)
			}
		})
	}
}
