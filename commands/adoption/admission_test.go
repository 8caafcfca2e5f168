// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/render/availability"
)

// admitObjects completes recorded objects with the changes of upstream's resource manager, which
// does not run here: it spreads workloads as their namespace demands. The recording has the objects
// before admission, but with the labels that it injects.
func (u *upstream) admitObjects(all []recordedObject) []recordedObject {
	u.Helper()
	autoscalers := map[string]int32{}
	for _, r := range all {
		if r.GetKind() == "HorizontalPodAutoscaler" {
			autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
			require.NoError(u, runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object, autoscaler))
			autoscalers[r.GetNamespace()+"/"+autoscaler.Spec.ScaleTargetRef.Name] = autoscaler.Spec.MaxReplicas
		}
	}
	seconds := ptr.To[int64](60) // the default of gardener-operator
	tolerated := availability.TolerationSeconds{NotReady: seconds, Unreachable: seconds}
	out := make([]recordedObject, 0, len(all))
	for _, r := range all {
		var object any
		switch r.GetKind() {
		case "Deployment":
			object = &appsv1.Deployment{}
		case "StatefulSet":
			object = &appsv1.StatefulSet{}
		case "HorizontalPodAutoscaler":
			object = &autoscalingv2.HorizontalPodAutoscaler{}
		}
		_, skipped := r.GetLabels()[availability.SkipLabel]
		if object == nil || skipped || r.cluster != landscape.Runtime {
			out = append(out, r)
			continue
		}
		namespace := u.get(landscape.Runtime, namespaces, "", r.GetNamespace())
		if namespace.GetLabels()[gardencorev1beta1.HighAvailabilityConfigConsider] != "true" {
			out = append(out, r)
			continue
		}
		place := availability.PlacementOf(namespace.GetAnnotations())
		most, scaled := autoscalers[r.GetNamespace()+"/"+r.GetName()]
		around := availability.WorkloadContext{IsAutoscaled: scaled, MaxReplicas: most, SeveralNodes: true}
		require.NoError(u, runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object, object))
		switch object := object.(type) {
		case *appsv1.Deployment:
			require.NoError(u, place.Spread(availability.WorkloadOfDeployment(object), around, tolerated))
		case *appsv1.StatefulSet:
			require.NoError(u, place.Spread(availability.WorkloadOfStatefulSet(object), around, tolerated))
		case *autoscalingv2.HorizontalPodAutoscaler:
			require.NoError(u, place.ScaleAutoscaler(object))
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		require.NoError(u, err)
		r.Unstructured = r.DeepCopy()
		r.Object = content
		out = append(out, r)
	}
	return out
}
