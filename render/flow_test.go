// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
)

// flowOf loads a flow.cue with the given nodes of the operation reconcile.
func flowOf(t *testing.T, nodes string, replicas int) (Flow, error) {
	return operationOf(t, "reconcile", nodes, replicas)
}

func operationOf(t *testing.T, operation, nodes string, replicas int) (Flow, error) {
	in := gardenInput()
	in.Objects["garden"] = map[string]any{"spec": map[string]any{"replicas": replicas}}
	return LoadFlow(smallCatalogue(t, map[string]string{"garden/flow.cue": "package flow\n\ngarden: _\nflow: " + operation + ": nodes: {\n" + nodes + "\n}\n"}), operation, in)
}

func TestFlow(t *testing.T) {
	const nodes = `	b: {request: ["two"], after: a: "healthy", timeout: "90s", if: garden.spec.replicas > 1}
	a: {apply: ["one"]}
	t: {task: "init", after: {a: "applied", b: "rolledOut"}}
	ready: {await: "unused", after: point: "healthy"}
	point: after: t: "healthy"`
	flow, err := flowOf(t, nodes, 2)
	require.NoError(t, err)
	assert.Equal(t, Flow{Owner: "garden", Operation: "reconcile", Covers: true, Nodes: []FlowNode{
		{ID: "a", Verb: VerbApply, Bundles: []string{"one"}, Timeout: 5 * time.Minute, If: true},
		{ID: "b", Verb: VerbRequest, Bundles: []string{"two"}, Operation: "reconcile", After: map[string]string{"a": "healthy"}, Timeout: 90 * time.Second, If: true},
		{ID: "point", After: map[string]string{"t": "healthy"}, Timeout: 5 * time.Minute, If: true},
		{ID: "ready", Verb: VerbAwait, Name: "unused", After: map[string]string{"point": "healthy"}, Timeout: 5 * time.Minute, If: true},
		{ID: "t", Verb: VerbTask, Name: "init", After: map[string]string{"a": "applied", "b": "rolledOut"}, Timeout: 5 * time.Minute, If: true},
	}}, normaliseFlow(flow))
	removing, err := operationOf(t, "delete", `	gone: {remove: ["old"], keepObjects: true}
	others: remove: ["*"]`, 2)
	require.NoError(t, err)
	assert.Equal(t, Flow{Owner: "garden", Operation: "delete", Covers: true, Nodes: []FlowNode{
		{ID: "gone", Verb: VerbRemove, Bundles: []string{"old"}, KeepObjects: true, Timeout: 5 * time.Minute, If: true},
		{ID: "others", Verb: VerbRemove, Bundles: []string{OtherBundles}, Timeout: 5 * time.Minute, If: true},
	}}, normaliseFlow(removing))
	var work []string
	for _, n := range append(flow.Nodes, removing.Nodes...) {
		work = append(work, n.Description())
	}
	assert.Equal(t, []string{"apply one", "request two for reconcile", "", "await unused", "task init", "remove old and keep the objects", "remove *"}, work)
	flow, err = flowOf(t, nodes, 1)
	require.NoError(t, err)
	assert.False(t, flow.Nodes[1].If)
}

// normaliseFlow makes empty maps comparable.
func normaliseFlow(f Flow) Flow {
	for i := range f.Nodes {
		if len(f.Nodes[i].After) == 0 {
			f.Nodes[i].After = nil
		}
	}
	return f
}

