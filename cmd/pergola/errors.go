package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/internal/addresses"
	"github.com/pergola-dev/pergola/schemas"
)

// formatJSON is the value of -o that every command with a result for programs has.
const formatJSON = "json"

// errorForm says in the help of -o what becomes of errors.
func errorForm(values []string) string {
	if !slices.Contains(values, formatJSON) {
		return ""
	}
	return `; with json an error instead of the result is {"error": {"message": …}}`
}

// watched is standard output that knows whether there is a result on it.
type watched struct {
	io.Writer
	written bool
}

func (w *watched) Write(data []byte) (int, error) {
	w.written = true
	return w.Writer.Write(data)
}

// failure is what -o json prints where an error prevents the result.
type failure struct {
	Error struct {
		Message string `json:"message"`
		// Findings say why a landscape is not valid.
		Findings []schemas.Violation `json:"findings,omitempty"`
	} `json:"error"`
}

// printFailure says a sentence on standard error and, for programs, why there is no result. A
// result that was printed already tells of its errors itself.
func printFailure(cmd *cobra.Command, args []string, sentence string, err error) {
	fmt.Fprintln(cmd.ErrOrStderr(), printableText(sentence))
	if w, ok := cmd.OutOrStdout().(*watched); ok && w.written || !asksForJSON(cmd, args) {
		return
	}
	var out failure
	out.Error.Message = err.Error()
	var invalid *revisions.NotValidError
	if errors.As(err, &invalid) {
		out.Error.Findings = invalid.Findings
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(out) // nobody reads it: that was said, or does not matter
}

// isUnavailable reports whether a cluster, or another server, did not answer, or does not know who
// asks: exit code 2 in every command, also where the rest is a finding.
func isUnavailable(err error) bool {
	if addresses.IsUnsent(err) {
		return true
	}
	switch e := err.(type) {
	case nil:
		return false
	case *apply.ObjectError:
		if slices.Contains([]apply.Reason{apply.Unreachable, apply.CertificateExpired, apply.Unauthorized}, e.Reason) {
			return true
		}
	case *apply.UnreachableError:
		return true
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), isUnavailable)
	}
	return isUnavailable(errors.Unwrap(err))
}

// exitOf ends a command whose problems were printed.
func exitOf(err error) error {
	if isUnavailable(err) {
		return exitError{exitUsage}
	}
	return errFinding
}

// asksForJSON also sees the flag where another one before it was wrong, and it was not read
// therefore.
func asksForJSON(cmd *cobra.Command, args []string) bool {
	flag := cmd.Flags().Lookup("output")
	if flag == nil {
		return false
	}
	if flag.Changed || flag.Value.String() == formatJSON {
		return flag.Value.String() == formatJSON
	}
	joined := " " + strings.Join(args, " ") + " "
	return slices.ContainsFunc([]string{"-o json", "-o=json", "-ojson", "--output json", "--output=json"}, func(form string) bool {
		return strings.Contains(joined, " "+form+" ")
	})
}
