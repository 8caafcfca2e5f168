// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/adoption"
)

// adoptCommand is one run of `pergola adopt`.
type adoptCommand struct {
	access     accessFlags
	output     string
	stop, undo bool
	approve    string
	showFine   bool
}

func newAdopt() *cobra.Command {
	var a adoptCommand
	cmd := &cobra.Command{
		Use:   "adopt LANDSCAPE",
		Short: "Compare a running landscape of Gardener's controllers with Git, and stop them",
		Long: `Moves a landscape from gardener-operator to Pergola, in steps that can each be repeated.
docs/howto/migrate-from-gardener.md describes all steps.

Without a flag, the command compares and writes nothing. It compares the live Garden with the file,
then versions, CAs and keys, rotations, etcd volumes and controllers, and every object of every
component. Each finding has a level:

- blocks: must be resolved first
- restarts: pods are replaced; the fields that cause it are listed
- changes: nothing restarts
- fine

--stop stops the controllers of upstream whose work Pergola does. These are gardener-operator,
gardenlets, gardener-controller-manager, gardener-scheduler and resource managers. Each one is
stopped after any controller that would start it again. The command waits until each has ended and
has released its lease, and removes webhooks without a server.

Without --approve, --stop only lists the controllers in their order, and the id to approve. It
records each step in advance, in ConfigMap garden/pergola-adoption. It refuses to stop controllers
while a finding blocks.

Then run pergola apply to take over. The fields of gardener-operator, gardener-resource-manager and
gardenlet become Pergola's, and equal fields are not written. --undo reverts --stop, before and
after pergola apply: it starts the stopped controllers again, gardener-operator last.

Exit code 1: a finding is not fine, or the approval is missing. Exit code 0: a takeover changes
nothing, or the step is done.`,
		Example: `  pergola adopt landscapes/production
  pergola adopt landscapes/production -o json
  pergola adopt landscapes/production --stop                    # shows what would be stopped, and the id
  pergola adopt landscapes/production --stop --approve 3f2a…
  pergola apply landscapes/production
  pergola adopt landscapes/production --undo                    # the way back`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0]) },
	}
	addOutputFlag(cmd, &a.output, "text", "json")
	cmd.Flags().BoolVar(&a.stop, "stop", false, "stop the controllers of upstream, in the right order")
	cmd.Flags().BoolVar(&a.undo, "undo", false, "start the stopped controllers again")
	cmd.Flags().StringVar(&a.approve, "approve", "", "stop exactly the controllers that a run listed with this id")
	cmd.Flags().BoolVar(&a.showFine, "all", false, "also print findings of level fine")
	cmd.MarkFlagsMutuallyExclusive("stop", "undo")
	a.access.register(cmd)
	return cmd
}

func (a *adoptCommand) run(cmd *cobra.Command, dir string) error {
	if a.approve != "" && !a.stop {
		return errors.New("--approve is for --stop")
	}
	l, err := loadValid(cmd, dir)
	if err != nil {
		return err
	}
	c, err := newConverger(cmd, l, a.access, nil, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), a.access.timeout)
	defer cancel()
	adopter := adoption.Adopter{
		Converger: c, Landscape: l.Config.Name, Catalogue: catalogueFS(cmd), Clock: clock.RealClock{},
		OnStep: func(step string) { fmt.Fprintln(cmd.ErrOrStderr(), printable(step)) },
	}
	switch {
	case a.stop:
		return a.stopAll(ctx, cmd, adopter)
	case a.undo:
		return a.undoAll(ctx, cmd, adopter)
	}
	report, err := adopter.Check(ctx)
	if err != nil {
		return err
	}
	if err := a.print(cmd, report, func(w io.Writer) { a.printReport(w, report, dir) }); err != nil {
		return err
	}
	if !report.IsClean() {
		return errFinding
	}
	return nil
}

func (a *adoptCommand) stopAll(ctx context.Context, cmd *cobra.Command, adopter adoption.Adopter) error {
	stopping, err := adopter.Stop(ctx, a.approve)
	if blocked, is := errors.AsType[*adoption.BlockedError](err); is {
		return commands.Finding{Err: blocked}
	}
	if err != nil {
		return err
	}
	err = a.print(cmd, stopping, func(w io.Writer) {
		switch {
		case len(stopping.Controllers) == 0:
			fmt.Fprintln(w, "There is nothing to stop.")
			return
		case stopping.IsDone:
			fmt.Fprintf(w, "Stopped: %s. pergola apply takes over; --undo starts them again.\n", countText(len(stopping.Controllers), "controller"))
			return
		}
		fmt.Fprintln(w, "To be stopped, in this order:")
		for i, one := range stopping.Controllers {
			fmt.Fprintf(w, "  %d. %s (%s): %s\n", i+1, printable(one.String()), countText(int(one.Replicas), "replica"), printable(one.Reason))
		}
		if a.approve != "" {
			fmt.Fprintf(w, "Nothing was stopped: id %s does not match this list.\n", printable(a.approve))
		}
		fmt.Fprintf(w, "Stop them with: --stop --approve %s\n", stopping.Approval)
	})
	if err == nil && !stopping.IsDone {
		return errFinding
	}
	return err
}

