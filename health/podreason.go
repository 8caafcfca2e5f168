// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func podName(name string) string { return fmt.Sprintf("pod %q", name) }

// findPodCause returns why a pod is not ready. Its containers say more than its conditions. If both
// only report waiting, it checks volumes, claims and events.
func findPodCause(pod *corev1.Pod, claims []corev1.PersistentVolumeClaim, events []corev1.Event) causeCandidate {
	if pod.Status.Phase == corev1.PodSucceeded {
		return causeCandidate{}
	}
	worst := findPodConditionCause(pod)
	heavier := func(t causeCandidate) {
		if t.weight > worst.weight {
			worst = t
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		heavier(findContainerCause(pod, c))
		heavier(findInitContainerCause(pod, c))
	}
	for i := range pod.Status.ContainerStatuses {
		heavier(findContainerCause(pod, &pod.Status.ContainerStatuses[i]))
	}
	switch {
	case worst.weight == weightPending || worst.weight == weightUnschedulable:
		heavier(findClaimCause(pod, claims, events))
		heavier(findStartCause(pod, events))
	case worst.weight == weightNotReady:
		heavier(findProbeCause(pod, events))
	}
	if worst.weight > 0 {
		worst.object = strings.TrimSuffix(podName(pod.Name)+": "+worst.object, ": ")
	}
	return worst
}

func findPodConditionCause(pod *corev1.Pod) causeCandidate {
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return causeCandidate{weight: weightFailed, reason: pod.Status.Reason, message: joinReason(pod.Status.Reason, pod.Status.Message)}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			reason := orDefault(c.Reason, corev1.PodReasonUnschedulable)
			return causeCandidate{weight: weightUnschedulable, reason: reason, message: joinReason(reason, c.Message)}
		}
	}
	switch pod.Status.Phase {
	case corev1.PodFailed:
		// A container that failed says more.
		return causeCandidate{weight: weightPending, reason: "Failed", message: joinReason("Failed", pod.Status.Message)}
	case corev1.PodPending, "":
		return causeCandidate{weight: weightPending, reason: "Pending", message: "Pending: its containers have not started yet"}
	case corev1.PodRunning:
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && c.Reason != "PodCompleted" {
				reason := orDefault(c.Reason, "NotReady")
				return causeCandidate{weight: weightNotReady, reason: reason, message: joinReason(reason, c.Message)}
			}
		}
	}
	return causeCandidate{}
}

// findInitContainerCause returns the init container that a pending pod waits for. A sidecar is
// ready once it has started.
func findInitContainerCause(pod *corev1.Pod, c *corev1.ContainerStatus) causeCandidate {
	if pod.Status.Phase != corev1.PodPending || c.State.Running == nil || c.Ready {
		return causeCandidate{}
	}
	// It replaces Pending, which has the same weight.
	return causeCandidate{weight: weightProbe, reason: "Initializing", message: fmt.Sprintf("Initializing: init container %q has not ended yet", c.Name)}
}

func findContainerCause(pod *corev1.Pod, c *corev1.ContainerStatus) causeCandidate {
	where := fmt.Sprintf("container %q: ", c.Name)
	if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
		message := where + joinReason(w.Reason, w.Message)
		if last := c.LastTerminationState.Terminated; last != nil && w.Reason == "CrashLoopBackOff" {
			message = fmt.Sprintf("%sCrashLoopBackOff after %d restart(s), last %s", where, c.RestartCount, describeTermination(pod, c.Name, last))
		}
		if isImageReason(w.Reason) && !strings.Contains(message, imageOf(pod, c)) {
			message += fmt.Sprintf(" (image %q)", imageOf(pod, c))
		}
		return causeCandidate{weight: weightWaiting, reason: w.Reason, message: message}
	}
	if t := c.State.Terminated; t != nil && (t.ExitCode != 0 || t.Signal != 0) {
		return causeCandidate{weight: weightTerminated, reason: orDefault(t.Reason, "Error"), message: where + describeTermination(pod, c.Name, t)}
	}
	// A container that was killed for memory and runs again is in trouble until it is ready.
	if last := c.LastTerminationState.Terminated; last != nil && !c.Ready && last.ExitCode != 0 && pod.Status.Phase == corev1.PodRunning {
		return causeCandidate{weight: weightTerminated, reason: orDefault(last.Reason, "Error"),
			message: fmt.Sprintf("%snot ready after %d restart(s), last %s", where, c.RestartCount, describeTermination(pod, c.Name, last))}
	}
	return causeCandidate{}
}

func isImageReason(reason string) bool {
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

// describeTermination describes how a container ended, with its last words. These come only from
// the file that the program writes: the other policy passes the log, which may have any content.
func describeTermination(pod *corev1.Pod, name string, t *corev1.ContainerStateTerminated) string {
	out := fmt.Sprintf("%s (exit code %d)", orDefault(t.Reason, "Error"), t.ExitCode)
	if t.Signal != 0 {
		out = fmt.Sprintf("%s (signal %d)", orDefault(t.Reason, "Error"), t.Signal)
	}
	if spec := containerSpec(pod, name); spec != nil && spec.TerminationMessagePolicy == corev1.TerminationMessageReadFile {
		if words := toSafeLine(terminationCause(t.Message)); words != "" {
			out += ": " + words
		}
	}
	return out
}

// findClaimCause returns why a claim of a waiting pod is not bound.
func findClaimCause(pod *corev1.Pod, claims []corev1.PersistentVolumeClaim, events []corev1.Event) causeCandidate {
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
				return causeCandidate{weight: weightClaim, object: fmt.Sprintf("claim %q", name), reason: e.Reason, message: joinReason(e.Reason, e.Message)}
			}
			if claim.Status.Phase == corev1.ClaimLost {
				return causeCandidate{weight: weightClaim, object: fmt.Sprintf("claim %q", name), reason: "ClaimLost", message: "ClaimLost: the claim has lost its volume"}
			}
		}
	}
	return causeCandidate{}
}

// findStartCause returns why the node cannot start a scheduled pod.
func findStartCause(pod *corev1.Pod, events []corev1.Event) causeCandidate {
	e, ok := podEvent(events, pod, "FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "FailedCreatePodContainer",
		"NetworkNotReady", "FailedPrepareDynamicResources", "UnexpectedAdmissionError", "FailedNodeAllocatableEnforcement")
	if !ok || isUnscheduled(pod) {
		return causeCandidate{}
	}
	return causeCandidate{weight: weightMount, reason: e.Reason, message: joinReason(e.Reason, e.Message)}
}

func isUnscheduled(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse
		}
	}
	return false
}

// findProbeCause returns why a running pod is not ready.
func findProbeCause(pod *corev1.Pod, events []corev1.Event) causeCandidate {
	if e, ok := podEvent(events, pod, "Unhealthy", "ProbeError"); ok {
		return causeCandidate{weight: weightProbe, reason: e.Reason, message: joinReason(e.Reason, e.Message)}
	}
	return causeCandidate{}
}
