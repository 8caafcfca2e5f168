package health

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func podName(name string) string { return fmt.Sprintf("pod %q", name) }

// podTrouble returns why a pod is not ready. Its containers say more than its conditions. If both
// only report waiting, it checks volumes, claims and events.
func podTrouble(pod *corev1.Pod, claims []corev1.PersistentVolumeClaim, events []corev1.Event) trouble {
	if pod.Status.Phase == corev1.PodSucceeded {
		return trouble{}
	}
	worst := podConditionTrouble(pod)
	heavier := func(t trouble) {
		if t.weight > worst.weight {
			worst = t
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		heavier(containerTrouble(pod, c))
		heavier(initializing(pod, c))
	}
	for i := range pod.Status.ContainerStatuses {
		heavier(containerTrouble(pod, &pod.Status.ContainerStatuses[i]))
	}
	switch {
	case worst.weight == weightPending || worst.weight == weightUnschedulable:
		heavier(claimTrouble(pod, claims, events))
		heavier(startTrouble(pod, events))
	case worst.weight == weightNotReady:
		heavier(probeTrouble(pod, events))
	}
	if worst.weight > 0 {
		worst.object = strings.TrimSuffix(podName(pod.Name)+": "+worst.object, ": ")
	}
	return worst
}

func podConditionTrouble(pod *corev1.Pod) trouble {
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return trouble{weight: weightFailed, reason: pod.Status.Reason, message: sentence(pod.Status.Reason, pod.Status.Message)}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			reason := or(c.Reason, corev1.PodReasonUnschedulable)
			return trouble{weight: weightUnschedulable, reason: reason, message: sentence(reason, c.Message)}
		}
	}
	switch pod.Status.Phase {
	case corev1.PodFailed:
		// A container that failed says more.
		return trouble{weight: weightPending, reason: "Failed", message: sentence("Failed", pod.Status.Message)}
	case corev1.PodPending, "":
		return trouble{weight: weightPending, reason: "Pending", message: "Pending: its containers have not started yet"}
	case corev1.PodRunning:
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && c.Reason != "PodCompleted" {
				reason := or(c.Reason, "NotReady")
				return trouble{weight: weightNotReady, reason: reason, message: sentence(reason, c.Message)}
			}
		}
	}
	return trouble{}
}

// initializing returns the init container that a pending pod waits for. A sidecar is ready once it
// has started.
func initializing(pod *corev1.Pod, c *corev1.ContainerStatus) trouble {
	if pod.Status.Phase != corev1.PodPending || c.State.Running == nil || c.Ready {
		return trouble{}
	}
	// It replaces Pending, which has the same weight.
	return trouble{weight: weightProbe, reason: "Initializing", message: fmt.Sprintf("Initializing: init container %q has not ended yet", c.Name)}
}

func containerTrouble(pod *corev1.Pod, c *corev1.ContainerStatus) trouble {
	where := fmt.Sprintf("container %q: ", c.Name)
	if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
		message := where + sentence(w.Reason, w.Message)
		if last := c.LastTerminationState.Terminated; last != nil && w.Reason == "CrashLoopBackOff" {
			message = fmt.Sprintf("%sCrashLoopBackOff after %d restart(s), last %s", where, c.RestartCount, ended(pod, c.Name, last))
		}
		if isImageTrouble(w.Reason) && !strings.Contains(message, imageOf(pod, c)) {
			message += fmt.Sprintf(" (image %q)", imageOf(pod, c))
		}
		return trouble{weight: weightWaiting, reason: w.Reason, message: message}
	}
	if t := c.State.Terminated; t != nil && (t.ExitCode != 0 || t.Signal != 0) {
		return trouble{weight: weightTerminated, reason: or(t.Reason, "Error"), message: where + ended(pod, c.Name, t)}
	}
	// A container that was killed for memory and runs again is in trouble until it is ready.
	if last := c.LastTerminationState.Terminated; last != nil && !c.Ready && last.ExitCode != 0 && pod.Status.Phase == corev1.PodRunning {
		return trouble{weight: weightTerminated, reason: or(last.Reason, "Error"),
			message: fmt.Sprintf("%snot ready after %d restart(s), last %s", where, c.RestartCount, ended(pod, c.Name, last))}
	}
	return trouble{}
}

func isImageTrouble(reason string) bool {
	switch reason {
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
		return true
	}
	return false
}

// imageOf returns the image of the spec; the status may spell it differently.
func imageOf(pod *corev1.Pod, c *corev1.ContainerStatus) string {
	if spec := containerSpec(pod, c.Name); spec != nil && spec.Image != "" {
		return spec.Image
	}
	return c.Image
}

func containerSpec(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// ended describes how a container ended, with its last words. These come only from the file that
// the program writes: the other policy passes the log, which may have any content.
func ended(pod *corev1.Pod, name string, t *corev1.ContainerStateTerminated) string {
	out := fmt.Sprintf("%s (exit code %d)", or(t.Reason, "Error"), t.ExitCode)
	if t.Signal != 0 {
		out = fmt.Sprintf("%s (signal %d)", or(t.Reason, "Error"), t.Signal)
	}
	if spec := containerSpec(pod, name); spec != nil && spec.TerminationMessagePolicy == corev1.TerminationMessageReadFile {
		if words := presentable(lastWords(t.Message)); words != "" {
			out += ": " + words
		}
	}
	return out
}

// claimTrouble returns why a claim of a waiting pod is not bound.
func claimTrouble(pod *corev1.Pod, claims []corev1.PersistentVolumeClaim, events []corev1.Event) trouble {
	for _, v := range pod.Spec.Volumes {
		var name string
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name
		default:
			continue
		}
		for i := range claims {
			claim := &claims[i]
			if claim.Name != name || claim.Namespace != pod.Namespace || claim.Status.Phase == corev1.ClaimBound {
				continue
			}
			if e, ok := claimEvent(events, claim.Namespace, claim.Name, claim.UID); ok && !strings.HasPrefix(e.Reason, "WaitFor") {
				return trouble{weight: weightClaim, object: fmt.Sprintf("claim %q", name), reason: e.Reason, message: sentence(e.Reason, e.Message)}
			}
			if claim.Status.Phase == corev1.ClaimLost {
				return trouble{weight: weightClaim, object: fmt.Sprintf("claim %q", name), reason: "ClaimLost", message: "ClaimLost: the claim has lost its volume"}
			}
		}
	}
	return trouble{}
}

// startTrouble returns why the node cannot start a scheduled pod.
func startTrouble(pod *corev1.Pod, events []corev1.Event) trouble {
	e, ok := podEvent(events, pod, "FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "FailedCreatePodContainer",
		"NetworkNotReady", "FailedPrepareDynamicResources", "UnexpectedAdmissionError", "FailedNodeAllocatableEnforcement")
	if !ok || isUnscheduled(pod) {
		return trouble{}
	}
	return trouble{weight: weightMount, reason: e.Reason, message: sentence(e.Reason, e.Message)}
}

func isUnscheduled(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse
		}
	}
	return false
}

// probeTrouble returns why a running pod is not ready.
func probeTrouble(pod *corev1.Pod, events []corev1.Event) trouble {
	if e, ok := podEvent(events, pod, "Unhealthy", "ProbeError"); ok {
		return trouble{weight: weightProbe, reason: e.Reason, message: sentence(e.Reason, e.Message)}
	}
	return trouble{}
}