// TestFlowCoverage: an operation mentions every bundle unless it opts out, and requests the bundles
// whose controllers ignore an apply.
func TestFlowCoverage(t *testing.T) {
	flow, err := flowOf(t, `	a: apply: ["one", "two"]`, 1)
	require.NoError(t, err)
	require.NoError(t, flow.CheckCoverage([]Bundle{{Name: "one"}, {Name: "two"}}))
	some := []Bundle{{Name: "one"}, {Name: "three"}, {Name: "four"}, {Name: "three"}}
	require.EqualError(t, flow.CheckCoverage(some), "components/garden/flow.cue: no node of reconcile mentions the bundles three, four")
	flow, err = flowOf(t, "	a: apply: [\"one\", \"two\"]\n}\nflow: reconcile: {cover: false", 1)
	require.NoError(t, err)
	require.NoError(t, flow.CheckCoverage(some))

	objects := func(apiVersion, kind string) []Bundle {
		obj := Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}}
		return []Bundle{{Name: "two", Delivery: Delivery{Direct: true}, Objects: []Object{{Unstructured: &unstructured.Unstructured{}}, obj}}}
	}
	for _, asked := range [][]Bundle{objects("extensions.gardener.cloud/v1alpha1", "DNSRecord"), objects("druid.gardener.cloud/v1alpha1", "Etcd")} {
		require.EqualError(t, flow.CheckCoverage(asked), "components/garden/flow.cue: reconcile: node a applies bundle two, whose "+asked[0].Objects[1].GetKind()+" acts only on request; use the verb request")
		asked[0].Delivery.Direct = false
		require.NoError(t, flow.CheckCoverage(asked), "others apply the objects of a ManagedResource")
	}
	require.NoError(t, flow.CheckCoverage(objects("extensions.gardener.cloud/v1alpha1", "Cluster")))
	added := objects("extensions.gardener.cloud/v1alpha1", "DNSRecord")
	added[0].Objects[1].Origin.Overlay = "components/garden/two"
	require.NoError(t, flow.CheckCoverage(added), "an overlay cannot change the flow")
	flow, err = flowOf(t, `	a: {request: ["one", "two"], operation: "restore"}`, 1)
	require.NoError(t, err)
	assert.Equal(t, "restore", flow.Nodes[0].Operation)
	require.NoError(t, flow.CheckCoverage(objects("extensions.gardener.cloud/v1alpha1", "DNSRecord")))
	carried := objects("extensions.gardener.cloud/v1alpha1", "DNSRecord")
	carried[0].Delivery.Direct = false
	require.EqualError(t, flow.CheckCoverage(carried), "components/garden/flow.cue: reconcile: node a requests restore of bundle two, which is in a ManagedResource: request only reconcile, or apply the bundle directly")
}

func TestFlowErrors(t *testing.T) {
	for name, test := range map[string][2]string{
		"unknown node":    {`a: after: nope: "healthy"`, `components/garden/flow.cue: reconcile: node a comes after "nope", which is not a node`},
		"bundle twice":    {`a: apply: ["x"], b: apply: ["x"]`, "components/garden/flow.cue: reconcile: bundle x belongs to node a and to b"},
		"a circle":        {`a: after: c: "healthy", b: after: a: "applied", c: after: a: "rolledOut", d: {}`, "components/garden/flow.cue: reconcile: nodes wait for each other in a cycle: a → c → a"},
		"it removes":      {`a: remove: ["x"]`, "components/garden/flow.cue: reconcile: node a: only the operation delete may remove bundles; use the verb apply or request"},
		"all others":      {`a: apply: ["*"]`, `components/garden/flow.cue: reconcile: node a: "*" is for the verb remove; name the bundles`},
		"less than none":  {`a: timeout: "-1s"`, "components/garden/flow.cue: reconcile: node a: timeout: -1s is negative; 0s means no timeout"},
		"open condition":  {`a: {}, b: after: {if garden.spec.replica > 1 {a: "healthy"}}`, "components/garden/flow.cue: reconcile: node b: evaluate: "},
		"unknown state":   {"a: {}\n\tb: after: a: \"done\"", `components/garden/flow.cue:6:15: flow.reconcile.nodes.b.after.a: conflicting values "applied" and "done"`},
		"timeout":         {`a: timeout: "soon"`, "components/garden/flow.cue: reconcile: node a: timeout: "},
		"syntax":          {"a: {", "components/garden/flow.cue:6:3: expected"},
		"unknown field":   {`a: bundels: []`, "components/garden/flow.cue:5:5: flow.reconcile.nodes.a.bundels: field not allowed"},
		"no list":         {`a: apply: "x"`, "components/garden/flow.cue:5:12: flow.reconcile.nodes.a.apply: conflicting values"},
		"two verbs":       {"a: apply: [\"x\"]\n\ta: task: \"y\"", "components/garden/flow.cue: reconcile: node a: components/garden/flow.cue:6:11: it has the verbs apply and task; make a node for each"},
		"kept by apply":   {`a: {apply: ["x"], keepObjects: true}`, "components/garden/flow.cue:5:20: flow.reconcile.nodes.a.keepObjects: field not allowed"},
		"asked of a task": {`a: {task: "x", operation: "reconcile"}`, "components/garden/flow.cue:5:17: flow.reconcile.nodes.a.operation: field not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := flowOf(t, "\t"+test[0], 1)
			require.ErrorContains(t, err, test[1])
		})
	}
	for nodes, want := range map[string]string{
		`a: remove: ["*"], b: remove: ["*"]`: "bundle * belongs to node a and to b",
		`a: apply: ["x"]`:                    "node a: a deletion may not apply bundles; use the verb remove",
		`a: request: ["x"]`:                  "node a: a deletion may not request bundles; use the verb remove",
	} {
		_, err := operationOf(t, "delete", "\t"+nodes, 1)
		require.EqualError(t, err, "components/garden/flow.cue: delete: "+want)
	}
	_, err := LoadFlow(components.FS, "explode", gardenInput())
	require.EqualError(t, err, `components/garden/flow.cue: there is no operation "explode"; want one of reconcile, delete`)
	catalogue := smallCatalogue(t, map[string]string{"garden/flow.cue": appFlow})
	// A file of a previous version has its own #Node.
	catalogue["garden/flow.cue"] = &fstest.MapFile{Data: []byte("package flow\n\n#Node: {bundles: [...string], ...}\nflow: reconcile: nodes: {\n\ta: bundles: [\"x\"]\n}\n")}
	_, err = LoadFlow(catalogue, "reconcile", gardenInput())
	require.ErrorContains(t, err, `components/garden/flow.cue: reconcile: node a: components/garden/flow.cue:3:18: there is no field "bundles"; want one of after, apply, await, if, keepObjects, operation, remove, request, task, timeout`)
	delete(catalogue, "flow.cue")
	_, err = LoadFlow(catalogue, "reconcile", gardenInput())
	require.EqualError(t, err, "components/garden/flow.cue: the catalogue has no components/flow.cue, which defines the verbs: copy it from the built-in catalogue")
}

