// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"k8s.io/apimachinery/pkg/util/duration"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/plan"
)

// treeNode is a line of the tree with its children.
type treeNode struct {
	text     string
	children []treeNode
}

func (b treeNode) print(w io.Writer, indent string) {
	for i, child := range b.children {
		here, below := "├─ ", "│  "
		if i == len(b.children)-1 {
			here, below = "└─ ", "   "
		}
		fmt.Fprintf(w, "%s%s%s\n", indent, here, child.text)
		child.print(w, indent+below)
	}
}

// Print prints the tree and its age.
func Print(w io.Writer, s landscape.Status, colored bool) {
	v := statusPrinter{status: s, colored: colored}
	root := treeNode{}
	for _, o := range s.Owners {
		root.children = append(root.children, v.ownerBranch(o))
	}
	root.children = append(root.children, v.undeclaredBranches()...)
	root.children = append(root.children, v.handedOverBranches()...)
	fmt.Fprintf(w, "Landscape %s: %s\n", printable.Line(s.Landscape), v.readyText(s.Ready))
	if s.Invalid != "" {
		fmt.Fprintln(w, "  "+v.conditionMark(gardencorev1beta1.ConditionFalse)+" "+oneLine(s.Invalid))
	}
	v.printObject(w)
	root.print(w, "")
	for _, line := range reconcileHints(s) {
		fmt.Fprintln(w, line)
	}
}

// statusPrinter prints one status.
type statusPrinter struct {
	status  landscape.Status
	colored bool
}

// undeclaredBranches lists objects that Git no longer declares.
func (v statusPrinter) undeclaredBranches() []treeNode {
	if len(v.status.Undeclared) == 0 {
		return nil
	}
	out := treeNode{text: v.conditionMark(gardencorev1beta1.ConditionProgressing) + " no longer in Git"}
	for _, u := range v.status.Undeclared {
		text := fmt.Sprintf("%s on %s: ", u.Object, u.Cluster)
		if u.HoldReason != "" {
			text += "held: " + u.HoldReason
		} else {
			text += "the next apply deletes it, if the deletion gate allows it"
		}
		out.children = append(out.children, treeNode{text: printable.Line(text)})
	}
	return []treeNode{out}
}

// handedOverBranches lists fields whose values controllers own and Git declares.
func (v statusPrinter) handedOverBranches() []treeNode {
	if len(v.status.HandedOver) == 0 {
		return nil
	}
	out := treeNode{text: "= handed over to controllers, whose values stay"}
	for _, h := range v.status.HandedOver {
		out.children = append(out.children, treeNode{text: oneLine(plan.HandedOverText(h))})
	}
	return []treeNode{out}
}

func (v statusPrinter) ownerBranch(o landscape.OwnerStatus) treeNode {
	if o.Kind == "-" {
		return treeNode{text: v.colorize("✗ ", color.FgRed) + oneLine(o.Error)}
	}
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	out := treeNode{text: printable.Line(fmt.Sprintf("%s %s on %s: ", o.Kind, name, o.Cluster)) + v.stateText(o)}
	add := func(text string, children ...treeNode) {
		out.children = append(out.children, treeNode{text: text, children: children})
	}
	if o.Error != "" {
		add(v.colorize("✗ ", color.FgRed) + oneLine(o.Error))
	}
	for _, text := range o.Rotations {
		add(v.conditionMark(gardencorev1beta1.ConditionProgressing) + " " + oneLine(text))
	}
	for _, c := range o.Conditions {
		add(fmt.Sprintf("%s %-32s %s", v.conditionMark(c.Status), printable.Line(string(c.Type)), oneLine(c.Message)))
	}
	if object := v.status.Object; object != nil && o.Kind == "Seed" && object.Held.ByCluster[o.Name] > 0 {
		count := "1 deletion or recreation is"
		if n := object.Held.ByCluster[o.Name]; n > 1 {
			count = fmt.Sprintf("%d deletions and recreations are", n)
		}
		add(fmt.Sprintf("%s %s held on it until approved: pergola history %s%s", v.conditionMark(gardencorev1beta1.ConditionProgressing), count, printable.Line(object.Namespace+"/"+object.Name), v.status.RuntimeFlags))
	}
	if len(o.Bundles) > 0 {
		add("bundles: "+bundleCounts(o.Bundles), v.bundleBranches(o.Bundles)...)
	}
	for _, shoot := range o.Shoots {
		out.children = append(out.children, v.ownerBranch(shoot))
	}
	return out
}

// judgedText says when the state was determined.
func (v statusPrinter) judgedText(o landscape.OwnerStatus) string {
	switch {
	case o.HealthCheckedAt == nil:
		return ""
	case v.status.Live && o.HealthCheckedAt.Equal(v.status.At):
		return " now"
	}
	return " as of " + v.ageText(*o.HealthCheckedAt)
}

// ageText returns an age relative to the status; clock skew does not make it negative.
func (v statusPrinter) ageText(at time.Time) string {
	return duration.HumanDuration(max(v.status.At.Sub(at), 0)) + " ago"
}

