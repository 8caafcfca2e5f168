// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/record"
	"github.com/pergola-dev/pergola/plan/golden"
)

// goldenComponents compares the cases of a catalogue with their records.
func goldenComponents(cmd *cobra.Command, only []string, update bool, output string) error {
	dir, _ := cmd.Flags().GetString("catalogue")
	if update && dir == "" {
		return errors.New("--update writes into a catalogue: name its folder with --catalogue, such as --catalogue components")
	}
	for i := range only {
		only[i] = strings.TrimPrefix(path.Clean(filepath.ToSlash(only[i])), "components/")
	}
	report, err := golden.Run(cmd.Context(), catalogueFS(cmd), only)
	if err != nil {
		return err
	}
	if update {
		if err := recordCases(cmd, dir, report); err != nil {
			return err
		}
		if report.Summary.FailedCases == 0 {
			return nil
		}
		return commands.Finding{Err: fmt.Errorf("%s could not be rendered: their records are unchanged", countText(report.Summary.FailedCases, "case"))}
	}
	switch output {
	case formatJSON:
		err = printJSON(cmd, report)
	case formatGitHub:
		err = golden.Annotations(cmd.OutOrStdout(), report, annotationPrefix(dir))
	default:
		err = golden.Print(cmd.OutOrStdout(), report)
	}
	if err == nil && !report.IsCurrent() {
		return errFinding
	}
	return err
}

const formatGitHub = "github"

// annotationPrefix returns the catalogue's folder relative to the repository, for annotations of a
// forge.
func annotationPrefix(dir string) string {
	if dir == "" {
		dir = "components"
	}
	return filepath.ToSlash(filepath.Clean(dir)) + "/"
}

// recordCases writes the records of all cases that render, and prints the changes.
func recordCases(cmd *cobra.Command, dir string, report *golden.Report) error {
	done, err := record.WriteCases(dir, report)
	if err != nil {
		return err
	}
	for _, c := range report.Components {
		for _, one := range c.Cases {
			if one.Error != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s, case %s: %s\n", c.Name, one.Name, one.Error)
			}
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Golden: %s in %s: review with git diff.\n", done, dir)
	return err
}
