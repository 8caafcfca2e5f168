// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// decodeYAML decodes YAML strictly.
func decodeYAML[T any](t *testing.T, text string) *T {
	t.Helper()
	value := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), value), text)
	return value
}

// assertYAML compares two values by their YAML.
func assertYAML[T any](t *testing.T, want string, got *T) {
	t.Helper()
	written := func(value *T) string {
		text, err := yaml.Marshal(value)
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t, written(decodeYAML[T](t, want)), written(got))
}

func TestPlacement(t *testing.T) {
	const tolerance, zones = gardencorev1beta1.HighAvailabilityConfigFailureToleranceType, gardencorev1beta1.HighAvailabilityConfigZones
	none, zone := ptr.To(gardencorev1beta1.FailureToleranceType("")), ptr.To(gardencorev1beta1.FailureToleranceTypeZone)
	for name, c := range map[string]struct {
		annotations map[string]string
		want        Placement
	}{
		"nothing":              {nil, Placement{}},
		"zones":                {map[string]string{zones: "b,a,,b, c"}, Placement{Zones: []string{"a", "b", "c"}}},
		"no zones":             {map[string]string{zones: ""}, Placement{}},
		"pinned":               {map[string]string{zones: "a", ZonePinningAnnotation: "true"}, Placement{Zones: []string{"a"}, ZonePinning: true}},
		"pinned by no boolean": {map[string]string{ZonePinningAnnotation: "enabled"}, Placement{}},
		"tolerates nothing":    {map[string]string{tolerance: ""}, Placement{FailureTolerance: none, ZonePinning: true}},
		"tolerates a zone":     {map[string]string{tolerance: "zone", zones: "a"}, Placement{FailureTolerance: zone, Zones: []string{"a"}, ZonePinning: true}},
	} {
		assert.Equal(t, c.want, PlacementOf(c.annotations), name)
	}
}

// toleranceUnset is a tolerance that a namespace does not set.
const toleranceUnset = "unsaid"

func testPlacement(tolerance string, zones ...string) Placement {
	p := Placement{Zones: zones}
	if tolerance != toleranceUnset {
		p.FailureTolerance, p.ZonePinning = ptr.To(gardencorev1beta1.FailureToleranceType(tolerance)), true
	}
	return p
}

func TestReplicas(t *testing.T) {
	for _, c := range []struct {
		tolerance, component, own string
		now                       *int32
		scaled                    bool
		want                      int32
	}{
		{toleranceUnset, "controller", "", ptr.To[int32](1), false, 2},
		{toleranceUnset, "server", "", ptr.To[int32](1), false, 2},
		{toleranceUnset, "server", "", ptr.To[int32](4), false, 2},
		{toleranceUnset, "server", "", ptr.To[int32](4), true, 4},
		{toleranceUnset, "server", "", ptr.To[int32](1), true, 2},
		{toleranceUnset, "", "", ptr.To[int32](1), false, 1},
		// the number applies only to components
		{toleranceUnset, "", "3", ptr.To[int32](1), false, 1},
		{toleranceUnset, "server", "3", ptr.To[int32](1), false, 3},
		{toleranceUnset, "server", "", ptr.To[int32](0), false, 0}, // hibernated
		{toleranceUnset, "server", "3", ptr.To[int32](0), false, 0},
		{"", "controller", "", ptr.To[int32](2), false, 1},
		{"", "server", "", ptr.To[int32](1), false, 2},
		{"", "controller", "4", ptr.To[int32](1), false, 4},
		{"node", "controller", "", ptr.To[int32](1), false, 2},
		{"zone", "controller", "", ptr.To[int32](1), false, 2},
		{"zone", "server", "", ptr.To[int32](1), false, 2},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Spec.Replicas = c.now
			d.Labels = map[string]string{gardencorev1beta1.HighAvailabilityConfigType: c.component}
			d.Annotations = map[string]string{gardencorev1beta1.HighAvailabilityConfigReplicas: c.own}
			w := WorkloadOfDeployment(d)
			require.NoError(t, testPlacement(c.tolerance).Spread(w, WorkloadContext{IsAutoscaled: c.scaled}, TolerationSeconds{}))
			assert.Equal(t, c.want, *d.Spec.Replicas)
		})
	}
	for _, text := range []string{"many", "-1", "2.5", "99999999999"} {
		d := &appsv1.Deployment{}
		d.Spec.Replicas = ptr.To[int32](1)
		d.Labels = map[string]string{gardencorev1beta1.HighAvailabilityConfigType: "server"}
		d.Annotations = map[string]string{gardencorev1beta1.HighAvailabilityConfigReplicas: text}
		err := testPlacement(toleranceUnset).Spread(WorkloadOfDeployment(d), WorkloadContext{}, TolerationSeconds{})
		assert.ErrorContains(t, err, fmt.Sprintf("replicas is %q: want a number", text))
	}
}

