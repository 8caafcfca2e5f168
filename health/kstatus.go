// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unschedulableGrace is how long a pod may be unschedulable until kstatus reports it as Failed.
const unschedulableGrace = 15 * time.Second

// messageJobNotStarted is the library's message about a Job without a start time.
const messageJobNotStarted = "Job not started"

// KStatus returns the status and message of kubernetes-sigs/cli-utils. It differs twice from the
// library in use, a fork. A suspended Job is Current as in the original. A pod that cannot be
// scheduled is InProgress, because the waiting time depends on the clock (see At).
func KStatus(obj *unstructured.Unstructured) (Status, string) {
	return kstatusWithTime(obj, time.Time{})
}

func kstatusWithTime(obj *unstructured.Unstructured, now time.Time) (Status, string) {
	if s, message, decided := podScheduleStatus(obj, now); decided {
		return s, message
	}
	result, err := computeStatus(obj)
	if err != nil {
		return StatusUnknown, err.Error()
	}
	if result.Message == messageJobNotStarted && isJobSuspended(obj) {
		return StatusCurrent, "Job is suspended"
	}
	if result.Message == "" {
		return Status(result.Status), describeCondition(obj)
	}
	return Status(result.Status), result.Message
}

// describeCondition describes a deciding condition without a message.
func describeCondition(obj *unstructured.Unstructured) string {
	for _, kind := range []string{"Reconciling", "Stalled", "NamesAccepted", "Established", "Ready"} {
		c, ok := conditionOf(obj, kind)
		if good := kind != "Reconciling" && kind != "Stalled"; ok && (c.status == "True") != good {
			return fmt.Sprintf("condition %q has status %s: %s", c.kind, c.status, c.cause())
		}
	}
	return "a condition says so"
}

// computeStatus retries with the object as a Kubernetes decoder would have built it: the library
// requires int64 where a plain YAML decoder makes float64.
func computeStatus(obj *unstructured.Unstructured) (*status.Result, error) {
	result, err := status.Compute(obj)
	if err == nil {
		return result, nil
	}
	raw, encodeErr := obj.MarshalJSON()
	if encodeErr != nil {
		return nil, err
	}
	decoded := &unstructured.Unstructured{}
	if decodeErr := decoded.UnmarshalJSON(raw); decodeErr != nil {
		return nil, err
	}
	return status.Compute(decoded)
}

// podScheduleStatus handles the only case in which the library would read the clock.
func podScheduleStatus(obj *unstructured.Unstructured, now time.Time) (Status, string, bool) {
	if obj.GetKind() != "Pod" || obj.GetDeletionTimestamp() != nil || stringAt(obj, "status", "phase") != "Pending" {
		return "", "", false
	}
	c, ok := conditionOf(obj, "PodScheduled")
	if !ok || c.status != "False" || c.reason != "Unschedulable" {
		return "", "", false
	}
	seen, reported := intAt(obj.Object, "status", "observedGeneration")
	if want, ok := intAt(obj.Object, "metadata", "generation"); ok && reported && seen != want {
		return "", "", false
	}
	for _, kind := range []string{"Reconciling", "Stalled"} {
		if standard, ok := conditionOf(obj, kind); ok && standard.status == "True" {
			return "", "", false
		}
	}
	if !now.IsZero() && now.Sub(obj.GetCreationTimestamp().Time) >= unschedulableGrace {
		return StatusFailed, "Pod could not be scheduled", true
	}
	return StatusInProgress, "Pod has not been scheduled", true
}

func isJobSuspended(obj *unstructured.Unstructured) bool {
	if gvk := obj.GroupVersionKind(); gvk.Group != "batch" || gvk.Kind != "Job" || !boolAt(obj, "spec", "suspend") {
		return false
	}
	c, ok := conditionOf(obj, "Suspended")
	return ok && c.status == "True"
}
