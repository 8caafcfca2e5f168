package resourcewebhooks

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// componentController is the value of label HighAvailabilityConfigType for controllers; others are servers.
const componentController = "controller"

// availability is the webhook that spreads workload as its namespace demands.
type availability struct {
	settings HighAvailabilityConfig
	target   lookups
}

func (a availability) answer(ctx context.Context, request *admissionv1.AdmissionRequest) (ctrladmission.Response, error) {
	switch (schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}) {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		return changed(request, func(d *appsv1.Deployment) error {
			// Pods of the old and the new revision are told apart, so the labels of the new one may be others.
			return a.mutate(ctx, request, workload{&d.ObjectMeta, &d.Spec.Replicas, &d.Spec.Template, &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}, true})
		})
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		return changed(request, func(s *appsv1.StatefulSet) error {
			// Pods of both revisions count, so what selects them must not change when labels do.
			return a.mutate(ctx, request, workload{&s.ObjectMeta, &s.Spec.Replicas, &s.Spec.Template, s.Spec.Selector, false})
		})
	case schema.GroupKind{Group: autoscalingv2.GroupName, Kind: "HorizontalPodAutoscaler"}:
		return changed(request, func(h *autoscalingv2.HorizontalPodAutoscaler) error {
			place, err := a.placement(ctx, request)
			if err != nil {
				return err
			}
			if err := scaleWithin(place, h); err != nil {
				return denied("%s: %v", described(request, &h.ObjectMeta), err)
			}
			return nil
		})
	}
	return ctrladmission.Response{}, notFor(request, "Deployment, StatefulSet and HorizontalPodAutoscaler")
}

func (a availability) placement(ctx context.Context, request *admissionv1.AdmissionRequest) (placement, error) {
	namespace := &corev1.Namespace{}
	if err := a.target.get(ctx, "", request.Namespace, namespace); err != nil {
		return placement{}, fmt.Errorf("reading namespace %s: %w", request.Namespace, err)
	}
	return placementOf(namespace.Annotations), nil
}

// mutate looks up what the workload depends on, as far as it does.
func (a availability) mutate(ctx context.Context, request *admissionv1.AdmissionRequest, w workload) error {
	place, err := a.placement(ctx, request)
	if err != nil {
		return err
	}
	name := request.Name
	if name == "" {
		name = w.metadata.Name
	}
	var around surroundings
	if ptr.Deref(*w.replicas, 0) > 0 {
		if around.scaled, around.maxReplicas, err = a.scaling(ctx, request, name); err != nil {
			return err
		}
		if place.mustSpreadHosts(w.metadata.Annotations) {
			if around.severalNodes, err = a.target.severalNodes(ctx); err != nil {
				return err
			}
		}
	}
	if err := a.settings.spread(place, w, around); err != nil {
		return denied("%s: %v", described(request, w.metadata), err)
	}
	return nil
}

// scaling finds the autoscaler of a workload, and how far it goes.
func (a availability) scaling(ctx context.Context, request *admissionv1.AdmissionRequest, name string) (bool, int32, error) {
	autoscalers := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := a.target.cached.List(ctx, autoscalers, client.InNamespace(request.Namespace)); err != nil {
		return false, 0, fmt.Errorf("listing the HorizontalPodAutoscalers of namespace %s: %w", request.Namespace, err)
	}
	for _, autoscaler := range autoscalers.Items {
		of := autoscaler.Spec.ScaleTargetRef
		gv, err := schema.ParseGroupVersion(of.APIVersion)
		if err == nil && gv.Group == request.Kind.Group && of.Kind == request.Kind.Kind && of.Name == name {
			return true, autoscaler.Spec.MaxReplicas, nil
		}
	}
	return false, 0, nil
}

// placement is what a namespace says about its pods.
type placement struct {
	// tolerance is which failures they survive: nil if not said, empty for none.
	tolerance *gardencorev1beta1.FailureToleranceType
	// zones they run in, sorted, and whether in these only.
	zones  []string
	pinned bool
}

func placementOf(annotations map[string]string) placement {
	var p placement
	if value, ok := annotations[gardencorev1beta1.HighAvailabilityConfigFailureToleranceType]; ok {
		p.tolerance = ptr.To(gardencorev1beta1.FailureToleranceType(value))
	}
	for zone := range strings.SplitSeq(annotations[gardencorev1beta1.HighAvailabilityConfigZones], ",") {
		if zone = strings.TrimSpace(zone); zone != "" {
			p.zones = append(p.zones, zone)
		}
	}
	slices.Sort(p.zones)
	p.zones = slices.Compact(p.zones)
	// Namespaces of control planes are pinned without saying so.
	p.pinned = p.tolerance != nil || isTrue(annotations[ZonePinning])
	return p
}

// mustSpreadHosts tells whether pods have to run on different nodes, if there are some.
func (p placement) mustSpreadHosts(annotations map[string]string) bool {
	return ptr.Deref(p.tolerance, "") != "" || isTrue(annotations[HostSpread])
}

// mustSpreadZones tells whether pods have to run in different zones: in control planes if a zone may fail, elsewhere if
// there are several.
func (p placement) mustSpreadZones() bool {
	return len(p.zones) > 1 && (p.tolerance == nil || *p.tolerance == gardencorev1beta1.FailureToleranceTypeZone)
}

func isTrue(value string) bool {
	yes, err := strconv.ParseBool(value)
	return err == nil && yes
}

// replicas says how many there should be of what has this metadata and number now; nil leaves the number alone. What is
// scaled to none stays so: it is hibernated.
func (p placement) replicas(metadata *metav1.ObjectMeta, now *int32) (*int32, error) {
	component := metadata.Labels[gardencorev1beta1.HighAvailabilityConfigType]
	if ptr.Deref(now, 0) == 0 || component == "" {
		return nil, nil
	}
	if text := metadata.Annotations[gardencorev1beta1.HighAvailabilityConfigReplicas]; text != "" {
		own, err := strconv.ParseInt(text, 10, 32)
		if err != nil || own < 0 {
			return nil, fmt.Errorf("annotation %s is %q: want a number of replicas", gardencorev1beta1.HighAvailabilityConfigReplicas, text)
		}
		return ptr.To(int32(own)), nil
	}
	if component == componentController && p.tolerance != nil && *p.tolerance == "" {
		return ptr.To[int32](1), nil
	}
	return ptr.To[int32](2), nil
}

// scaleWithin raises the least number of replicas of an autoscaler.
func scaleWithin(p placement, autoscaler *autoscalingv2.HorizontalPodAutoscaler) error {
	wanted, err := p.replicas(&autoscaler.ObjectMeta, autoscaler.Spec.MinReplicas)
	if wanted == nil || err != nil {
		return err
	}
	least := max(*wanted, *autoscaler.Spec.MinReplicas)
	if least != *autoscaler.Spec.MinReplicas {
		autoscaler.Spec.MinReplicas = &least
	}
	autoscaler.Spec.MaxReplicas = max(autoscaler.Spec.MaxReplicas, least)
	return nil
}
