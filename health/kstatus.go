package health

import (
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scheduleWindow is how long kstatus lets a pod be unschedulable before it calls it Failed.
const scheduleWindow = 15 * time.Second

// KStatus is the verdict of kstatus and its message, as kubernetes-sigs/cli-utils gives it. Two things differ from the
// library in use, a fork: a suspended Job is Current as in the original, and a pod that cannot be scheduled is
// InProgress, because how long it waits is a matter of the clock (see At).
func KStatus(obj *unstructured.Unstructured) (Status, string) {
	return kstatusAt(obj, time.Time{})
}

func kstatusAt(obj *unstructured.Unstructured, now time.Time) (Status, string) {
	if s, message, decided := clockedStatus(obj, now); decided {
		return s, message
	}
	result, err := compute(obj)
	if err != nil {
		return StatusUnknown, err.Error()
	}
	if result.Status == status.InProgressStatus && suspendedJob(obj) {
		return StatusCurrent, "Job is suspended"
	}
	return Status(result.Status), result.Message
}

// compute tries again with the object as a decoder of Kubernetes would have built it: the library insists on int64
// where a plain YAML decoder makes float64.
func compute(obj *unstructured.Unstructured) (*status.Result, error) {
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

// clockedStatus answers for the one case in which the library would read the clock.
func clockedStatus(obj *unstructured.Unstructured, now time.Time) (Status, string, bool) {
	if obj.GetKind() != "Pod" || obj.GetDeletionTimestamp() != nil || text(obj, "status", "phase") != "Pending" {
		return "", "", false
	}
	c, ok := conditionOf(obj, "PodScheduled")
	if !ok || c.status != "False" || c.reason != "Unschedulable" {
		return "", "", false
	}
	for _, kind := range []string{"Reconciling", "Stalled"} {
		if standard, ok := conditionOf(obj, kind); ok && standard.status == "True" {
			return "", "", false
		}
	}
	if !now.IsZero() && now.Sub(obj.GetCreationTimestamp().Time) >= scheduleWindow {
		return StatusFailed, "Pod could not be scheduled", true
	}
	return StatusInProgress, "Pod has not been scheduled", true
}

func suspendedJob(obj *unstructured.Unstructured) bool {
	if gvk := obj.GroupVersionKind(); gvk.Group != "batch" || gvk.Kind != "Job" || !flag(obj, "spec", "suspend") {
		return false
	}
	c, ok := conditionOf(obj, "Suspended")
	return ok && c.status == "True"
}
