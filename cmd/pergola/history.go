// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/operator"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source"
)

func newHistory() *cobra.Command {
	var object objectFlags
	var output string
	cmd := &cobra.Command{
		Use:   "history LANDSCAPE",
		Short: "Show the last syncs of a Landscape",
		Long: `Shows the last 20 syncs that did something: trigger, commit, author, result and duration. TOOK is
the time of the operator, without the time of gardenlets on their seeds. A sync also lists the
operations that were requested on the Garden, with the requesters.

Other lines show executed operations of files in operations/, and a sync that waits for a window.
They list held deletions, also on seeds, with the ids that approve them. The output also reports
that no operator runs, or that the source cannot be read.

Exit code 1: a deletion is held, the last sync failed (also on a seed), or the source cannot be
read.`,
		Example: `  pergola history production
  pergola history production -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			handle, err := object.landscapeClient(args[0])
			if err != nil {
				return err
			}
			l, err := handle.Get(cmd.Context())
			if err != nil {
				return err
			}
			silence, err := handle.StaleOperator(cmd.Context())
			if err != nil {
				silence = nil // without permission to read the Lease, nothing is shown about it
			}
			if output == formatJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(struct {
					History    []landscapev1alpha1.SyncRecord      `json:"history"`
					Held       []landscapev1alpha1.HeldDeletion    `json:"held,omitempty"`
					Operations []landscapev1alpha1.OperationRecord `json:"operations,omitempty"`
					Pin        *landscapev1alpha1.Pin              `json:"pin,omitempty"`
					Waiting    string                              `json:"waiting,omitempty"`
					Source     string                              `json:"sourceFailure,omitempty"`
					Silence    *landscape.StaleRole                `json:"operatorSilent,omitempty"`
				}{append([]landscapev1alpha1.SyncRecord{}, l.Status.History...), l.Status.Held, l.Status.Operations, l.Spec.Pin, waitingText(l), sourceFailureText(l), silence})
			} else {
				if silence != nil {
					fmt.Fprintf(cmd.OutOrStdout(), "%s; %s\n", printable(noOperatorText(silence, time.Now())), landscape.StartOperatorHint(object.kubectl()))
				}
				err = printHistory(cmd.OutOrStdout(), l, &object, terminalWidth(cmd.OutOrStdout()))
			}
			if err != nil {
				return err
			}
			if h := l.Status.History; len(l.Status.Held) > 0 || len(h) > 0 && (h[0].Result == landscapev1alpha1.SyncFailed || h[0].Gardenlets != "") || sourceFailureText(l) != "" {
				return errFinding
			}
			return nil
		},
	}
	addOutputFlag(cmd, &output, "text", "json")
	object.register(cmd)
	return cmd
}

// printHistory prints the syncs with the notes above and below them. Lines of the table are cut to
// width; 0 means no limit, for files and pipes. Printed commands get the cluster flags of this one.
func printHistory(w io.Writer, l *landscapev1alpha1.Landscape, object *objectFlags, width int) error {
	here := func(text string) string { return object.withCommandFlags(text, l.Namespace+"/"+l.Name) }
	if pin := l.Spec.Pin; pin != nil {
		reason := ""
		if pin.Reason != "" {
			reason = ": " + oneLine(pin.Reason, 300)
		}
		fmt.Fprintf(w, "PINNED to %s by %s%s\n", printable(pin.Revision), printable(nameOrUnknown(pin.By)), reason)
	}
	if s := l.Spec.SuspensionAt(time.Now()); s != nil {
		fmt.Fprintf(w, "SUSPENDED%s\n", printable(landscape.SuspensionText(s)))
	}
	if text := waitingText(l); text != "" {
		fmt.Fprintf(w, "WAITING: %s\n", oneLine(here(text), math.MaxInt))
	}
	if text := sourceFailureText(l); text != "" {
		fmt.Fprintf(w, "SOURCE: %s\n", oneLine(here(text), math.MaxInt))
	}
	var lines strings.Builder
	table := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BEGAN\tTOOK\tREVISION\tBY\tRESULT\tWHAT")
	for _, r := range l.Status.History {
		took, result := "…", "Syncing"
		if r.EndTime != nil {
			took, result = r.EndTime.Sub(r.StartTime.Time).Round(time.Second).String(), string(r.Result)
		}
		what := r.Subject
		if r.Message != "" && (r.Result != landscapev1alpha1.SyncSucceeded || what == "") {
			what = r.Message
		}
		if what == r.Subject {
			for _, part := range append([]string{operator.UsedApprovalsText(r.Approvals)}, r.TakenUp...) {
				if part != "" {
					what = part + "; " + what
				}
			}
		}
		if r.Gardenlets != "" {
			what = "on seeds: " + r.Gardenlets
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.StartTime.Local().Format(time.DateTime), took, printable(source.ShortRevision(r.Revision)), printable(r.Trigger), printable(result), oneLine(here(what), math.MaxInt))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(lines.String()) {
		if _, err := fmt.Fprintln(w, truncateLine(strings.TrimSuffix(line, "\n"), width)); err != nil {
			return err
		}
	}
	printOperations(w, l, width)
	return printApprovals(w, l, object)
}

// shownOperations limits the printed operations; JSON has all of the status.
const shownOperations = 5

// printOperations prints the operations of operations/ that were executed last.
func printOperations(w io.Writer, l *landscapev1alpha1.Landscape, width int) {
	for i, o := range l.Status.Operations {
		if i == shownOperations {
			fmt.Fprintf(w, "… and %d earlier operations; -o json lists them\n", len(l.Status.Operations)-i)
			return
		}
		fmt.Fprintln(w, truncateLine(oneLine(fmt.Sprintf("Operation %s of %s, executed %s: operations/%s", o.Operation, o.Object, o.At.Local().Format(time.DateTime), o.ID), math.MaxInt), width))
	}
}

// truncateLine shortens a line to width characters, with "…" at the end; 0 means no limit.
func truncateLine(line string, width int) string {
	r := []rune(line)
	if width <= 0 || len(r) <= width {
		return line
	}
	return string(r[:width-1]) + "…"
}

// waitingText says which commit waits for a window or for another Landscape. It is "" if none waits
// or the Landscape is suspended.
func waitingText(l *landscapev1alpha1.Landscape) string {
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	if ready == nil || ready.Reason != landscapev1alpha1.ReasonWaiting || l.Spec.SuspensionAt(time.Now()) != nil {
		return ""
	}
	return ready.Message
}

// sourceFailureText says since when and why the source cannot be read, as such a failure starts no
// sync. It is "" for a readable source.
func sourceFailureText(l *landscapev1alpha1.Landscape) string {
	c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeSourceReady)
	if c == nil || c.Status != gardencorev1beta1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf("cannot be read since %s (%s): %s", c.LastTransitionTime.Local().Format(time.DateTime), c.Reason, c.Message)
}

// printApprovals prints the held deletions by approval id: one id can approve all deletions that a
// run holds for one reason.
func printApprovals(w io.Writer, l *landscapev1alpha1.Landscape, object *objectFlags) error {
	var groups [][]landscapev1alpha1.HeldDeletion
	for _, h := range l.Status.Held {
		i := slices.IndexFunc(groups, func(g []landscapev1alpha1.HeldDeletion) bool {
			return groupApproval(g[0]) == groupApproval(h) && g[0].Reason == h.Reason
		})
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	for i, group := range groups {
		fmt.Fprintf(w, "Held: %s\n", oneLine(object.withCommandFlags(group[0].Reason, l.Namespace+"/"+l.Name), 1000))
		for _, h := range group {
			alone := ""
			if h.Together != "" && h.Approval != "" {
				alone = ", its approval is " + printable(operator.ApprovalText(h.Cluster, h.Approval))
			}
			fmt.Fprintf(w, "  %s on %s%s\n", printable(h.Object), printable(clusterLabel(h.Cluster)), alone)
		}
		id := groupApproval(group[0])
		if id == "" || slices.ContainsFunc(groups[i+1:], func(g []landscapev1alpha1.HeldDeletion) bool { return groupApproval(g[0]) == id }) {
			continue
		}
		what := "it"
		if group[0].Together != "" {
			what = "all of them"
		}
		fmt.Fprintf(w, "  approve %s with: pergola approve %s/%s %s%s\n", what, l.Namespace, l.Name, printable(id), object.commandFlags())
	}
	return nil
}

// groupApproval returns the id that approves an object together with all others of its group.
func groupApproval(h landscapev1alpha1.HeldDeletion) string {
	return operator.ApprovalText(h.Cluster, cmp.Or(h.Together, h.Approval))
}

// clusterLabel names a cluster. Any cluster other than the operator's two is a seed, whose
// gardenlet holds the deletion.
func clusterLabel(cluster string) string {
	if cluster == landscape.Runtime || cluster == landscape.Virtual {
		return "cluster " + cluster
	}
	return "seed " + cluster
}

func nameOrUnknown(name string) string {
	if name == "" {
		return "somebody"
	}
	return name
}