func TestScaleAutoscaler(t *testing.T) {
	for _, c := range []struct {
		tolerance string
		component string
		own       string
		least     *int32
		most      int32
		wantLeast *int32
		wantMost  int32
	}{
		{toleranceUnset, "server", "", ptr.To[int32](1), 5, ptr.To[int32](2), 5},
		{toleranceUnset, "server", "", ptr.To[int32](3), 5, ptr.To[int32](3), 5},
		{toleranceUnset, "server", "", ptr.To[int32](1), 1, ptr.To[int32](2), 2},
		{toleranceUnset, "server", "4", ptr.To[int32](1), 3, ptr.To[int32](4), 4},
		{toleranceUnset, "", "", ptr.To[int32](1), 1, ptr.To[int32](1), 1},
		{toleranceUnset, "server", "", ptr.To[int32](0), 1, ptr.To[int32](0), 1},
		{toleranceUnset, "server", "", nil, 1, nil, 1},
		{"", "controller", "", ptr.To[int32](1), 1, ptr.To[int32](1), 1},
		{"zone", "controller", "", ptr.To[int32](1), 1, ptr.To[int32](2), 2},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			h := &autoscalingv2.HorizontalPodAutoscaler{}
			h.Spec.MinReplicas, h.Spec.MaxReplicas = c.least, c.most
			h.Labels = map[string]string{gardencorev1beta1.HighAvailabilityConfigType: c.component}
			h.Annotations = map[string]string{gardencorev1beta1.HighAvailabilityConfigReplicas: c.own}
			require.NoError(t, testPlacement(c.tolerance).ScaleAutoscaler(h))
			assert.Equal(t, c.wantLeast, h.Spec.MinReplicas)
			assert.Equal(t, c.wantMost, h.Spec.MaxReplicas)
		})
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	h.Spec.MinReplicas = ptr.To[int32](1)
	h.Labels = map[string]string{gardencorev1beta1.HighAvailabilityConfigType: "server"}
	h.Annotations = map[string]string{gardencorev1beta1.HighAvailabilityConfigReplicas: "x"}
	assert.ErrorContains(t, testPlacement(toleranceUnset).ScaleAutoscaler(h), "want a number")
}

