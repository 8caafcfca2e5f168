// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// waitingOperations returns the pending operations of operations/: texts for the status, texts for
// Events and chats, and how many of them expired.
func waitingOperations(report *landscape.RunReport) (texts, forAnyone []string, ranOut int) {
	for _, w := range report.PendingOperations {
		texts, forAnyone = append(texts, w.String()), append(forAnyone, w.PortableText())
		if w.Expired {
			ranOut++
		}
	}
	return texts, forAnyone, ranOut
}

// executedText names the recorded operations that a sync executed; it is empty for none.
func executedText(j *job, now, before []landscapev1alpha1.OperationRecord) string {
	var out []string
	for _, o := range now {
		known := slices.ContainsFunc(before, func(b landscapev1alpha1.OperationRecord) bool { return b.ID == o.ID })
		// The status may be lost, and recorded times have whole seconds.
		if !known && !o.At.Time.Before(j.reporting.startedAt.Truncate(time.Second)) {
			out = append(out, fmt.Sprintf("operation %s executed: %s of %s", o.ID, o.Operation, o.Object))
		}
	}
	return joinWithLimit(out)
}

// startedOperations are the requested operations of the Garden that a sync started.
func startedOperations(report *landscape.RunReport) (out []string) {
	for _, one := range report.Owners {
		if one.RequestedOperation != nil {
			out = append(out, one.RequestedOperation.String())
		}
	}
	return out
}
