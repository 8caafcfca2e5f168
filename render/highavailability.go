// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/render/availability"
)

// highAvailabilityKinds are the kinds that an upstream webhook makes highly available.
var highAvailabilityKinds = []schema.GroupKind{deploymentKind, statefulSetKind, autoscalerKind}

var (
	deploymentKind  = schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}
	statefulSetKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}
	autoscalerKind  = schema.GroupKind{Group: autoscalingv2.GroupName, Kind: "HorizontalPodAutoscaler"}
)

// nodeTolerationSeconds is how long pods stay on a failed node. Upstream: the defaults of
// nodeToleration in the configuration of gardener-operator and gardenlet.
var nodeTolerationSeconds = availability.TolerationSeconds{NotReady: ptr.To[int64](60), Unreachable: ptr.To[int64](60)}

// registryChartPath is the source of bundles of Extensions; no other bundle has it.
var registryChartPath = cue.ParsePath("helm.oci")

// placementSpec is the evaluated #Placement of a namespace.
type placementSpec struct {
	Zones            []string                                `json:"zones"`
	FailureTolerance *gardencorev1beta1.FailureToleranceType `json:"failureTolerance"`
	ZonePinning      bool                                    `json:"zonePinning"`
}

// applyHighAvailability sets replicas, zones and tolerations of workload in namespaces with a
// placement, as the webhook of gardener-resource-manager would. If an overlay changed the declared
// number of replicas, an annotation makes the webhook preserve the overlay's number.
func (c Component) applyHighAvailability(bundles []Bundle, declared map[workloadKey]int64) error {
	around := autoscaledWorkload(bundles)
	var places map[string]placementSpec
	for _, b := range bundles {
		if b.Cluster != ClusterRuntime && b.Cluster != ClusterSeed {
			continue
		}
		for _, o := range b.Objects {
			kind := o.GroupVersionKind().GroupKind()
			if !slices.Contains(highAvailabilityKinds, kind) {
				continue
			}
			if _, skipped := o.GetLabels()[availability.SkipLabel]; skipped {
				continue
			}
			if places == nil { // most components have no workload
				if err := c.placements.Decode(&places); err != nil {
					return cueError(c.Path+": placements", err)
				}
			}
			place, ok := places[o.GetNamespace()]
			if !ok {
				continue
			}
			key := workloadKeyOf(o.Unstructured)
			if before, known := declared[key]; known {
				annotateReplicas(o.Unstructured, before)
			}
			err := applyPlacement(o.Unstructured, place.placement(), around[key], b.Delivery.injectedPodLabels())
			// the webhook rejects faults in the chart of an Extension
			if err != nil && !c.sourceOf(b.Name).LookupPath(registryChartPath).Exists() {
				return fmt.Errorf("bundle %s: %s %s at %s: %w", b.Name, o.GetKind(), o.GetName(), o.Origin, err)
			}
		}
	}
	return nil
}

type workloadKey struct {
	schema.GroupKind
	namespace, name string
}

