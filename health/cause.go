// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// RelatedObjects has the objects related to an unhealthy object. The lists may have unrelated
// objects of its namespace; a missing list has no effect.
type RelatedObjects struct {
	// Pods are the pods of the object; see PodSelector.
	Pods []corev1.Pod
	// ReplicaSets are the replica sets of a Deployment; their conditions say why pods cannot be
	// created.
	ReplicaSets []appsv1.ReplicaSet
	// Claims are the claims that the pods mount.
	Claims []corev1.PersistentVolumeClaim
	// Events about the object, its ReplicaSets, pods and claims. The core API also serves the
	// events of events.k8s.io. Events of type Normal are read only for claims.
	Events []corev1.Event
}

// RelatedLists has the lists worth reading for an unhealthy or progressing object.
type RelatedLists struct{ Pods, ReplicaSets, Claims, Events bool }

// NeededLists returns the lists that FindCause needs; PodSelector selects pods and ReplicaSets.
// Claims are worth reading only if a pod is Pending. Events of type Warning suffice, except for a
// claim.
func NeededLists(obj *unstructured.Unstructured) RelatedLists {
	_, pods := PodSelector(obj)
	return RelatedLists{
		Pods:        pods,
		ReplicaSets: isDeployment(obj),
		Claims:      pods || isPod(obj),
		Events:      true,
	}
}

// Cause is the most informative reason why an object is unhealthy.
type Cause struct {
	// Object is the object of the reason, such as `pod "web-1"`; it is empty for the object itself.
	Object string `json:"object,omitempty"`
	// Reason is the reason of the cluster: ImagePullBackOff, CrashLoopBackOff, Unschedulable,
	// FailedMount, FailedCreate …
	Reason string `json:"reason"`
	// Message is the message for a person: bounded, on one line, and without likely secret values.
	Message string `json:"message"`
}

// String returns object and message.
func (c Cause) String() string {
	if c.Object == "" {
		return c.Message
	}
	return c.Object + ": " + c.Message
}

// causeCandidate is a candidate for the cause. Higher weights win.
type causeCandidate struct {
	weight                  int
	object, reason, message string
}

// The harder to recover from, and the nearer to the root cause, the higher the weight.
const (
	weightOwnEvent = iota + 1
	weightNotReady
	weightPending
	weightProbe
	weightTerminated
	weightFailed
	weightUnschedulable
	weightClaim
	weightMount
	weightWaiting
	weightCreate
)

// FindCause finds the cause of an object's trouble. It checks pods that could not be created
// (quota, webhook), their containers (image, crash, missing Secret), volumes, claims, and the
// scheduler. Then it checks failing probes and events about the object. Among equal troubles, the
// first pod by name decides. False means that it found nothing.
func FindCause(obj *unstructured.Unstructured, around RelatedObjects) (Cause, bool) {
	events := newestFirst(around.Events)
	pods := selectPods(obj, around.Pods)
	if pod, ok := asPod(obj); ok {
		pods = []corev1.Pod{pod}
	}
	worst := findPodsCause(pods, around.Claims, events)
	for _, t := range []causeCandidate{findCreationCause(obj, pods, around.ReplicaSets, events), findOwnEventCause(obj, events)} {
		if t.weight > worst.weight {
			worst = t
		}
	}
	if worst.weight == 0 {
		return Cause{}, false
	}
	if isPod(obj) {
		worst.object = strings.TrimPrefix(strings.TrimPrefix(worst.object, podName(obj.GetName())), ": ")
	}
	return Cause{Object: worst.object, Reason: worst.reason, Message: worst.message}, true
}

// PodReason returns the reason why pods do not work (ImagePullBackOff, CrashLoopBackOff,
// Unschedulable, OOMKilled, Evicted, Error …) and a sentence with pod and container. It takes the
// trouble that is hardest to recover from, then the first pod by name. It ignores terminating pods.
// Both results are empty if no pod is in trouble.
func PodReason(pods []corev1.Pod) (reason, message string) {
	t := findPodsCause(pods, nil, nil)
	if t.weight == 0 {
		return "", ""
	}
	return t.reason, Cause{Object: t.object, Message: t.message}.String()
}

func findPodsCause(pods []corev1.Pod, claims []corev1.PersistentVolumeClaim, events []corev1.Event) causeCandidate {
	var worst causeCandidate
	var name string
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		t := findPodCause(pod, claims, events)
		if t.weight > worst.weight || t.weight > 0 && t.weight == worst.weight && pod.Name < name {
			worst, name = t, pod.Name
		}
	}
	return worst
}

