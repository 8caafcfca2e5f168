package operator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// waitingOperations are those of operations/ that nothing came of yet, and how many of them nothing ever does: their time was over.
func waitingOperations(report *landscape.Report) (texts []string, ranOut int) {
	for _, w := range report.Waiting {
		texts = append(texts, w.String())
		if w.Expired {
			ranOut++
		}
	}
	return texts, ranOut
}

// withoutCommands says the same to those who read it in another place than the cluster of the objects, such as in an Event or a chat: a command
// that names no cluster goes to whatever one they use.
func withoutCommands(texts []string) []string {
	out := slices.Clone(texts)
	for i, text := range out {
		if before, _, found := strings.Cut(text, "; to withdraw it"); found {
			out[i] = before + "; to withdraw it, take its annotation gardener.cloud/operation away"
		}
	}
	return out
}

// executedBy says which operations a sync has executed, of all that are recorded; empty for none.
func executedBy(j *job, now, before []landscapev1alpha1.OperationRecord) string {
	var out []string
	for _, o := range now {
		known := slices.ContainsFunc(before, func(b landscapev1alpha1.OperationRecord) bool { return b.ID == o.ID })
		if !known && !o.At.Time.Before(j.began.Truncate(time.Second)) { // the status may have been lost; what is recorded has whole seconds
			out = append(out, fmt.Sprintf("operation %s executed: %s of %s", o.ID, o.Operation, o.Object))
		}
	}
	return listed(out)
}

// takenUp are the operations that a sync has begun because somebody asked the Garden for them.
func takenUp(report *landscape.Report) string {
	var out []string
	for _, one := range report.Owners {
		if one.TakenUp != nil {
			out = append(out, one.TakenUp.String())
		}
	}
	return listed(out)
}
