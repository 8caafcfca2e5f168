// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/render"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pergola",
		Short: "Run Gardener landscapes from Git",
		Long: `Pergola validates the Garden, Seed and Shoot declarations of a landscape folder, and renders them
into bundles per component. It shows what a change does to every cluster, and converges the
clusters.

Without a command, pergola takes its role from its file name (gardener-resource-manager), or from
the kind of the configuration file in --config=FILE. A Deployment can therefore name Pergola's image
instead of upstream's.

Exit codes:

- 0: success (valid, no difference, healthy).
- 1: a finding (invalid, different, unhealthy).
- 2: usage or I/O error.
- 130: interrupted (Ctrl-C or SIGTERM); a second signal, at least a second later, ends the command
  at once.
- 141: the output was closed before the command had a result (| head).

With -o json, an error that prevents the result is a sentence on standard error and an object on
standard output: {"error": {"message": "…"}}. If the landscape is invalid, error.findings has the
findings of validate -o json.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		// Cobra calls only the nearest PersistentPreRun, so subcommands must not set one.
		PersistentPreRun: discardControllerRuntimeLog,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, _ := cmd.Flags().GetBool("version"); asked {
				return printVersion(cmd, "text")
			}
			return cmd.Help()
		},
	}
	root.Flags().Bool("version", false, "print the same as pergola version")
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().Bool("no-color", false, "never colour the output (NO_COLOR does the same)")
	root.PersistentFlags().Var(new(catalogueFolder), "catalogue", "folder of components to use instead of those in the program, e.g. components in a work tree")
	addEvaluationFlags(root)
	addCacheFlags(root)
	asking := []*cobra.Command{newValidate(), newExplain(), newWhy(), newFlow(), newHealth(), newHistory(), newTree()}
	for _, cmd := range asking {
		cmd.Annotations = map[string]string{annotationReadOnly: "true"}
	}
	// these can write files, too
	asking = append(asking, newRender(), newDiff(), newGolden(), newBackup())
	for _, cmd := range asking {
		addActivityIndicator(cmd)
	}
	root.AddCommand(asking...)
	root.AddCommand(
		newApply(), newAdopt(), newOperate(), newStatus(), newRestore(),
		newSync(), newSuspend(), newResume(), newRollback(), newApprove(),
		newOperator(), newGardenlet(), newAdmissionController(), newResourceManager(), newInstall(), newComment(), newHook(), newVersion(), newEvaluate(),
	)
	for _, cmd := range root.Commands() {
		explainArgumentErrors(cmd)
	}
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
		asked, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return unknownCommand(asked, rest[0])
		}
		return asked.Help()
	}
	return root
}

// explainArgumentErrors adds the expected arguments, the missing flags and the nearest landscape
// folder to errors of all commands.
func explainArgumentErrors(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		explainArgumentErrors(sub)
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return suggestLandscape(cmd, args, run(cmd, args)) }
	}
	check := cmd.Args
	if check == nil && cmd.Runnable() {
		check = cobra.ArbitraryArgs
	}
	if check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := checkEmptyFlags(cmd)
			if err == nil {
				if err = check(cmd, args); err != nil {
					err = argumentError(cmd, args, check, err)
				} else if err = missingFlagsError(cmd); err == nil {
					err = cmd.ValidateFlagGroups()
				}
			}
			if err != nil {
				return fmt.Errorf("%w: %s; %s --help has examples", err, cmd.UseLine(), cmd.CommandPath())
			}
			return nil
		}
	}
}

// argumentError names the argument that is missing or too many. For a command with subcommands it
// suggests one.
func argumentError(cmd *cobra.Command, args []string, check cobra.PositionalArgs, err error) error {
	if cmd.HasSubCommands() {
		var names []string
		for _, sub := range cmd.Commands() {
			names = append(names, sub.Name())
		}
		if len(args) == 0 {
			return err
		}
		return fmt.Errorf("%w%s", err, unknown.Hint(args[0], names))
	}
	for n := len(args) - 1; n >= 0; n-- {
		if check(cmd, args[:n]) == nil {
			return fmt.Errorf("%q is one argument too many", args[n])
		}
	}
	if names := strings.Fields(cmd.Use)[1:]; len(args) < len(names) {
		return fmt.Errorf("%s is missing", strings.TrimRight(names[len(args)], "…."))
	}
	return err
}

// missingFlagsError returns an error with the missing required flags and their purpose; Cobra
// prints only their names.
func missingFlagsError(cmd *cobra.Command) error {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if required := f.Annotations[cobra.BashCompOneRequiredFlag]; slices.Contains(required, "true") && !f.Changed {
			missing = append(missing, fmt.Sprintf("--%s (%s)", f.Name, strings.TrimSuffix(f.Usage, " (required)")))
		}
	})
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return errors.New(missing[0] + " is missing")
	}
	return errors.New(strings.Join(missing, ", ") + " are missing")
}

// checkEmptyFlags rejects flags with an empty value: in --cluster "$CLUSTER" the variable may be
// unset, and the command would affect all clusters. Templates start roles, and there empty is the
// default.
func checkEmptyFlags(cmd *cobra.Command) error {
	if cmd.Flags().Lookup(flagLogLevel) != nil {
		return nil
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		if err == nil && slices.Contains(values, "") {
			err = fmt.Errorf("--%s is empty; give a value, or leave the flag out", f.Name)
		}
	})
	return err
}

// isColored reports whether a command writes to a terminal that supports colours.
func isColored(cmd *cobra.Command) bool {
	return isColoredFor(cmd, cmd.OutOrStdout())
}

func isColoredFor(cmd *cobra.Command, w io.Writer) bool {
	if off, _ := cmd.Flags().GetBool("no-color"); off || os.Getenv("NO_COLOR") != "" {
		return false
	}
	return isTerminal(w)
}

func isTerminalOutput(cmd *cobra.Command) bool { return isTerminal(cmd.OutOrStdout()) }

// terminalWidth returns the characters per line of a terminal, or 0 if w is not one or its width is
// unknown.
func terminalWidth(w io.Writer) int {
	if o, ok := w.(activityOutput); ok {
		w = o.Writer
	}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

func isTerminal(w io.Writer) bool {
	if o, ok := w.(activityOutput); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// addOutputFlag adds -o with its allowed values, which are checked before the command runs. JSON
// output is watched, so that an error can replace a missing result.
func addOutputFlag(cmd *cobra.Command, target *string, values ...string) {
	cmd.Flags().StringVarP(target, "output", "o", values[0], "output format: "+strings.Join(values, ", ")+errorFormatHelp(values))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		for _, v := range values {
			if *target == v {
				if v == formatJSON {
					cmd.SetOut(&resultWriter{Writer: cmd.OutOrStdout()})
				}
				if before != nil {
					return before(cmd, args)
				}
				return nil
			}
		}
		return fmt.Errorf("--output %q: want one of %s%s", *target, strings.Join(values, ", "), unknown.Hint(*target, values))
	}
}

// catalogueFolder is a folder of components. Any other folder would pass as a catalogue without
// components.
type catalogueFolder string

func (f *catalogueFolder) String() string { return string(*f) }
func (f *catalogueFolder) Type() string   { return "string" }
func (f *catalogueFolder) Set(dir string) error {
	if dir != "" {
		if _, err := os.Stat(filepath.Join(dir, render.ImageVectorFile)); err != nil {
			return fmt.Errorf("not a folder of components: %w", err)
		}
	}
	*f = catalogueFolder(dir)
	return nil
}

// catalogueFS returns the built-in catalogue, or the folder of the flag, with which changes of
// components take effect without a new build.
func catalogueFS(cmd *cobra.Command) fs.FS {
	if dir, _ := cmd.Flags().GetString("catalogue"); dir != "" {
		return os.DirFS(dir)
	}
	return components.FS
}