// stateText says whether an owner is ready, if known.
func (v statusPrinter) stateText(o landscape.OwnerStatus) string {
	switch {
	case o.Unreachable != "":
		return v.colorize("unknown", color.FgYellow) + printable.Line(fmt.Sprintf(", because cluster %s cannot be reached", o.Unreachable))
	case o.Missing.State:
		return v.colorize("unknown", color.FgYellow)
	case o.LastOperation == nil:
		return v.readyText(o.Ready) + v.judgedText(o) + ", never reconciled"
	}
	return v.readyText(o.Ready) + v.judgedText(o) + v.operationText(o.LastOperation)
}

func (v statusPrinter) operationText(op *gardencorev1beta1.LastOperation) string {
	text := fmt.Sprintf(", %s %s (%d%%)", op.Type, op.State, op.Progress)
	if !op.LastUpdateTime.IsZero() {
		text += " " + v.ageText(op.LastUpdateTime.Time)
	}
	if op.State != gardencorev1beta1.LastOperationStateSucceeded {
		text += ": " + oneLine(op.Description)
	}
	return printable.Line(text)
}

// stateWord is the printed form of a state of bundles.
type stateWord struct {
	state owner.BundleHealth
	word  string
	mark  gardencorev1beta1.ConditionStatus
}

// stateWords are in the order of the output.
var stateWords = []stateWord{
	{owner.StateHealthy, "healthy", gardencorev1beta1.ConditionTrue},
	{owner.StateProgressing, "healthy, still rolling out", gardencorev1beta1.ConditionProgressing},
	{owner.StateUnhealthy, "applied, not healthy", gardencorev1beta1.ConditionFalse},
	{owner.StateNotApplied, "not applied", gardencorev1beta1.ConditionFalse},
	{owner.StateWaiting, "waiting", gardencorev1beta1.ConditionProgressing},
	{owner.StateUnknown, "unknown", gardencorev1beta1.ConditionUnknown},
	{owner.StateOrphaned, "left over", gardencorev1beta1.ConditionProgressing},
}

func bundleCounts(bundles []owner.BundleState) string {
	var parts []string
	for _, s := range stateWords {
		n := 0
		for _, b := range bundles {
			if b.State == s.state {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.word))
		}
	}
	return strings.Join(parts, "; ")
}

func (v statusPrinter) bundleBranches(bundles []owner.BundleState) []treeNode {
	out := make([]treeNode, 0, len(bundles))
	width := 36
	for _, b := range bundles {
		width = max(width, len(printable.Line(b.Bundle)))
	}
	for _, b := range bundles {
		i := slices.IndexFunc(stateWords, func(s stateWord) bool { return s.state == b.State })
		objects := "objects"
		if b.Objects == 1 {
			objects = "object"
		}
		text := fmt.Sprintf("%s %-*s %3d %-7s on %-8s %s", v.conditionMark(stateWords[i].mark), width, printable.Line(b.Bundle), b.Objects, objects, printable.Line(b.Cluster), stateWords[i].word)
		if b.Message != "" {
			text += ": " + oneLine(b.Message)
		}
		out = append(out, treeNode{text: text})
	}
	return out
}

// reconcileHints name the processes that reconcile, or say how to start one.
func reconcileHints(s landscape.Status) []string {
	keepers := map[string]bool{}
	unkept := false
	var collect func([]landscape.OwnerStatus)
	collect = func(owners []landscape.OwnerStatus) {
		for _, o := range owners {
			unkept = unkept || o.Missing.Reconciler
			if o.Reconciler != "" {
				keepers[o.Reconciler] = true
			}
			collect(o.Shoots)
		}
	}
	collect(s.Owners)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(keepers)) {
		out = append(out, printable.Line(landscape.HolderText(k))+" reconciles it.")
	}
	switch {
	case s.Live:
		out = append(out, "Conditions are judged now; nothing was written.")
	case unkept && s.Object != nil && s.Object.PendingCauses.Operator != nil:
		out = append(out, "Conditions of owners without a reconciler are from the last run (--live judges now).")
	case unkept && s.Invalid != "":
		out = append(out, "Owners without a reconciler here have the conditions of the last run.")
	case unkept && len(keepers) == 0:
		out = append(out, "No process reconciles it: conditions are from the last run. `pergola status --live` judges now, `pergola apply --watch` keeps them up to date.")
	case unkept:
		out = append(out, "No process reconciles the others: their conditions are from the last run (--live judges now).")
	}
	return out
}

// wholeLine does not cut a text, because its end has the advice.
func wholeLine(s string) string { return printable.Truncate(s, math.MaxInt) }

func oneLine(s string) string { return printable.Truncate(s, 400) }

func (v statusPrinter) readyText(ready bool) string {
	if ready {
		return v.colorize("Ready", color.FgGreen)
	}
	return v.colorize("not ready", color.FgRed)
}

func (v statusPrinter) conditionMark(s gardencorev1beta1.ConditionStatus) string {
	switch s {
	case gardencorev1beta1.ConditionTrue:
		return v.colorize("✓", color.FgGreen)
	case gardencorev1beta1.ConditionFalse:
		return v.colorize("✗", color.FgRed)
	case gardencorev1beta1.ConditionProgressing:
		return v.colorize("…", color.FgYellow)
	}
	return v.colorize("?", color.FgYellow)
}

func (v statusPrinter) colorize(s string, attr color.Attribute) string {
	c := color.New(attr)
	if v.colored {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	return c.Sprint(s)
}
