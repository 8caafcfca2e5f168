// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// placed is a Garden with namespace garden in two zones. Its namespace control, in one zone, has a
// control plane that survives the failure of a node.
const (
	placed = `package component

placements: {
	garden: zones: ["b", "a"]
	control: {zones: ["a"], failureTolerance: "node"}
}
`
	workloads = `package component

#Workload: {
	kind: string
	apiVersion: "apps/v1"
	#type: *"controller" | string
	_name: metadata.name
	metadata: {name: string, namespace: *"garden" | string, labels: {if #type != "" {"high-availability-config.resources.gardener.cloud/type": #type}, ...}}
	spec: {
		replicas?: _
		selector: matchLabels: app: _name
		template: {metadata: labels: app: _name, spec: containers: [{name: "c", image: "i"}]}
	}
}
component: bundles: {
	runtime: {cluster: "runtime", direct: true, source: cue: [
		#Workload & {kind: "Deployment", metadata: name: "unsaid"},
		#Workload & {kind: "Deployment", metadata: name: "plain", #type: "", spec: replicas: 1},
		#Workload & {kind: "Deployment", metadata: {name: "skipped", labels: "high-availability-config.resources.gardener.cloud/skip": "true"}},
		#Workload & {kind: "Deployment", metadata: {name: "elsewhere", namespace: "other"}, spec: replicas: 1},
		#Workload & {kind: "Deployment", metadata: {name: "control", namespace: "control"}, #type: "server", spec: replicas: 3},
		#Workload & {kind: "StatefulSet", metadata: name: "stateful", #type: "server", spec: replicas: 1},
		#Workload & {kind: "Deployment", metadata: name: "scaled", #type: "server", spec: replicas: 3},
	]}
	scaler: {cluster: "runtime", direct: true, source: cue: [{
		apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler"
		metadata: {name: "scaled", labels: "high-availability-config.resources.gardener.cloud/type": "server"}
		spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: "apps/v1", kind: "Deployment", name: "scaled"}}
	}]}
	delivered: {cluster: "runtime", class: "seed", injectLabels: more: "x", source: cue: [#Workload & {kind: "Deployment", metadata: name: "delivered"}]}
	virtual: {cluster: "virtual", direct: true, source: cue: [#Workload & {kind: "Deployment", metadata: name: "virtual", spec: replicas: 1}]}
}
`
)

func TestMakeAvailable(t *testing.T) {
	catalogue := smallCatalogue(t, map[string]string{"garden/settings.cue": placed, "garden/app/component.cue": workloads})
	res, err := Render(gardenInput(), Options{Catalogue: catalogue})
	require.NoError(t, err)
	const host, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
	for _, c := range []struct {
		kind, name string
		replicas   any
		// constraints are the keys, each with whenUnsatisfiable and the minimum of domains.
		constraints []any
		tolerations int
		pinned      bool
	}{
		{"Deployment", "unsaid", int64(2), []any{host, "ScheduleAnyway", nil, zone, "DoNotSchedule", int64(2)}, 2, false},
		{"Deployment", "plain", int64(1), nil, 2, false},
		{"Deployment", "skipped", nil, nil, 0, false},
		{"Deployment", "elsewhere", int64(1), nil, 0, false},
		{"Deployment", "control", int64(2), []any{host, "DoNotSchedule", int64(2)}, 2, true},
		{"StatefulSet", "stateful", int64(2), []any{host, "ScheduleAnyway", nil, zone, "DoNotSchedule", int64(2)}, 2, false},
		{"Deployment", "scaled", int64(3), []any{host, "ScheduleAnyway", nil, zone, "DoNotSchedule", int64(2)}, 2, false},
		{"Deployment", "virtual", int64(1), nil, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := objectOf(t, res.Bundles, c.kind, c.name).Object["spec"].(map[string]any)
			assert.Equal(t, c.replicas, spec["replicas"])
			pods := spec["template"].(map[string]any)["spec"].(map[string]any)
			var constraints []any
			for _, item := range listIn(pods["topologySpreadConstraints"]) {
				constraint := item.(map[string]any)
				constraints = append(constraints, constraint["topologyKey"], constraint["whenUnsatisfiable"], constraint["minDomains"])
				_, byRevision := constraint["matchLabelKeys"]
				assert.Equal(t, c.kind == "Deployment", byRevision, "StatefulSets count pods of all revisions")
			}
			assert.Equal(t, c.constraints, constraints)
			tolerations := listIn(pods["tolerations"])
			assert.Len(t, tolerations, c.tolerations)
			for _, item := range tolerations {
				assert.Equal(t, int64(60), item.(map[string]any)["tolerationSeconds"])
			}
			_, pinned := pods["affinity"]
			assert.Equal(t, c.pinned, pinned)
			assert.Equal(t, []any{map[string]any{"name": "c", "image": "i"}}, pods["containers"], "nothing else is changed")
		})
	}
	delivered := objectOf(t, res.Bundles, "Deployment", "delivered").Object["spec"].(map[string]any)["template"].(map[string]any)
	assert.Equal(t, map[string]any{"app": "delivered"}, delivered["metadata"].(map[string]any)["labels"])
	for _, item := range listIn(delivered["spec"].(map[string]any)["topologySpreadConstraints"]) {
		assert.Equal(t, map[string]any{"app": "delivered", "more": "x", "resources.gardener.cloud/managed-by": "gardener"},
			item.(map[string]any)["labelSelector"].(map[string]any)["matchLabels"], "as the resource manager labels pods")
	}
	scaler := objectOf(t, res.Bundles, "HorizontalPodAutoscaler", "scaled").Object["spec"].(map[string]any)
	assert.Equal(t, []any{int64(2), int64(2)}, []any{scaler["minReplicas"], scaler["maxReplicas"]})
}