// TestFlowOfFeatureGates: each gate of a landscape switches only its own steps of the Garden. Steps
// do not wait for a skipped one.
func TestFlowOfFeatureGates(t *testing.T) {
	on, off := ptr.To(true), ptr.To(false)
	steps := func(gates *landscapev1alpha1.FeatureGates) map[string]bool {
		in := renderedVariants["local"](t).inputs[0]
		require.Equal(t, "garden", in.Owner.Kind)
		in.FeatureGates = gates
		flow, err := LoadFlow(components.FS, "reconcile", in)
		require.NoError(t, err)
		out := map[string]bool{}
		for _, node := range flow.Nodes {
			out[node.ID] = node.If
			if node.ID == "dns-records" || node.ID == "runtime-ready" {
				assert.Equal(t, "applied", node.After["nginx-ingress"], node.ID)
			}
			if node.ID == "etcd-main" {
				assert.Equal(t, "healthy", node.After["backup-bucket"], "also without the entry, which waits for it otherwise")
			}
		}
		return out
	}
	byDefault := steps(nil)
	for name, test := range map[string]struct {
		gates landscapev1alpha1.FeatureGates
		want  map[string]bool
	}{
		"IstioTLSTermination":         {landscapev1alpha1.FeatureGates{IstioTLSTermination: off}, map[string]bool{}},
		"VictoriaLogsBackend":         {landscapev1alpha1.FeatureGates{VictoriaLogsBackend: on}, map[string]bool{"victoria-logs": true}},
		"RemoveVali":                  {landscapev1alpha1.FeatureGates{RemoveVali: on}, map[string]bool{}},
		"RemoveVali for VictoriaLogs": {landscapev1alpha1.FeatureGates{RemoveVali: on, VictoriaLogsBackend: on}, map[string]bool{"vali": false, "victoria-logs": true}},
		"DisableNginxIngressInGarden": {landscapev1alpha1.FeatureGates{DisableNginxIngressInGarden: off}, map[string]bool{"nginx-ingress": true}},
		"BackupEntryForGarden":        {landscapev1alpha1.FeatureGates{BackupEntryForGarden: off}, map[string]bool{"backup-entry": false}},
		"DefaultSeccompProfile":       {landscapev1alpha1.FeatureGates{DefaultSeccompProfile: on}, map[string]bool{}},
		"OpenTelemetryCollector": {landscapev1alpha1.FeatureGates{OpenTelemetryCollector: off},
			map[string]bool{"opentelemetry-operator": false, "opentelemetry-collector": false}},
	} {
		t.Run(name, func(t *testing.T) {
			changed := map[string]bool{}
			for step, is := range steps(&test.gates) {
				if is != byDefault[step] {
					changed[step] = is
				}
			}
			assert.Equal(t, test.want, changed)
		})
	}
}