// findCreationCause finds why the controller of a workload cannot create pods.
func findCreationCause(obj *unstructured.Unstructured, pods []corev1.Pod, sets []appsv1.ReplicaSet, events []corev1.Event) causeCandidate {
	if NeededLists(obj).ReplicaSets {
		for i := range sets {
			if t := findReplicaSetCause(obj, &sets[i]); t.weight > 0 {
				return t
			}
		}
		return causeCandidate{}
	}
	kind, name, uid := podCreator(obj)
	if kind == "" {
		return causeCandidate{}
	}
	for _, e := range events {
		if e.Reason == "FailedCreate" && isEventOf(e, kind, obj.GetNamespace(), name, uid) {
			for i := range pods {
				// Creation has worked since.
				if pods[i].CreationTimestamp.After(eventTime(e)) {
					return causeCandidate{}
				}
			}
			return causeCandidate{weight: weightCreate, reason: e.Reason, message: joinReason(e.Reason, e.Message)}
		}
	}
	return causeCandidate{}
}

// podCreator returns the object whose controller creates the pods: the object itself, or the
// StatefulSet of its operator. The kind is empty for objects without pods.
func podCreator(obj *unstructured.Unstructured) (kind, name string, uid types.UID) {
	gk := obj.GroupVersionKind().GroupKind()
	switch gk.Group + "/" + gk.Kind {
	case "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job", "/ReplicationController", "extensions/DaemonSet", "extensions/ReplicaSet":
		return gk.Kind, obj.GetName(), obj.GetUID()
	case "druid.gardener.cloud/Etcd":
		return "StatefulSet", obj.GetName(), ""
	case groupMonitoring + "/Prometheus":
		return "StatefulSet", "prometheus-" + obj.GetName(), ""
	case groupMonitoring + "/Alertmanager":
		return "StatefulSet", "alertmanager-" + obj.GetName(), ""
	}
	return "", "", ""
}

func findReplicaSetCause(obj *unstructured.Unstructured, set *appsv1.ReplicaSet) causeCandidate {
	selector, ok := PodSelector(obj)
	if !ok || set.Namespace != obj.GetNamespace() || !selector.Matches(labelSet(set.Labels)) {
		return causeCandidate{}
	}
	if set.Spec.Replicas != nil && *set.Spec.Replicas == 0 {
		return causeCandidate{}
	}
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return causeCandidate{weightCreate, fmt.Sprintf("ReplicaSet %q", set.Name), orDefault(c.Reason, "FailedCreate"), joinReason(orDefault(c.Reason, "FailedCreate"), c.Message)}
		}
	}
	return causeCandidate{}
}

// findOwnEventCause is the newest Warning event about the object itself, or any event about the
// provisioning of a claim.
func findOwnEventCause(obj *unstructured.Unstructured, events []corev1.Event) causeCandidate {
	if isPod(obj) {
		return causeCandidate{}
	}
	gvk := obj.GroupVersionKind()
	if gvk.Group == "" && gvk.Kind == "PersistentVolumeClaim" {
		if e, ok := claimEvent(events, obj.GetNamespace(), obj.GetName(), obj.GetUID()); ok {
			return causeCandidate{weight: weightClaim, reason: e.Reason, message: joinReason(e.Reason, e.Message)}
		}
		return causeCandidate{}
	}
	for _, e := range events {
		// The event alone does not say whether a failed creation still matters; see
		// findCreationCause.
		if e.Type == corev1.EventTypeWarning && e.Reason != "FailedCreate" && isEventOf(e, gvk.Kind, obj.GetNamespace(), obj.GetName(), obj.GetUID()) {
			return causeCandidate{weight: weightOwnEvent, reason: e.Reason, message: joinReason(e.Reason, e.Message)}
		}
	}
	return causeCandidate{}
}

func isPod(obj *unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Pod"
}

func asPod(obj *unstructured.Unstructured) (corev1.Pod, bool) {
	var pod corev1.Pod
	if !isPod(obj) {
		return pod, false
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &pod)
	return pod, err == nil
}

// joinMessages appends the cause to the message of the rule unless it is already in it.
func joinMessages(message, cause string) string {
	switch {
	case message == "":
		return cause
	case strings.Contains(message, cause):
		return message
	default:
		return message + "; " + cause
	}
}
