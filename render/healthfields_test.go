// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHealthFields(t *testing.T) {
	for name, tt := range map[string]struct{ rule, want string }{
		"fields of Kubernetes":  {`{apiGroup: apps, kind: Deployment, healthy: "self.status.readyReplicas == self.spec.replicas && self.metadata.labels.app == 'x'"}`, ""},
		"a letter less":         {`{apiGroup: apps, kind: Deployment, healthy: "self.status.readyReplica == self.spec.replicas"}`, `rules[0].healthy: objects of kind Deployment have no field self.status.readyReplica; did you mean "readyReplicas"?`},
		"in a macro":            {`{apiGroup: apps, kind: Deployment, healthy: "has(self.statuss.readyReplicas)"}`, `have no field self.statuss; did you mean "status"?`},
		"below items":           {`{kind: Pod, healthy: "self.status.conditions.exists(c, c.type == 'x') && self.spec.container.size() > 0"}`, `objects of kind Pod have no field self.spec.container; did you mean "containers"?`},
		"optional":              {`{apiGroup: core.gardener.cloud, kind: Seed, healthy: "self.?status.?conditions.hasValue()", progressing: "self.spec.dns.provider.typ == 'x'"}`, `rules[0].progressing: objects of kind Seed have no field self.spec.dns.provider.typ; did you mean "type"?`},
		"a number as text":      {`{apiGroup: apps, kind: Deployment, healthy: "self.spec.replicas == '3'"}`, `rules[0].healthy: objects of kind Deployment have a self.spec.replicas that is never "3": it is of type integer`},
		"text as a number":      {`{kind: Pod, healthy: "1 != self.status.phase"}`, `have a self.status.phase that is never 1: it is of type string`},
		"in a list":             {`{kind: Pod, healthy: "self.spec.hostNetwork in ['yes']"}`, `have a self.spec.hostNetwork that is never "yes": it is of type boolean`},
		"one of a few values":   {`{apiGroup: landscape.pergola.dev, kind: Landscape, healthy: "self.spec.gardenAPI == 'crds'"}`, `that is never "crds": it is one of aggregated, crd`},
		"values of a type":      {`{apiGroup: apps, kind: Deployment, healthy: "self.spec.replicas > 2 && self.spec.paused != true && self.spec.strategy.rollingUpdate.maxSurge == '1'"}`, ""},
		"of an item":            {`{kind: Pod, healthy: "self.status.conditions.exists(c, c.typ == 'Ready')"}`, `objects of kind Pod have no field self.status.conditions[].typ; did you mean "type"?`},
		"status of a condition": {`{kind: Pod, healthy: "self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'true')"}`, `self.status.conditions[].status that is never "true": it is one of True, False, Unknown`},
		"a number as a verdict": {`{apiGroup: apps, kind: Deployment, healthy: "self.status.readyReplicas"}`, `have a self.status.readyReplicas of type integer, but the expression must be true or false`},
		"a field of two macros": {`{kind: Pod, healthy: "self.spec.containers.all(c, c.ports.exists(p, p.containerPort > 1)) && self.status.conditions.exists(c, c.status == 'True')"}`, ""},
		"a kind nobody defines": {`{apiGroup: example.org, kind: Thing, healthy: "self.any.field == 1"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := loadLandscape(t, map[string]string{"landscape.yaml": landscapeFile("\n  health: {rules: [" + tt.rule + "]}"), "g.yaml": gardenYAML})
			got := []string{}
			for _, v := range CheckLandscape(smallCatalogue(t, nil), l) {
				got = append(got, v.String())
			}
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Contains(t, got[0], tt.want)
		})
	}
}
