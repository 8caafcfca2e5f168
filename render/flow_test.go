package render

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
)

// flowOf loads a flow.cue with the given nodes and the definitions of the real one.
func flowOf(nodes string, replicas int) (Flow, error) {
	text := `package flow

garden: _
#Node: {
	bundles: [...string] | *[]
	task: string | *""
	after: [string]: "applied" | "healthy" | "rolledOut"
	timeout: string | *"5m"
	if:      bool | *true
}
flow: reconcile: nodes: [string]: #Node
flow: reconcile: nodes: {
` + nodes + `
}
`
	module, _ := components.FS.ReadFile("cue.mod/module.cue")
	in := gardenInput()
	in.Objects["garden"] = map[string]any{"spec": map[string]any{"replicas": replicas}}
	return LoadFlow(fstest.MapFS{"cue.mod/module.cue": {Data: module}, "garden/flow.cue": {Data: []byte(text)}}, "reconcile", in)
}

func TestFlow(t *testing.T) {
	const nodes = `	b: {bundles: ["two"], after: a: "healthy", timeout: "90s", if: garden.spec.replicas > 1}
	a: {bundles: ["one"]}
	t: {task: "init", after: {a: "applied", b: "rolledOut"}}`
	flow, err := flowOf(nodes, 2)
	require.NoError(t, err)
	assert.Equal(t, Flow{Owner: "garden", Operation: "reconcile", Nodes: []FlowNode{
		{ID: "a", Bundles: []string{"one"}, Timeout: 5 * time.Minute, If: true},
		{ID: "b", Bundles: []string{"two"}, After: map[string]string{"a": "healthy"}, Timeout: 90 * time.Second, If: true},
		{ID: "t", Bundles: []string{}, Task: "init", After: map[string]string{"a": "applied", "b": "rolledOut"}, Timeout: 5 * time.Minute, If: true},
	}}, normalised(flow))
	flow, err = flowOf(nodes, 1)
	require.NoError(t, err)
	assert.False(t, flow.Nodes[1].If)

	require.NoError(t, flow.Cover([]Bundle{{Name: "one"}, {Name: "two"}}))
	require.EqualError(t, flow.Cover([]Bundle{{Name: "one"}, {Name: "three"}, {Name: "four"}}),
		"components/garden/flow.cue: no node of reconcile mentions the bundles three, four")
}

// normalised makes empty lists and maps comparable.
func normalised(f Flow) Flow {
	for i := range f.Nodes {
		if len(f.Nodes[i].After) == 0 {
			f.Nodes[i].After = nil
		}
		if f.Nodes[i].Task != "" && f.Nodes[i].Bundles == nil {
			f.Nodes[i].Bundles = []string{}
		}
	}
	return f
}

func TestFlowErrors(t *testing.T) {
	for name, test := range map[string][2]string{
		"unknown node":  {`a: after: nope: "healthy"`, `components/garden/flow.cue: reconcile: node a comes after "nope", which is no node`},
		"bundle twice":  {`a: bundles: ["x"], b: bundles: ["x"]`, "components/garden/flow.cue: reconcile: bundle x belongs to node a and to b"},
		"unknown state": {"a: {}\n\tb: after: a: \"done\"", `components/garden/flow.cue:14:15: flow.reconcile.nodes.b.after.a: conflicting values "applied" and "done"`},
		"timeout":       {`a: timeout: "soon"`, "components/garden/flow.cue: reconcile: node a: timeout: "},
		"syntax":        {"a: {", "components/garden/flow.cue:14:3: expected"},
		"unknown field": {`a: bundels: []`, "components/garden/flow.cue:13:5: flow.reconcile.nodes.a.bundels: field not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := flowOf("\t"+test[0], 1)
			require.ErrorContains(t, err, test[1])
		})
	}
	_, err := LoadFlow(components.FS, "explode", gardenInput())
	require.EqualError(t, err, `components/garden/flow.cue: there is no operation "explode"; want one of reconcile, delete`)
}

// TestFlowOfFeatureGates: each gate of a landscape turns its own steps of the Garden on or off, and no others. What follows on a step that is
// left out does not wait for it.
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
