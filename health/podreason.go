package health

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trouble is what keeps one pod from being ready. Higher weights win.
type trouble struct {
	weight          int
	reason, message string
}

const (
	weightNotReady = iota + 1
	weightPending
	weightTerminated
	weightFailed
	weightUnschedulable
	weightWaiting
)

// maxKubeletMessage bounds what is taken over from the kubelet, in bytes.
const maxKubeletMessage = 300

// PodReason names what keeps pods from working: the reason as the cluster has it (ImagePullBackOff, CrashLoopBackOff,
// Unschedulable, OOMKilled, Evicted, Error …) and a sentence with pod and container. Of several troubles the one
// furthest from healing is named, of equal ones that of the first pod by name; pods on their way out do not count.
// Both are empty when no pod is in trouble.
//
// Termination messages are left out: they can hold the container's log, hence anything.
func PodReason(pods []corev1.Pod) (reason, message string) {
	var worst trouble
	var name string
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		t := podTrouble(pod)
		if t.weight > worst.weight || t.weight > 0 && t.weight == worst.weight && pod.Name < name {
			worst, name = t, pod.Name
		}
	}
	if worst.weight == 0 {
		return "", ""
	}
	return worst.reason, fmt.Sprintf("pod %q: %s", name, worst.message)
}

// withPodReason adds the cause found in the pods of a workload to the message.
func withPodReason(obj *unstructured.Unstructured, pods []corev1.Pod, message string) string {
	_, cause := PodReason(selectPods(obj, pods))
	switch {
	case cause == "":
		return message
	case message == "":
		return cause
	default:
		return message + "; " + cause
	}
}

func podTrouble(pod *corev1.Pod) trouble {
	if pod.Status.Phase == corev1.PodSucceeded {
		return trouble{}
	}
	worst := podConditionTrouble(pod)
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if t := containerTrouble(&list[i], pod.Status.Phase); t.weight > worst.weight {
				worst = t
			}
		}
	}
	return worst
}

func podConditionTrouble(pod *corev1.Pod) trouble {
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return trouble{weightFailed, pod.Status.Reason, sentence(pod.Status.Reason, pod.Status.Message)}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return trouble{weightUnschedulable, or(c.Reason, corev1.PodReasonUnschedulable), sentence(or(c.Reason, corev1.PodReasonUnschedulable), c.Message)}
		}
	}
	switch pod.Status.Phase {
	case corev1.PodFailed:
		// A container that ended in error says more.
		return trouble{weightPending, "Failed", sentence("Failed", pod.Status.Message)}
	case corev1.PodPending, "":
		return trouble{weightPending, "Pending", "Pending: its containers have not started yet"}
	case corev1.PodRunning:
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
				return trouble{weightNotReady, or(c.Reason, "NotReady"), sentence(or(c.Reason, "NotReady"), c.Message)}
			}
		}
	}
	return trouble{}
}

func containerTrouble(c *corev1.ContainerStatus, phase corev1.PodPhase) trouble {
	where := fmt.Sprintf("container %q: ", c.Name)
	if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
		message := where + sentence(w.Reason, w.Message)
		if last := c.LastTerminationState.Terminated; last != nil && w.Reason == "CrashLoopBackOff" {
			message = fmt.Sprintf("%sCrashLoopBackOff after %d restart(s), last %s", where, c.RestartCount, ended(last))
		}
		return trouble{weightWaiting, w.Reason, message}
	}
	if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
		return trouble{weightTerminated, or(t.Reason, "Error"), where + ended(t)}
	}
	// A container that was killed for memory and runs again is in trouble as long as it is not ready.
	if last := c.LastTerminationState.Terminated; last != nil && !c.Ready && last.ExitCode != 0 && phase == corev1.PodRunning {
		return trouble{weightTerminated, or(last.Reason, "Error"), fmt.Sprintf("%snot ready after %d restart(s), last %s", where, c.RestartCount, ended(last))}
	}
	return trouble{}
}

func ended(t *corev1.ContainerStateTerminated) string {
	if t.Signal != 0 {
		return fmt.Sprintf("%s (signal %d)", or(t.Reason, "Error"), t.Signal)
	}
	return fmt.Sprintf("%s (exit code %d)", or(t.Reason, "Error"), t.ExitCode)
}

func sentence(reason, message string) string {
	message = strings.TrimSpace(message)
	if len(message) > maxKubeletMessage {
		message = strings.ToValidUTF8(message[:maxKubeletMessage], "") + "…"
	}
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
