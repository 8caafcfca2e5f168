// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"io"

	"github.com/fatih/color"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/source"
)

// printObject prints the state of the Landscape object above the tree, such as a suspension or a
// failed sync.
func (v statusPrinter) printObject(w io.Writer) {
	if v.status.ObjectUnknown != "" {
		fmt.Fprintf(w, "  %s a suspension or pin of the Landscape in the runtime cluster is unknown: %s\n", v.conditionMark(gardencorev1beta1.ConditionUnknown), oneLine(v.status.ObjectUnknown))
	}
	o := v.status.Object
	if o == nil {
		return
	}
	applied := "no revision was applied completely yet"
	if o.Revision != "" {
		applied = printable.Line(source.ShortRevision(o.Revision)) + " is applied"
	}
	fmt.Fprintf(w, "Synced from Git by Landscape %s: %s\n", printable.Line(o.Namespace+"/"+o.Name), applied)
	for _, line := range v.objectLines(o) {
		fmt.Fprintln(w, "  "+line)
	}
}

func (v statusPrinter) objectLines(o *landscape.ObjectStatus) []string {
	var out []string
	no, yellow := v.conditionMark(gardencorev1beta1.ConditionFalse)+" ", color.FgYellow
	if o.PendingCauses.Operator != nil {
		out = append(out, no+"no operator runs, so nothing is synced: "+printable.Line(o.PendingCauses.Operator.Text(v.status.At)), "  "+landscape.StartOperatorHint("kubectl"+v.status.RuntimeFlags))
	}
	if o.Suspension != nil {
		out = append(out, v.colorize("SUSPENDED", yellow)+landscape.SuspensionText(o.Suspension))
	}
	if p := o.Pin; p != nil {
		out = append(out, v.colorize("PINNED", yellow)+landscape.PinText(p))
	}
	if f := o.FailedSync; f != nil {
		at := f.StartTime
		if f.EndTime != nil {
			at = *f.EndTime
		}
		out = append(out, no+fmt.Sprintf("the last sync failed %s, at revision %s: %s", v.ageText(at.Time), printable.Line(source.ShortRevision(f.Revision)), wholeLine(failureText(o))))
	}
	switch {
	case o.Reason == landscapev1alpha1.ReasonWaiting && o.Suspension == nil:
		mark := no
		if o.Ready {
			mark = v.conditionMark(gardencorev1beta1.ConditionProgressing) + " "
		}
		out = append(out, mark+"a sync waits: "+wholeLine(o.Message))
	case o.Ready, o.PendingCauses.Operator != nil, o.Suspension != nil, o.FailedSync != nil && o.Reason == landscapev1alpha1.ReasonApplyFailed:
	case o.Reason == "":
		out = append(out, no+"the operator has not reconciled it yet")
	case o.Reason == landscapev1alpha1.ReasonSuspended:
		out = append(out, no+"it is no longer suspended, but the operator has not continued yet")
	default:
		out = append(out, no+printable.Line(o.Reason)+": "+wholeLine(o.Message))
	}
	if o.PendingCauses.Operations != "" {
		out = append(out, v.conditionMark(gardencorev1beta1.ConditionProgressing)+" "+wholeLine(o.PendingCauses.Operations))
	}
	if o.PendingCauses.Dependencies != "" {
		out = append(out, v.conditionMark(gardencorev1beta1.ConditionProgressing)+" "+wholeLine(o.PendingCauses.Dependencies))
	}
	if o.PendingCauses.Gardenlets != "" {
		out = append(out, v.conditionMark(gardencorev1beta1.ConditionProgressing)+" "+wholeLine(o.PendingCauses.Gardenlets))
	}
	if o.Held.Count > 0 {
		count := fmt.Sprintf("%d held deletions and recreations wait", o.Held.Count)
		switch {
		case o.Held.Count == 1:
			count = "1 held deletion or recreation waits"
		case o.Held.IsMinimum:
			count = "at least " + count
		}
		out = append(out, v.conditionMark(gardencorev1beta1.ConditionProgressing)+fmt.Sprintf(" %s for approval: pergola history %s%s", count, printable.Line(o.Namespace+"/"+o.Name), v.status.RuntimeFlags))
	}
	return out
}

// failureText returns why the last sync failed: the condition has the full text, the history its
// beginning.
func failureText(o *landscape.ObjectStatus) string {
	if o.Reason == landscapev1alpha1.ReasonApplyFailed {
		return o.Message
	}
	return o.FailedSync.Message
}
