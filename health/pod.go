package health

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckPod fails unless the pod is running or has succeeded; readiness is the matter of its controller
// (pkg/utils/kubernetes/health/pod.go).
func CheckPod(obj *unstructured.Unstructured) error { return asError(checkPod(obj)) }

func checkPod(obj *unstructured.Unstructured) *Failure {
	phase := corev1.PodPhase(text(obj, "status", "phase"))
	if phase == corev1.PodRunning || phase == corev1.PodSucceeded {
		return nil
	}
	f := failf("the pod is in phase %q, expected Running or Succeeded", phase)
	f.Waiting = phase == corev1.PodPending || phase == ""
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &pod); err == nil {
		if _, message := PodReason([]corev1.Pod{pod}); message != "" {
			f.Message += ": " + message
		}
	}
	return f
}

// PodSelector is the selector of the pods that belong to a workload; false for kinds that have none.
func PodSelector(obj *unstructured.Unstructured) (labels.Selector, bool) {
	m, ok := fieldAt(obj.Object, "spec", "selector").(map[string]any)
	if !ok {
		return nil, false
	}
	switch obj.GetKind() {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job":
	default:
		return nil, false
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &selector); err != nil {
		return nil, false
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	return s, err == nil
}

// selectPods picks the pods of a workload by namespace and selector.
func selectPods(obj *unstructured.Unstructured, pods []corev1.Pod) []corev1.Pod {
	selector, ok := PodSelector(obj)
	if !ok {
		return nil
	}
	var out []corev1.Pod
	for _, pod := range pods {
		if pod.Namespace == obj.GetNamespace() && selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, pod)
		}
	}
	return out
}

func isPodTerminal(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isPodStale says whether the status reason is one of a pod that is left over
// (pkg/utils/kubernetes/health/pod.go: IsPodStale).
func isPodStale(reason string) bool {
	if strings.HasPrefix(reason, "OutOf") {
		return true
	}
	for _, part := range []string{"Evicted", "NodeAffinity", "NodeLost", "Preempting"} {
		if strings.Contains(reason, part) {
			return true
		}
	}
	return false
}

func isPodDisrupted(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
