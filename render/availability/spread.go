// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Workload is the common part of a Deployment and a StatefulSet. It points into that object, which
// Spread changes.
type Workload struct {
	metadata *metav1.ObjectMeta
	replicas **int32
	template *corev1.PodTemplateSpec
	// selector selects the pods to spread; nil means the labels of the template.
	selector *metav1.LabelSelector
	// spreadPerRevision means that the pods of each revision are spread separately.
	spreadPerRevision bool
}

// WorkloadOfDeployment spreads the pods of each revision separately, so a new revision may have
// other labels.
func WorkloadOfDeployment(d *appsv1.Deployment) Workload {
	return Workload{&d.ObjectMeta, &d.Spec.Replicas, &d.Spec.Template, &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}, true}
}

// WorkloadOfStatefulSet counts the pods of both revisions, so the selector must not change when
// labels do.
func WorkloadOfStatefulSet(s *appsv1.StatefulSet) Workload {
	return Workload{&s.ObjectMeta, &s.Spec.Replicas, &s.Spec.Template, s.Spec.Selector, false}
}

// WorkloadContext has facts about a workload that are not in the object itself.
type WorkloadContext struct {
	// IsAutoscaled means that an autoscaler sets the replicas, up to MaxReplicas.
	IsAutoscaled bool
	MaxReplicas  int32
	// SeveralNodes means that the cluster has more than one node.
	SeveralNodes bool
}

// TolerationSeconds are the seconds that pods stay on a node that is not ready or not reachable,
// unless they set it themselves. Nil leaves the Kubernetes default (300).
type TolerationSeconds struct{ NotReady, Unreachable *int64 }

// minSpreadHosts is the minimum number of nodes for pods that must be spread over nodes.
const minSpreadHosts = 3

// Spread sets replicas, zones, constraints and tolerations of a workload in a namespace.
func (p Placement) Spread(w Workload, around WorkloadContext, tolerated TolerationSeconds) error {
	wanted, err := p.wantedReplicas(w.metadata, *w.replicas)
	if err != nil {
		return err
	}
	// An autoscaler determines the number of replicas, unless it is below the wanted one.
	if wanted != nil && (!around.IsAutoscaled || **w.replicas < *wanted) {
		*w.replicas = wanted
	}
	spec := &w.template.Spec
	if p.ZonePinning && len(p.Zones) > 0 {
		pinToZones(spec, p.Zones)
	}
	if constraints := p.constraints(w, around); len(constraints) > 0 {
		others := slices.DeleteFunc(slices.Clone(spec.TopologySpreadConstraints), func(c corev1.TopologySpreadConstraint) bool {
			return c.TopologyKey == corev1.LabelHostname || c.TopologyKey == corev1.LabelTopologyZone
		})
		spec.TopologySpreadConstraints = append(others, constraints...)
	}
	if w.spreadPerRevision {
		for i := range spec.TopologySpreadConstraints {
			matchRevision(&spec.TopologySpreadConstraints[i])
		}
	}
	addToleration(spec, corev1.TaintNodeNotReady, tolerated.NotReady)
	addToleration(spec, corev1.TaintNodeUnreachable, tolerated.Unreachable)
	return nil
}

// pinToZones requires the zones in each term of a pod's node affinity and replaces the zone
// requirements of the term.
func pinToZones(spec *corev1.PodSpec, zones []string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		others := slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelTopologyZone })
		term.MatchExpressions = append(others, corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones})
	}
}

// constraints spread workload with two or more replicas over nodes and zones.
func (p Placement) constraints(w Workload, around WorkloadContext) []corev1.TopologySpreadConstraint {
	replicas := ptr.Deref(*w.replicas, 0)
	if replicas <= 1 {
		return nil
	}
	most := replicas
	if around.IsAutoscaled {
		// The autoscaler may not be mutated yet, and so have a lower maximum.
		most = max(most, around.MaxReplicas)
	}
	selector := w.selector
	if selector == nil {
		selector = &metav1.LabelSelector{MatchLabels: w.template.Labels}
	}
	overHosts := corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelHostname, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector.DeepCopy()}
	if p.HasHostSpread(w.metadata.Annotations) && around.SeveralNodes {
		overHosts.WhenUnsatisfiable, overHosts.MinDomains = corev1.DoNotSchedule, ptr.To(min(minSpreadHosts, most))
	}
	result := []corev1.TopologySpreadConstraint{overHosts}
	if p.hasZoneSpread() {
		result = append(result, corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule,
			MinDomains: ptr.To(min(int32(len(p.Zones)), most)), LabelSelector: selector.DeepCopy()})
	}
	return result
}

// matchRevision makes a constraint count only pods of the same revision. Kubernetes rejects keys
// without a selector, and keys that the selector contains.
func matchRevision(c *corev1.TopologySpreadConstraint) {
	if c.LabelSelector == nil || slices.Contains(c.MatchLabelKeys, appsv1.DefaultDeploymentUniqueLabelKey) {
		return
	}
	if _, ok := c.LabelSelector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		return
	}
	if slices.ContainsFunc(c.LabelSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == appsv1.DefaultDeploymentUniqueLabelKey }) {
		return
	}
	c.MatchLabelKeys = append(c.MatchLabelKeys, appsv1.DefaultDeploymentUniqueLabelKey)
}

// addToleration sets how long a pod stays on a node with a taint, unless the pod sets it itself.
func addToleration(spec *corev1.PodSpec, taint string, seconds *int64) {
	if seconds == nil || slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == taint && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute)
	}) {
		return
	}
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(*seconds)})
}
