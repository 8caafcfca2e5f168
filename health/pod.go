// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckPod fails unless the pod is running or has succeeded; its controller judges readiness
// (pkg/utils/kubernetes/health/pod.go).
func CheckPod(obj *unstructured.Unstructured) error { return toError(checkPod(obj)) }

func checkPod(obj *unstructured.Unstructured) *Failure {
	phase := corev1.PodPhase(stringAt(obj, "status", "phase"))
	if phase == corev1.PodRunning || phase == corev1.PodSucceeded {
		return nil
	}
	f := failf("the pod is in phase %q, expected Running or Succeeded", phase)
	f.Waiting = phase == corev1.PodPending || phase == ""
	if pod, ok := asPod(obj); ok {
		if t := findPodCause(&pod, nil, nil); t.weight > 0 {
			f.Message += ": " + t.message
		}
	}
	return f
}

// PodSelector returns the selector of a workload's pods, or false for kinds without pods. For kinds
// of operators it uses the labels that the operators set.
func PodSelector(obj *unstructured.Unstructured) (labels.Selector, bool) {
	gvk := obj.GroupVersionKind()
	switch gvk.Group + "/" + gvk.Kind {
	case "druid.gardener.cloud/Etcd":
		return labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "etcd-druid", "app.kubernetes.io/part-of": obj.GetName()}), true
	case groupMonitoring + "/Prometheus":
		return labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "prometheus", "prometheus": obj.GetName()}), true
	case groupMonitoring + "/Alertmanager":
		return labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "alertmanager", "alertmanager": obj.GetName()}), true
	case "/ReplicationController":
		m, ok := fieldAt(obj.Object, "spec", "selector").(map[string]any)
		set := labels.Set{}
		for key, value := range m {
			set[key], _ = value.(string)
		}
		return labels.SelectorFromSet(set), ok && len(set) > 0
	case "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job",
		"extensions/Deployment", "extensions/DaemonSet", "extensions/ReplicaSet":
	default:
		return nil, false
	}
	m, ok := fieldAt(obj.Object, "spec", "selector").(map[string]any)
	if !ok {
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

func labelSet(m map[string]string) labels.Set { return m }

func isPodTerminal(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isPodStale reports whether the status reason is one of a leftover pod
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

// isPodCompleted reports whether the pod has completed, even if its phase is still Running.
func isPodCompleted(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && c.Reason == "PodCompleted" {
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
