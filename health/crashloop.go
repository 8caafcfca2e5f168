// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ReasonCrashing is the reason of a Deployment with a container that crashes repeatedly, in the
// kubelet's term.
const ReasonCrashing = "CrashLoopBackOff"

const (
	// minCrashRestarts is the minimum number of restarts of a crashing container. One restart may
	// have a harmless cause: a lost leadership, a peer that did not run yet.
	minCrashRestarts = 2
	// crashResetTime is how long a container has to run until the kubelet resets its back-off
	// (twice the longest one: kubernetes, pkg/kubelet: MaxContainerBackOff, client-go
	// flowcontrol.Backoff).
	crashResetTime = 10 * time.Minute
)

// CanBeCrashing reports whether the pods of an available Deployment are worth reading. Containers
// without a readiness probe are ready while they run, so a crashing one looks healthy in between.
// Such a Deployment became available recently or has an unavailable pod. Only its pods tell whether
// it crashes; see WithPods and At.
func CanBeCrashing(obj *unstructured.Unstructured, now time.Time) bool {
	if !isDeployment(obj) {
		return false
	}
	if rolling, _ := IsDeploymentProgressing(obj); rolling || intOrZero(obj, "status", "unavailableReplicas") > 0 {
		return true
	}
	c, ok := conditionOf(obj, "Available")
	return ok && now.Sub(c.transition) < crashResetTime
}

// LastConditionChange returns the last update or transition of any condition of an object, or the
// zero time.
func LastConditionChange(obj *unstructured.Unstructured) time.Time {
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

// crashFailure is the failure of a Deployment with a repeatedly crashing container. The container
// may run at the moment, and other pods may serve, such as those of the previous revision. The
// failure ends when the container has run for twice as long as before its last crash.
func crashFailure(obj *unstructured.Unstructured, in inputs) *Failure {
	if !in.hasPods || in.now.IsZero() {
		return nil
	}
	for _, pod := range selectPods(obj, in.related.Pods) {
		if pod.DeletionTimestamp != nil || isPodTerminal(pod) {
			continue
		}
		// includes sidecars, which are init containers
		statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		for i := range statuses {
			c := &statuses[i]
			if !isCrashLooping(c, in.now) {
				continue
			}
			f := failf("a container keeps crashing")
			if c.State.Running != nil { // for a waiting container, the cause has the message
				f.Message = fmt.Sprintf("%s: container %q runs, but keeps crashing: %d restart(s), last %s", podName(pod.Name), c.Name, c.RestartCount, describeTermination(&pod, c.Name, c.LastTerminationState.Terminated))
			}
			f.Reason = ReasonCrashing
			return f
		}
	}
	return nil
}

// isCrashLooping reports whether a container crashes repeatedly.
func isCrashLooping(c *corev1.ContainerStatus, now time.Time) bool {
	last := c.LastTerminationState.Terminated
	if last == nil || c.RestartCount < minCrashRestarts {
		return false
	}
	switch {
	case c.State.Waiting != nil:
		return c.State.Waiting.Reason == "CrashLoopBackOff"
	case c.State.Terminated != nil: // the kubelet will restart it
		return true
	case c.State.Running != nil:
		// RestartCount covers the whole life of the pod. A container that ran for long may end
		// once, for example because its node restarted.
		ran := last.FinishedAt.Sub(last.StartedAt.Time)
		return ran < crashResetTime && now.Sub(c.State.Running.StartedAt.Time) < min(2*ran, crashResetTime)
	}
	return false
}
