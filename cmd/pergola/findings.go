// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/report"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// newReader returns a reader of landscapes for the flags of a command.
func newReader(cmd *cobra.Command) revisions.Reader {
	return revisions.Reader{
		WithOptions: func(read func(landscapes.Options) error) error { return withLandscapeOptions(cmd, read) },
		Cache:       func(dir string) *resultcache.Store { return validationStore(cmd, dir) },
		SaveCache:   func(dir string) { saveValidationStore(cmd, dir) },
		Catalogue:   catalogueFS(cmd),
		Charts:      func(l *landscapes.Landscape) render.Setting { return withCharts(cmd, l) },
		Report: func(found []schemas.Violation, revision string, sources func(string) ([]byte, error)) error {
			return reportFindings(cmd, found, revision, sources)
		},
	}
}

// loadValid reads a landscape from the work tree and fails if it is invalid.
func loadValid(cmd *cobra.Command, dir string) (*landscapes.Landscape, error) {
	return newReader(cmd).LoadValid(cmd.Context(), dir)
}

// reportFindings writes findings to standard error: standard output is for the result.
func reportFindings(cmd *cobra.Command, all []schemas.Violation, revision string, sources func(string) ([]byte, error)) error {
	if len(all) == 0 {
		return nil
	}
	if revision != "" {
		revision += ": "
	}
	named := slices.Clone(all)
	for i := range named {
		named[i].File = revision + named[i].File
	}
	return report.Write(cmd.ErrOrStderr(), named, report.Options{
		Colored:    isColoredFor(cmd, cmd.ErrOrStderr()),
		ReadSource: func(file string) ([]byte, error) { return sources(strings.TrimPrefix(file, revision)) },
	})
}
