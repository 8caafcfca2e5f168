// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newestFirst sorts events by their last occurrence.
func newestFirst(events []corev1.Event) []corev1.Event {
	out := slices.Clone(events)
	slices.SortStableFunc(out, func(a, b corev1.Event) int { return eventTime(b).Compare(eventTime(a)) })
	return out
}

// eventTime returns the last occurrence of an event. Events of events.k8s.io have a time and a
// series instead of counts.
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

// isEventOf compares UIDs if known: an event may be about a deleted object of the same name.
func isEventOf(e corev1.Event, kind, namespace, name string, uid types.UID) bool {
	ref := e.InvolvedObject
	if ref.Kind != kind || ref.Namespace != namespace || ref.Name != name {
		return false
	}
	return uid == "" || ref.UID == "" || ref.UID == uid
}

// podEvent returns the most informative event about a pod. Events that name a missing object
// precede events about a timeout.
func podEvent(events []corev1.Event, pod *corev1.Pod, reasons ...string) (corev1.Event, bool) {
	var found *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Type != corev1.EventTypeWarning || !slices.Contains(reasons, e.Reason) || !isEventOf(*e, "Pod", pod.Namespace, pod.Name, pod.UID) {
			continue
		}
		if strings.Contains(e.Message, "not found") {
			return *e, true
		}
		if found == nil || isTimeoutMessage(found.Message) && !isTimeoutMessage(e.Message) {
			found = e
		}
	}
	if found == nil {
		return corev1.Event{}, false
	}
	return *found, true
}

func isTimeoutMessage(message string) bool {
	return strings.HasPrefix(message, "Unable to attach or mount volumes")
}

// claimEvent returns the newest event about the provisioning of a claim. Some failures are of type
// Normal.
func claimEvent(events []corev1.Event, namespace, name string, uid types.UID) (corev1.Event, bool) {
	for _, e := range events {
		switch e.Reason {
		case "ProvisioningFailed", "FailedBinding", "VolumeMismatch", "WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning",
			"ProvisioningCleanupFailed", "ClaimLost", "ClaimMisbound":
			if isEventOf(e, "PersistentVolumeClaim", namespace, name, uid) {
				return e, true
			}
		}
	}
	return corev1.Event{}, false
}
