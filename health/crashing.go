package health

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ReasonCrashing is the reason of a Deployment one of whose containers ends again and again (the
// kubelet's word for what it does about it).
const ReasonCrashing = "CrashLoopBackOff"

const (
	// crashesTell is how many restarts a container has behind it at least before it counts as
	// crashing. One may be anybody's: a lost leadership, a neighbour that was not there yet.
	crashesTell = 2
	// crashesForgotten is how long a container has to run for the kubelet to start with the
	// shortest back-off again (twice the longest one: kubernetes, pkg/kubelet: MaxContainerBackOff,
	// client-go flowcontrol.Backoff).
	crashesForgotten = 10 * time.Minute
)

// MayBeCrashing tells whether the pods of a Deployment that is available are worth reading:
// containers that have no readiness probe are ready whenever they run, so that one which ends again
// and again looks well in between. Such a Deployment has become available lately, or one of its
// pods is not. Only pods tell the rest, see WithPods and At.
func MayBeCrashing(obj *unstructured.Unstructured, now time.Time) bool {
	if !isDeployment(obj) {
		return false
	}
	if rolling, _ := IsDeploymentProgressing(obj); rolling || number(obj, "status", "unavailableReplicas") > 0 {
		return true
	}
	c, ok := conditionOf(obj, "Available")
	return ok && now.Sub(c.transition) < crashesForgotten
}

// LastChange is when one of the conditions of an object was updated or changed last; zero where
// none says.
func LastChange(obj *unstructured.Unstructured) time.Time {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var last time.Time
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		for _, field := range []string{"lastUpdateTime", "lastTransitionTime"} {
			text, _ := fields[field].(string)
			if at, err := time.Parse(time.RFC3339, text); err == nil && at.After(last) {
				last = at
			}
		}
	}
	return last
}

// crashing is the failure of a Deployment one of whose containers ends again and again, although it
// runs at the moment or others serve: during a roll-out the former revision does. It is over when
// the container has run for twice as long as the last time.
func crashing(obj *unstructured.Unstructured, in inputs) *Failure {
	if !in.havePods || in.now.IsZero() {
		return nil
	}
	for _, pod := range selectPods(obj, in.around.Pods) {
		if pod.DeletionTimestamp != nil || isPodTerminal(pod) {
			continue
		}
		// sidecars are among the former
		statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		for i := range statuses {
			c := &statuses[i]
			if !keepsEnding(c, in.now) {
				continue
			}
			f := failf("a container ends again and again")
			if c.State.Running != nil { // of one that waits to be started again, the cause tells
				f.Message = fmt.Sprintf("%s: container %q runs, but ends again and again: %d restart(s), last %s", podName(pod.Name), c.Name, c.RestartCount, ended(&pod, c.Name, c.LastTerminationState.Terminated))
			}
			f.Reason = ReasonCrashing
			return f
		}
	}
	return nil
}

// keepsEnding tells whether a container ends again and again.
func keepsEnding(c *corev1.ContainerStatus, now time.Time) bool {
	last := c.LastTerminationState.Terminated
	if last == nil || c.RestartCount < crashesTell {
		return false
	}
	switch {
	case c.State.Waiting != nil:
		return c.State.Waiting.Reason == "CrashLoopBackOff"
	case c.State.Terminated != nil: // it will be
		return true
	case c.State.Running != nil:
		// The count is that of a whole life: who ran well before may end once, be it for a node
		// that was started anew.
		ran := last.FinishedAt.Sub(last.StartedAt.Time)
		return ran < crashesForgotten && now.Sub(c.State.Running.StartedAt.Time) < min(2*ran, crashesForgotten)
	}
	return false
}