func workloadKeyOf(o *unstructured.Unstructured) workloadKey {
	return workloadKey{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

// declaredReplicas returns the replicas of the workload of bundles, or the minimum of autoscalers;
// 1, the default, where the field is not set.
func declaredReplicas(bundles []Bundle) map[workloadKey]int64 {
	out := map[workloadKey]int64{}
	for _, b := range bundles {
		for _, o := range b.Objects {
			if slices.Contains(highAvailabilityKinds, o.GroupVersionKind().GroupKind()) {
				key := workloadKeyOf(o.Unstructured)
				if key.namespace == "" {
					key.namespace = b.Namespace
				}
				out[key] = replicasOf(o.Unstructured)
			}
		}
	}
	return out
}

func replicasOf(o *unstructured.Unstructured) int64 {
	field := "replicas"
	if o.GroupVersionKind().GroupKind() == autoscalerKind {
		field = "minReplicas"
	}
	replicas, written, err := unstructured.NestedInt64(o.Object, "spec", field)
	if err != nil || !written {
		return 1
	}
	return replicas
}

// annotateReplicas annotates a workload whose number of replicas differs from before.
func annotateReplicas(o *unstructured.Unstructured, before int64) {
	replicas, annotations := replicasOf(o), o.GetAnnotations()
	if replicas == before || replicas == 0 || o.GetLabels()[gardencorev1beta1.HighAvailabilityConfigType] == "" || annotations[gardencorev1beta1.HighAvailabilityConfigReplicas] != "" {
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[gardencorev1beta1.HighAvailabilityConfigReplicas] = strconv.FormatInt(replicas, 10)
	o.SetAnnotations(annotations)
}

// autoscaledWorkload finds the workload that has an autoscaler. A render cannot know that a cluster
// has only one node; the webhook in the cluster does.
func autoscaledWorkload(bundles []Bundle) map[workloadKey]availability.WorkloadContext {
	out := map[workloadKey]availability.WorkloadContext{}
	for _, b := range bundles {
		for _, o := range b.Objects {
			if o.GroupVersionKind().GroupKind() != autoscalerKind {
				continue
			}
			autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, autoscaler) != nil {
				continue
			}
			of := autoscaler.Spec.ScaleTargetRef
			if gv, err := schema.ParseGroupVersion(of.APIVersion); err == nil {
				out[workloadKey{schema.GroupKind{Group: gv.Group, Kind: of.Kind}, o.GetNamespace(), of.Name}] = availability.WorkloadContext{
					IsAutoscaled: true, MaxReplicas: autoscaler.Spec.MaxReplicas,
				}
			}
		}
	}
	return out
}

func (p placementSpec) placement() availability.Placement {
	return availability.Placement{FailureTolerance: p.FailureTolerance, Zones: slices.Sorted(slices.Values(p.Zones)), ZonePinning: p.ZonePinning || p.FailureTolerance != nil}
}

// applyPlacement changes an object. It skips objects that are not a valid Deployment, StatefulSet
// or HorizontalPodAutoscaler, as in a chart of an Extension: the API server rejects them. injected
// are labels that pods get in addition to the template's labels.
func applyPlacement(o *unstructured.Unstructured, place availability.Placement, around availability.WorkloadContext, injected map[string]string) error {
	around.SeveralNodes = true
	switch o.GetKind() {
	case autoscalerKind.Kind:
		return changeTypedFields(o, func(a *autoscalingv2.HorizontalPodAutoscaler) error {
			a.Spec.MinReplicas = defaultReplicas(a.Spec.MinReplicas)
			return place.ScaleAutoscaler(a)
		}, func(a *autoscalingv2.HorizontalPodAutoscaler) []changedField {
			return []changedField{{a.Spec.MinReplicas, []string{"spec", "minReplicas"}}, {a.Spec.MaxReplicas, []string{"spec", "maxReplicas"}}}
		})
	case statefulSetKind.Kind:
		return changeTypedFields(o, func(s *appsv1.StatefulSet) error {
			s.Spec.Replicas = defaultReplicas(s.Spec.Replicas)
			return place.Spread(availability.WorkloadOfStatefulSet(s), around, nodeTolerationSeconds)
		}, func(s *appsv1.StatefulSet) []changedField { return spreadFields(s.Spec.Replicas, s.Spec.Template.Spec) })
	default:
		return changeTypedFields(o, func(d *appsv1.Deployment) error {
			d.Spec.Replicas = defaultReplicas(d.Spec.Replicas)
			d.Spec.Template.Labels = mergeMaps(d.Spec.Template.Labels, injected)
			return place.Spread(availability.WorkloadOfDeployment(d), around, nodeTolerationSeconds)
		}, func(d *appsv1.Deployment) []changedField { return spreadFields(d.Spec.Replicas, d.Spec.Template.Spec) })
	}
}

// injectedPodLabels are the labels that gardener-resource-manager adds to all objects of a
// ManagedResource, pods included.
func (d Delivery) injectedPodLabels() map[string]string {
	if d.Direct {
		return nil
	}
	return mergeMaps(map[string]string{resourcesv1alpha1.ManagedBy: resourcesv1alpha1.ManagedByGardener}, d.InjectLabels)
}

// defaultReplicas applies the API default for a number of replicas.
func defaultReplicas(replicas *int32) *int32 {
	if replicas == nil {
		return ptr.To[int32](1)
	}
	return replicas
}

// changedField is a field that a rule may change.
type changedField struct {
	value any
	path  []string
}

func spreadFields(replicas *int32, pods corev1.PodSpec) []changedField {
	return []changedField{
		{replicas, []string{"spec", "replicas"}},
		{pods.Affinity, []string{"spec", "template", "spec", "affinity"}},
		{pods.Tolerations, []string{"spec", "template", "spec", "tolerations"}},
		{pods.TopologySpreadConstraints, []string{"spec", "template", "spec", "topologySpreadConstraints"}},
	}
}

// changeTypedFields changes an object through its Go type and copies only the given fields back,
// because decoding adds other fields.
func changeTypedFields[T any](o *unstructured.Unstructured, change func(*T) error, fields func(*T) []changedField) error {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return nil
	}
	before, err := encodeFields(fields(typed))
	if err != nil {
		return err
	}
	if err := change(typed); err != nil {
		return err
	}
	after := fields(typed)
	texts, err := encodeFields(after)
	if err != nil {
		return err
	}
	for i, field := range after {
		if bytes.Equal(before[i], texts[i]) {
			continue
		}
		var value any
		if err := utiljson.Unmarshal(texts[i], &value); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(o.Object, value, field.path...); err != nil {
			return err
		}
	}
	return nil
}

// encodeFields encodes the values of fields as JSON.
func encodeFields(fields []changedField) ([][]byte, error) {
	out := make([][]byte, 0, len(fields))
	for _, field := range fields {
		text, err := json.Marshal(field.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(field.path, "."), err)
		}
		out = append(out, text)
	}
	return out, nil
}
