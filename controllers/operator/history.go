// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// maxHistoryRecords is the maximum length of status.history.
const maxHistoryRecords = 20

// prependRecord returns the history with a new sync first.
func prependRecord(history []landscapev1alpha1.SyncRecord, r landscapev1alpha1.SyncRecord) []landscapev1alpha1.SyncRecord {
	out := append([]landscapev1alpha1.SyncRecord{r}, history...)
	return out[:min(len(out), maxHistoryRecords)]
}

// closeRecord closes the newest record if it is open.
func closeRecord(history []landscapev1alpha1.SyncRecord, at time.Time, r landscapev1alpha1.SyncRecord) {
	if len(history) == 0 || history[0].EndTime != nil {
		return
	}
	now := metav1.NewTime(at)
	h := &history[0]
	h.EndTime, h.Result, h.Message, h.Changed, h.Approvals, h.TakenUp = &now, r.Result, truncateMessage(r.Message), r.Changed, r.Approvals, r.TakenUp
}

// matchLastFailure reports whether the newest attempt of a revision failed with the same message.
// It skips syncs that only maintained another revision. With replace, a new message overwrites the
// existing record's message, which stays the only record.
func matchLastFailure(history []landscapev1alpha1.SyncRecord, r landscapev1alpha1.SyncRecord, message string, replace bool) (same, recorded bool) {
	for i := range history {
		h := &history[i]
		switch {
		case h.Revision != r.Revision && h.Trigger != triggerCommit && h.Trigger != triggerPin:
			continue
		case h.Revision != r.Revision || h.Result != landscapev1alpha1.SyncFailed || h.EndTime == nil:
			return false, false
		case h.Message == truncateMessage(message):
			return true, true
		case replace:
			h.Message, h.EndTime = truncateMessage(message), r.StartTime.DeepCopy()
			return false, true
		}
		return false, false
	}
	return false, false
}

// truncateMessage limits the size of the status.
func truncateMessage(message string) string {
	const most = 1024
	if len(message) <= most {
		return message
	}
	cut := most
	for cut > 0 && message[cut]&0xC0 == 0x80 { // not within a character
		cut--
	}
	return message[:cut] + "…"
}