func TestConstraints(t *testing.T) {
	const (
		softHosts = "{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash]}"
		hardHosts = "{maxSkew: 1, minDomains: %d, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash]}"
		hardZones = "{maxSkew: 1, minDomains: %d, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash]}"
	)
	host, zone := func(n int) string { return fmt.Sprintf(hardHosts, n) }, func(n int) string { return fmt.Sprintf(hardZones, n) }
	for name, c := range map[string]struct {
		place      Placement
		replicas   int32
		hostSpread string
		around     WorkloadContext
		want       []string
	}{
		"one replica":                  {testPlacement("zone", "a", "b", "c"), 1, "true", WorkloadContext{SeveralNodes: true}, nil},
		"none":                         {testPlacement("zone", "a", "b", "c"), 0, "true", WorkloadContext{SeveralNodes: true}, nil},
		"unsaid":                       {testPlacement(toleranceUnset), 2, "", WorkloadContext{SeveralNodes: true}, []string{softHosts}},
		"unsaid, one zone":             {testPlacement(toleranceUnset, "a"), 2, "", WorkloadContext{SeveralNodes: true}, []string{softHosts}},
		"unsaid, zones":                {testPlacement(toleranceUnset, "a", "b"), 2, "", WorkloadContext{SeveralNodes: true}, []string{softHosts, zone(2)}},
		"unsaid, hosts":                {testPlacement(toleranceUnset, "a", "b", "c"), 3, "true", WorkloadContext{SeveralNodes: true}, []string{host(3), zone(3)}},
		"unsaid, hosts, one node":      {testPlacement(toleranceUnset), 2, "true", WorkloadContext{}, []string{softHosts}},
		"nothing":                      {testPlacement("", "a", "b"), 2, "", WorkloadContext{SeveralNodes: true}, []string{softHosts}},
		"nothing, hosts":               {testPlacement("", "a", "b"), 2, "true", WorkloadContext{SeveralNodes: true}, []string{host(2)}},
		"node":                         {testPlacement("node", "a"), 2, "", WorkloadContext{SeveralNodes: true}, []string{host(2)}},
		"node, three replicas":         {testPlacement("node", "a"), 3, "", WorkloadContext{SeveralNodes: true}, []string{host(3)}},
		"node, many replicas":          {testPlacement("node", "a"), 7, "", WorkloadContext{SeveralNodes: true}, []string{host(3)}},
		"node, scaled":                 {testPlacement("node", "a"), 2, "", WorkloadContext{SeveralNodes: true, IsAutoscaled: true, MaxReplicas: 6}, []string{host(3)}},
		"node, scaled to less":         {testPlacement("node", "a"), 2, "", WorkloadContext{SeveralNodes: true, IsAutoscaled: true, MaxReplicas: 1}, []string{host(2)}},
		"node, one node":               {testPlacement("node", "a"), 2, "", WorkloadContext{}, []string{softHosts}},
		"node, zones":                  {testPlacement("node", "a", "b"), 2, "", WorkloadContext{SeveralNodes: true}, []string{host(2)}},
		"zone":                         {testPlacement("zone", "a", "b", "c"), 2, "", WorkloadContext{SeveralNodes: true}, []string{host(2), zone(2)}},
		"zone, three replicas":         {testPlacement("zone", "a", "b", "c"), 3, "", WorkloadContext{SeveralNodes: true}, []string{host(3), zone(3)}},
		"zone, two zones, 3 replicas":  {testPlacement("zone", "a", "b"), 3, "", WorkloadContext{SeveralNodes: true}, []string{host(3), zone(2)}},
		"zone, one zone":               {testPlacement("zone", "a"), 3, "", WorkloadContext{SeveralNodes: true}, []string{host(3)}},
		"zone, scaled":                 {testPlacement("zone", "a", "b", "c"), 2, "", WorkloadContext{SeveralNodes: true, IsAutoscaled: true, MaxReplicas: 3}, []string{host(3), zone(3)}},
		"zone, one node":               {testPlacement("zone", "a", "b", "c"), 3, "", WorkloadContext{}, []string{softHosts, zone(3)}},
		"unsaid, hosts said otherwise": {testPlacement(toleranceUnset), 2, "required", WorkloadContext{SeveralNodes: true}, []string{softHosts}},
	} {
		t.Run(name, func(t *testing.T) {
			const own = "{maxSkew: 2, topologyKey: own, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {b: c}}}"
			d := decodeYAML[appsv1.Deployment](t, fmt.Sprintf(`
metadata: {annotations: {%s: "%s"}}
spec:
  replicas: %d
  template:
    metadata: {labels: {app: a}}
    spec: {topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, maxSkew: 9, whenUnsatisfiable: DoNotSchedule}, %s]}`, HostSpreadAnnotation, c.hostSpread, c.replicas, own))
			want := "[{topologyKey: kubernetes.io/hostname, maxSkew: 9, whenUnsatisfiable: DoNotSchedule}, " + own[:len(own)-1] + ", matchLabelKeys: [pod-template-hash]}]"
			if len(c.want) > 0 {
				want = "[" + own[:len(own)-1] + ", matchLabelKeys: [pod-template-hash]}"
				for _, w := range c.want {
					want += ", " + w
				}
				want += "]"
			}
			w := WorkloadOfDeployment(d)
			for range 2 {
				require.NoError(t, c.place.Spread(w, c.around, TolerationSeconds{}))
				assertYAML(t, want, &d.Spec.Template.Spec.TopologySpreadConstraints)
			}
		})
	}
}

