// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/pergola-dev/pergola/render/availability"
)

// highAvailability is the webhook that spreads workload as its namespace requires.
type highAvailability struct {
	settings HighAvailabilityConfig
	target   targetReader
}

func (a highAvailability) respond(ctx context.Context, request *admissionv1.AdmissionRequest) (ctrladmission.Response, error) {
	switch (schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}) {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		return patchObject(request, func(d *appsv1.Deployment) error {
			return a.mutate(ctx, request, &d.ObjectMeta, d.Spec.Replicas, availability.WorkloadOfDeployment(d))
		})
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		return patchObject(request, func(s *appsv1.StatefulSet) error {
			return a.mutate(ctx, request, &s.ObjectMeta, s.Spec.Replicas, availability.WorkloadOfStatefulSet(s))
		})
	case schema.GroupKind{Group: autoscalingv2.GroupName, Kind: "HorizontalPodAutoscaler"}:
		return patchObject(request, func(h *autoscalingv2.HorizontalPodAutoscaler) error {
			place, err := a.placement(ctx, request)
			if err != nil {
				return err
			}
			if err := place.ScaleAutoscaler(h); err != nil {
				return denyInvalid("%s: %v", describeObject(request, &h.ObjectMeta), err)
			}
			return nil
		})
	}
	return ctrladmission.Response{}, denyKind(request, "Deployment, StatefulSet and HorizontalPodAutoscaler")
}

func (a highAvailability) placement(ctx context.Context, request *admissionv1.AdmissionRequest) (availability.Placement, error) {
	namespace := &corev1.Namespace{}
	if err := a.target.get(ctx, "", request.Namespace, namespace); err != nil {
		return availability.Placement{}, fmt.Errorf("reading namespace %s: %w", request.Namespace, err)
	}
	return availability.PlacementOf(namespace.Annotations), nil
}

// mutate reads only what the workload depends on.
func (a highAvailability) mutate(ctx context.Context, request *admissionv1.AdmissionRequest, metadata *metav1.ObjectMeta, replicas *int32, w availability.Workload) error {
	place, err := a.placement(ctx, request)
	if err != nil {
		return err
	}
	name := request.Name
	if name == "" {
		name = metadata.Name
	}
	var around availability.WorkloadContext
	if ptr.Deref(replicas, 0) > 0 {
		if around.IsAutoscaled, around.MaxReplicas, err = a.findAutoscaler(ctx, request, name); err != nil {
			return err
		}
		if place.HasHostSpread(metadata.Annotations) {
			if around.SeveralNodes, err = a.target.hasSeveralNodes(ctx); err != nil {
				return err
			}
		}
	}
	if err := place.Spread(w, around, a.settings.tolerations()); err != nil {
		return denyInvalid("%s: %v", describeObject(request, metadata), err)
	}
	return nil
}

// findAutoscaler returns whether a workload has an autoscaler, and the maximum of its replicas.
func (a highAvailability) findAutoscaler(ctx context.Context, request *admissionv1.AdmissionRequest, name string) (bool, int32, error) {
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

// tolerations returns the tolerations of the settings.
func (c HighAvailabilityConfig) tolerations() availability.TolerationSeconds {
	return availability.TolerationSeconds{NotReady: c.DefaultNotReadyTolerationSeconds, Unreachable: c.DefaultUnreachableTolerationSeconds}
}
