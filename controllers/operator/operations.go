package operator

import (
	"fmt"
	"slices"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// waitingOperations are those of operations/ that nothing came of yet, as the status has them and
// as an Event or a chat has them, and how many of them nothing ever does: their time was over.
func waitingOperations(report *landscape.Report) (texts, forAnyone []string, ranOut int) {
	for _, w := range report.Waiting {
		texts, forAnyone = append(texts, w.String()), append(forAnyone, w.ForAnyone())
		if w.Expired {
			ranOut++
		}
	}
	return texts, forAnyone, ranOut
}

// executedBy says which operations a sync has executed, of all that are recorded; empty for none.
func executedBy(j *job, now, before []landscapev1alpha1.OperationRecord) string {
	var out []string
	for _, o := range now {
		known := slices.ContainsFunc(before, func(b landscapev1alpha1.OperationRecord) bool { return b.ID == o.ID })
		// the status may have been lost; what is recorded has whole seconds
		if !known && !o.At.Time.Before(j.told.began.Truncate(time.Second)) {
			out = append(out, fmt.Sprintf("operation %s executed: %s of %s", o.ID, o.Operation, o.Object))
		}
	}
	return listed(out)
}

// takenUp are the operations that a sync has begun because somebody asked the Garden for them.
func takenUp(report *landscape.Report) (out []string) {
	for _, one := range report.Owners {
		if one.TakenUp != nil {
			out = append(out, one.TakenUp.String())
		}
	}
	return out
}