func listIn(v any) []any {
	list, _ := v.([]any)
	return list
}

// TestOverlayGoesBeforeAvailability: a number of replicas in an overlay takes precedence, and is
// annotated for the webhook.
func TestOverlayGoesBeforeAvailability(t *testing.T) {
	patch := `patches:
- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: unsaid, namespace: garden}, spec: {replicas: 5}}'
- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: scaled, namespace: garden}, spec: {replicas: 1}}'
- target: {kind: HorizontalPodAutoscaler}
  patch: '[{op: add, path: /spec/minReplicas, value: 4}, {op: add, path: /spec/maxReplicas, value: 4}]'
`
	res, err := Render(gardenInput(), Options{
		Catalogue: smallCatalogue(t, map[string]string{"garden/settings.cue": placed, "garden/app/component.cue": workloads}),
		Overlays: []Overlay{{Component: "garden/app", Dir: "app", Name: "components/garden/app",
			FS: fstest.MapFS{"app/kustomization.yaml": {Data: []byte(patch)}}}},
	})
	require.NoError(t, err)
	unsaid := objectOf(t, res.Bundles, "Deployment", "unsaid")
	assert.Equal(t, map[string]string{"high-availability-config.resources.gardener.cloud/replicas": "5"}, unsaid.GetAnnotations())
	assert.Empty(t, objectOf(t, res.Bundles, "StatefulSet", "stateful").GetAnnotations(), "as it was declared")
	scaled, scaler := objectOf(t, res.Bundles, "Deployment", "scaled"), objectOf(t, res.Bundles, "HorizontalPodAutoscaler", "scaled")
	assert.Equal(t, []any{int64(1), "1"}, []any{scaled.Object["spec"].(map[string]any)["replicas"], scaled.GetAnnotations()["high-availability-config.resources.gardener.cloud/replicas"]})
	assert.Equal(t, []any{int64(4), "4"}, []any{scaler.Object["spec"].(map[string]any)["minReplicas"], scaler.GetAnnotations()["high-availability-config.resources.gardener.cloud/replicas"]})
	spec := unsaid.Object["spec"].(map[string]any)
	assert.Equal(t, int64(5), spec["replicas"])
	assert.Len(t, spec["template"].(map[string]any)["spec"].(map[string]any)["topologySpreadConstraints"], 2)
}

func TestAvailabilityErrors(t *testing.T) {
	wrong := `package component

component: bundles: b: {cluster: "runtime", direct: true, source: cue: [{
	apiVersion: "apps/v1", kind: "Deployment"
	metadata: {name: "d", namespace: "garden", labels: "high-availability-config.resources.gardener.cloud/type": "server", annotations: "high-availability-config.resources.gardener.cloud/replicas": "many"}
}]}
`
	_, err := Render(gardenInput(), Options{Catalogue: smallCatalogue(t, map[string]string{"garden/settings.cue": placed, "garden/app/component.cue": wrong})})
	require.ErrorContains(t, err, `bundle b: Deployment d at components/garden/app/component.cue:4: annotation high-availability-config.resources.gardener.cloud/replicas is "many": want a number of replicas`)
}

// TestAvailabilityOfCharts: charts of Extensions are treated like others, but faults in them are
// ignored.
func TestAvailabilityOfCharts(t *testing.T) {
	const ref = "registry.example.org/charts/watcher:v1"
	chart := `package component

component: bundles: b: {cluster: "runtime", class: "seed", source: helm: {release: "watcher", namespace: "garden", oci: ref: "` + ref + `"}}
`
	for annotation, want := range map[string]any{"3": int64(3), "many": int64(1)} {
		in := gardenInput()
		in.Charts = map[string]Chart{ref: testChart(t, `apiVersion: apps/v1
kind: Deployment
metadata:
  name: watcher
  labels: {high-availability-config.resources.gardener.cloud/type: server}
  annotations: {high-availability-config.resources.gardener.cloud/replicas: "`+annotation+`"}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
`)}
		res, err := Render(in, Options{Catalogue: smallCatalogue(t, map[string]string{"garden/settings.cue": placed, "garden/app/component.cue": chart})})
		require.NoError(t, err)
		assert.Equal(t, want, objectOf(t, res.Bundles, "Deployment", "watcher").Object["spec"].(map[string]any)["replicas"], annotation)
	}
}

// TestTolerationsAreThoseOfTheWebhook: rendered tolerations equal those of the webhook of
// gardener-resource-manager with the catalogue's configuration. With other seconds, the webhook
// would change applied objects at once.
func TestTolerationsAreThoseOfTheWebhook(t *testing.T) {
	configurations, err := fs.Glob(components.FS, "*/gardener-resource-manager/cases/*/gardener-resource-manager.yaml")
	require.NoError(t, err)
	owners := map[string]bool{}
	for _, file := range configurations {
		text, err := fs.ReadFile(components.FS, file)
		require.NoError(t, err)
		for field, want := range map[string]*int64{"defaultNotReadyTolerationSeconds": nodeTolerationSeconds.NotReady, "defaultUnreachableTolerationSeconds": nodeTolerationSeconds.Unreachable} {
			assert.Contains(t, string(text), fmt.Sprintf(" %s: %d\n", field, *want), file)
		}
		owner, _, _ := strings.Cut(file, "/")
		owners[owner] = true
	}
	assert.Equal(t, map[string]bool{"garden": true, "seed": true}, owners)
}