// TestConstraintsOfStatefulSets: a constraint uses the selector of a StatefulSet, which does not
// change, and counts pods of all revisions.
func TestConstraintsOfStatefulSets(t *testing.T) {
	s := decodeYAML[appsv1.StatefulSet](t, "{spec: {replicas: 2, selector: {matchExpressions: [{key: app, operator: Exists}]}, template: {metadata: {labels: {app: a, version: v2}}}}}")
	w := WorkloadOfStatefulSet(s)
	require.NoError(t, testPlacement(toleranceUnset).Spread(w, WorkloadContext{}, TolerationSeconds{}))
	assertYAML(t, "[{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}}]", &s.Spec.Template.Spec.TopologySpreadConstraints)

	s.Spec.Template.Spec.TopologySpreadConstraints = nil
	w.selector = nil // an invalid StatefulSet, which this webhook does not report
	require.NoError(t, testPlacement(toleranceUnset).Spread(w, WorkloadContext{}, TolerationSeconds{}))
	assert.Equal(t, s.Spec.Template.Labels, s.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels)
}

// TestMatchRevision: Kubernetes rejects keys without a selector, and keys in the selector.
func TestMatchRevision(t *testing.T) {
	for _, unchanged := range []string{
		"{topologyKey: a, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}",
		"{topologyKey: a, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {pod-template-hash: x}}}",
		"{topologyKey: a, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchExpressions: [{key: pod-template-hash, operator: Exists}]}}",
		"{topologyKey: a, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}, matchLabelKeys: [pod-template-hash]}",
	} {
		c := decodeYAML[corev1.TopologySpreadConstraint](t, unchanged)
		matchRevision(c)
		assertYAML(t, unchanged, c)
	}
}

func TestPinToZones(t *testing.T) {
	const pinned = "{key: topology.kubernetes.io/zone, operator: In, values: [a, b]}"
	for name, c := range map[string]struct{ spec, want string }{
		"nothing": {"{}", "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [" + pinned + "]}]}}}}"},
		"other affinity": {"{affinity: {podAffinity: {}, nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}}",
			"{affinity: {podAffinity: {}, nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}], requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [" + pinned + "]}]}}}}"},
		"alternatives": {"{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: NotIn, values: [a]}, {key: own, operator: Exists}]}, {matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}}",
			"{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: own, operator: Exists}, " + pinned + "]}, {matchFields: [{key: metadata.name, operator: In, values: [n]}], matchExpressions: [" + pinned + "]}]}}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := decodeYAML[corev1.PodSpec](t, c.spec)
			for range 2 {
				pinToZones(spec, []string{"a", "b"})
				assertYAML(t, c.want, spec)
			}
		})
	}
	d := &appsv1.Deployment{}
	w := WorkloadOfDeployment(d)
	require.NoError(t, testPlacement(toleranceUnset, "a").Spread(w, WorkloadContext{}, TolerationSeconds{}))
	require.NoError(t, testPlacement("").Spread(w, WorkloadContext{}, TolerationSeconds{}))
	assert.Nil(t, d.Spec.Template.Spec.Affinity, "pinned to none, or zones without a pin")
	require.NoError(t, testPlacement("", "a").Spread(w, WorkloadContext{}, TolerationSeconds{}))
	assert.NotNil(t, d.Spec.Template.Spec.Affinity)
}

func TestAddToleration(t *testing.T) {
	settings := TolerationSeconds{NotReady: ptr.To[int64](60), Unreachable: ptr.To[int64](30)}
	const notReady = "{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 60}"
	const unreachable = "{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30}"
	for name, c := range map[string]struct{ have, want string }{
		"nothing":        {"[]", "[" + notReady + "," + unreachable + "]"},
		"its own":        {"[{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]", "[{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}," + unreachable + "]"},
		"all effects":    {"[{key: node.kubernetes.io/unreachable, operator: Exists}]", "[{key: node.kubernetes.io/unreachable, operator: Exists}," + notReady + "]"},
		"another effect": {"[{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoSchedule}]", "[{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoSchedule}," + notReady + "," + unreachable + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Tolerations = *decodeYAML[[]corev1.Toleration](t, c.have)
			for range 2 {
				require.NoError(t, testPlacement(toleranceUnset).Spread(WorkloadOfDeployment(d), WorkloadContext{}, settings))
				assertYAML(t, c.want, &d.Spec.Template.Spec.Tolerations)
			}
		})
	}
}
