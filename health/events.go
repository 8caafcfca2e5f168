package health

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newestFirst sorts events by when they were last seen.
func newestFirst(events []corev1.Event) []corev1.Event {
	out := slices.Clone(events)
	slices.SortStableFunc(out, func(a, b corev1.Event) int { return eventTime(b).Compare(eventTime(a)) })
	return out
}

// eventTime is when the event was last seen. Events of events.k8s.io have a time and a series in
// place of counts.
func eventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}

// isAbout compares UIDs where both are known: an event may be of a namesake that is gone.
func isAbout(e corev1.Event, kind, namespace, name string, uid types.UID) bool {
	ref := e.InvolvedObject
	if ref.Kind != kind || ref.Namespace != namespace || ref.Name != name {
		return false
	}
	return uid == "" || ref.UID == "" || ref.UID == uid
}

// podEvent is the event that says most of a pod whose own status says little. What names a missing
// object goes before what only says that waiting for it took too long.
func podEvent(events []corev1.Event, pod *corev1.Pod, reasons ...string) (corev1.Event, bool) {
	var found *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Type != corev1.EventTypeWarning || !slices.Contains(reasons, e.Reason) || !isAbout(*e, "Pod", pod.Namespace, pod.Name, pod.UID) {
			continue
		}
		if strings.Contains(e.Message, "not found") {
			return *e, true
		}
		if found == nil || waitedInVain(found.Message) && !waitedInVain(e.Message) {
			found = e
		}
	}
	if found == nil {
		return corev1.Event{}, false
	}
	return *found, true
}

func waitedInVain(message string) bool {
	return strings.HasPrefix(message, "Unable to attach or mount volumes")
}

// claimEvent is the newest event about how the volume of a claim is come by. Some that tell of a
// failure are of type Normal.
func claimEvent(events []corev1.Event, namespace, name string, uid types.UID) (corev1.Event, bool) {
	for _, e := range events {
		switch e.Reason {
		case "ProvisioningFailed", "FailedBinding", "VolumeMismatch", "WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning",
			"ProvisioningCleanupFailed", "ClaimLost", "ClaimMisbound":
			if isAbout(e, "PersistentVolumeClaim", namespace, name, uid) {
				return e, true
			}
		}
	}
	return corev1.Event{}, false
}
