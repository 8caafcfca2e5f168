// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/record"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan/golden"
	"github.com/pergola-dev/pergola/render"
)

func newGolden() *cobra.Command {
	var update, components bool
	var dir, output string
	cmd := &cobra.Command{
		Use:   "golden LANDSCAPE | --components [OWNER/COMPONENT...]",
		Short: "Compare the render of a landscape, or of the cases of components, with the recorded one",
		Long: `Renders the landscape and the flows of its owners, and compares them with the recorded files
(default: folder golden inside the landscape), byte by byte. Differences are listed by object and
field.

With --components, it renders the cases of the catalogue instead
(components/OWNER/COMPONENT/cases/CASE.yaml), and compares them with the records beside them.
Arguments select components. Components without cases are listed.

Exit code 1: the render differs from the record. --update writes a new record and prints how many
files it changed.`,
		Example: `  pergola golden landscapes/local
  pergola golden landscapes/local --update
  pergola golden --components garden/vpa --catalogue components
  pergola golden --components --catalogue components --update`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tuneGCForCommand()
			switch {
			case components && dir != "":
				return errors.New("--dir is for landscapes: cases are recorded beside them in the catalogue")
			case components:
				return goldenComponents(cmd, args, update, output)
			case len(args) != 1:
				return fmt.Errorf("give one landscape, or --components: got %d arguments", len(args))
			}
			return goldenLandscape(cmd, args[0], dir, update, output)
		},
	}
	addOutputFlag(cmd, &output, "text", formatJSON, formatGitHub)
	cmd.Flags().BoolVar(&update, "update", false, "record the current render")
	cmd.Flags().BoolVar(&components, "components", false, "render the cases of components instead of a landscape")
	cmd.Flags().StringVar(&dir, "dir", "", "folder of the recorded files (default: LANDSCAPE/golden)")
	return cmd
}

// goldenLandscape compares the rendered landscape with its record, or writes the record.
func goldenLandscape(cmd *cobra.Command, landscape, dir string, update bool, output string) error {
	l, err := loadValid(cmd, landscape)
	if err != nil {
		return err
	}
	files, err := goldenFiles(cmd, l, catalogueFS(cmd))
	if err != nil {
		return err
	}
	if dir == "" {
		dir = filepath.Join(landscape, "golden")
	}
	if update {
		done, err := record.Write(dir, files)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "Golden: %s in %s.\n", done, dir)
		return err
	}
	return compareGolden(cmd, dir, files, output)
}

// goldenFiles renders all files of a record: bundles and flows.
func goldenFiles(cmd *cobra.Command, l *landscapes.Landscape, catalogue fs.FS) (map[string][]byte, error) {
	bundles, clusterOf, err := renderAll(cmd, l, catalogue)
	if err != nil {
		return nil, commands.Finding{Err: err}
	}
	files, err := render.BundleFiles(bundles, clusterOf)
	if err != nil {
		return nil, err
	}
	flows, err := render.FlowFiles(l, catalogue, render.WithTime(time.Now()))
	if err != nil {
		return nil, commands.Finding{Err: err}
	}
	maps.Copy(files, flows)
	return files, nil
}

func compareGolden(cmd *cobra.Command, dir string, files map[string][]byte, output string) error {
	report, err := record.Compare(dir, files)
	if err != nil {
		return err
	}
	if err := printGolden(cmd, dir, report, output); err != nil {
		return err
	}
	if len(report.Differences) > 0 {
		return errFinding
	}
	return nil
}

func printGolden(cmd *cobra.Command, dir string, report record.Report, output string) error {
	switch output {
	case formatJSON:
		return printJSON(cmd, report)
	case formatGitHub:
		return golden.AnnotateFiles(cmd.OutOrStdout(), report.WithoutDigests(), filepath.ToSlash(filepath.Clean(dir))+"/")
	}
	if len(report.Differences) == 0 {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "Golden: %d files agree.\n", report.Files)
		return err
	}
	var out strings.Builder
	counts, differ := map[string]int{}, map[string]bool{}
	for _, d := range report.Differences {
		counts[d.Action]++
		differ[d.File] = true
	}
	fmt.Fprintf(&out, "Golden: %s from the record: %d added, %d changed, %d removed.\n\n",
		pluralForm(len(differ), "1 file differs", fmt.Sprintf("%d files differ", len(differ))), counts[golden.Added], counts[golden.Changed], counts[golden.Removed])
	for _, d := range report.Differences {
		out.WriteString(d.String())
	}
	out.WriteString("\nReview with git diff after golden --update.\n")
	_, err := io.WriteString(cmd.OutOrStdout(), out.String())
	return err
}
