// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOverlayAddsExistingObject: validate finds it like render, although it does not test
// components without an overlay.
func TestOverlayAddsExistingObject(t *testing.T) {
	added := func(text string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [more.yaml]\n", "more.yaml": text}
	}
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"of another component":       {added("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: other\n  namespace: garden\n"), "components/garden/app/more.yaml:4:3: error: ServiceAccount garden/other: metadata.name: is rendered twice for the cluster (components/garden/app/more.yaml:1 overlaid by components/garden/app and components/garden/other/component.cue:5)"},
		"the namespace filled in":    {added("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other}\n"), "components/garden/app/more.yaml:3:12: error: ServiceAccount other: metadata.name: is rendered twice for the cluster"},
		"without a namespace":        {added("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: other}\nvalue: 1\n"), "PriorityClass other: metadata.name: is rendered twice"},
		"of another version":         {added("apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: other, namespace: garden}\nspec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: app}}\n"), "HorizontalPodAutoscaler garden/other: metadata.name: is rendered twice"},
		"renamed":                    {map[string]string{"kustomization.yaml": "patches:\n- target: {kind: ServiceAccount}\n  options: {allowNameChange: true}\n  patch: |\n    - {op: replace, path: /metadata/name, value: other}\n"}, "components/garden/app/kustomization.yaml:5:50: error: ServiceAccount garden/other: metadata.name: is rendered twice"},
		"declared in Git":            {with(added("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: third, namespace: garden}\n"), "../../../c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: third, namespace: garden, annotations: {landscape.pergola.dev/cluster: runtime}}\n"), "ConfigMap garden/third: metadata.name: is rendered twice for the cluster (components/garden/app/more.yaml:1 overlaid by components/garden/app and c.yaml:1)"},
		"declared for another one":   {with(added("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: third, namespace: garden}\n"), "../../../c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: third, namespace: garden, annotations: {landscape.pergola.dev/cluster: virtual}}\n"), ""},
		"another namespace":          {added("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other, namespace: default}\n"), ""},
		"another kind":               {added("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: garden}\n"), ""},
		"another cluster":            {added("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: virtual, namespace: garden}\n"), ""},
		"a component's, patched":     {map[string]string{"kustomization.yaml": "commonAnnotations: {a: b}\n"}, ""},
		"another name":               {added("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: third, namespace: garden}\n"), ""},
		"two overlays of one object": {with(added("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: third, namespace: garden}\n"), "../other/kustomization.yaml", "resources: [more.yaml]\n", "../other/more.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: third, namespace: garden, annotations: {render.pergola.dev/bundle: other}}\n"), "ServiceAccount garden/third: metadata.name: is rendered twice"},
	} {
		t.Run(name, func(t *testing.T) {
			const others = `package component

component: bundles: {
	other: {cluster: "runtime", direct: true, source: cue: [
		{apiVersion: "v1", kind: "ServiceAccount", metadata: {name: "other", namespace: "garden"}},
		{apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: name: "other", value: 1},
		{apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: {name: "other", namespace: "garden"}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: "apps/v1", kind: "Deployment", name: "app"}}},
	]}
	virtual: {cluster: "virtual", direct: true, source: cue: [{apiVersion: "v1", kind: "ServiceAccount", metadata: {name: "virtual", namespace: "garden"}}]}
}
`
			catalogue := smallCatalogue(t, map[string]string{
				"garden/app/component.cue": component(`cue: [{apiVersion: "v1", kind: "ServiceAccount", metadata: {name: "app", namespace: "garden"}}, {apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "app", namespace: "garden"}, spec: {selector: matchLabels: app: "app", template: {metadata: labels: app: "app", spec: containers: [{name: "a", image: "i:1"}]}}}]`, ""),
				"garden/flow.cue":          strings.ReplaceAll(appFlow, `["app"]`, `["app", "other", "virtual"]`), "garden/other/component.cue": others,
			})
			found := CheckLandscape(catalogue, overlayLandscape(t, tt.files))
			if tt.want == "" {
				assert.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			assert.Contains(t, found[0].String(), tt.want)
		})
	}
}