func (a *adoptCommand) undoAll(ctx context.Context, cmd *cobra.Command, adopter adoption.Adopter) error {
	started, err := adopter.Undo(ctx)
	if working, is := errors.AsType[*adoption.PergolaActiveError](err); is {
		return commands.Finding{Err: working}
	}
	if err != nil {
		return err
	}
	result := struct {
		Started []string `json:"started"`
	}{append([]string{}, started...)}
	return a.print(cmd, result, func(w io.Writer) {
		if len(started) == 0 {
			fmt.Fprintln(w, "There was nothing to start.")
			return
		}
		fmt.Fprintf(w, "Started again: %s.\n", printable(strings.Join(started, ", ")))
	})
}

// print writes a result as JSON or as text.
func (a *adoptCommand) print(cmd *cobra.Command, result any, asText func(io.Writer)) error {
	if a.output != formatJSON {
		asText(cmd.OutOrStdout())
		return nil
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(result)
}

// shownObjects and shownFields limit the list of a finding; JSON lists all.
const (
	shownObjects = 8
	shownFields  = 12
)

// levelTitles are the headings of the levels.
var levelTitles = map[adoption.Level]string{
	adoption.LevelBlocks: "Blocks the takeover", adoption.LevelRestarts: "Restarts", adoption.LevelChanges: "Changes, nothing restarts", adoption.LevelNoAction: "Fine",
}

func (a *adoptCommand) printReport(w io.Writer, r *adoption.Report, dir string) {
	if len(r.Problems) > 0 {
		fmt.Fprintln(w, "Incomplete: some parts could not be compared.")
		for _, p := range r.Problems {
			fmt.Fprintln(w, "  "+printable(p))
		}
		fmt.Fprintln(w)
	}
	for _, level := range adoption.Levels {
		found := r.ByLevel(level)
		if len(found) == 0 || level == adoption.LevelNoAction && !a.showFine {
			continue
		}
		fmt.Fprintf(w, "%s:\n", levelTitles[level])
		for _, f := range found {
			printFinding(w, f)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%d block, %d restart, %d change, %d fine.", r.Summary[adoption.LevelBlocks], r.Summary[adoption.LevelRestarts], r.Summary[adoption.LevelChanges], r.Summary[adoption.LevelNoAction])
	switch {
	case r.IsBlocked():
		fmt.Fprintln(w, " Resolve the blocking findings, then compare again.")
	case r.HasStopped:
		fmt.Fprintf(w, " Controllers are stopped: pergola apply %s%s takes over, pergola adopt %[1]s%[2]s --undo starts them again.\n", dir, a.access.commandFlags())
	case len(r.ControllersToStop()) > 0:
		fmt.Fprintf(w, " Next: pergola adopt %s%s --stop.\n", dir, a.access.commandFlags())
	case r.IsClean():
		fmt.Fprintln(w, " There is nothing to stop or to take over.")
	default:
		fmt.Fprintf(w, " There is nothing to stop. Next: pergola apply %s%s.\n", dir, a.access.commandFlags())
	}
}

func printFinding(w io.Writer, f adoption.Finding) {
	place := f.Cluster
	if place != "" {
		place += ": "
	}
	if len(f.Objects) == 1 {
		place += f.Objects[0] + ": "
	}
	fmt.Fprintf(w, "  %s%s\n", printable(place), printable(f.Text))
	if len(f.Objects) > 1 {
		for i, o := range f.Objects {
			if i == shownObjects {
				fmt.Fprintf(w, "      … and %d more\n", len(f.Objects)-i)
				break
			}
			fmt.Fprintln(w, "      "+printable(o))
		}
	}
	for i, field := range f.Fields {
		if i == shownFields {
			fmt.Fprintf(w, "      … and %d more fields\n", len(f.Fields)-i)
			break
		}
		fmt.Fprintln(w, "      "+printable(fieldLine(field)))
	}
	if f.Advice != "" {
		fmt.Fprintln(w, "    → "+printable(f.Advice))
	}
}

func fieldLine(f change.Field) string {
	if f.Hidden {
		return f.Path + ": differs (values are secret)"
	}
	return fmt.Sprintf("%s: %s → %s", f.Path, shortText(f.Old), shortText(f.New))
}

// shortText returns a value as one short line.
func shortText(v any) string {
	if v == nil {
		return "(none)"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if line := []rune(string(raw)); len(line) > 120 {
		return string(line[:120]) + "…"
	}
	return string(raw)
}
