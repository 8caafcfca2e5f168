// SPDX-License-Identifier: Apache-2.0

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

// formatJSON is a value of -o that all commands with machine-readable results have.
const formatJSON = "json"

// errorFormatHelp describes the errors of -o json in the help of -o.
func errorFormatHelp(values []string) string {
	if !slices.Contains(values, formatJSON) {
		return ""
	}
	return `; with json, an error is {"error": {"message": …}}`
}

// resultWriter is standard output that records whether a result was written.
type resultWriter struct {
	io.Writer
	hasResult bool
}

func (w *resultWriter) Write(data []byte) (int, error) {
	w.hasResult = true
	return w.Writer.Write(data)
}

// errorResult is the output of -o json if an error prevents the result.
type errorResult struct {
	Error struct {
		Message string `json:"message"`
		// Findings list why a landscape is invalid.
		Findings []schemas.Violation `json:"findings,omitempty"`
	} `json:"error"`
}

// printFailure prints a sentence on standard error and, for programs, why there is no result. A
// printed result contains its errors itself.
func printFailure(cmd *cobra.Command, args []string, sentence string, err error) {
	fmt.Fprintln(cmd.ErrOrStderr(), printableText(sentence))
	if w, ok := cmd.OutOrStdout().(*resultWriter); ok && w.hasResult || !isJSONRequested(cmd, args) {
		return
	}
	var out errorResult
	out.Error.Message = err.Error()
	var invalid *revisions.NotValidError
	if errors.As(err, &invalid) {
		out.Error.Findings = invalid.Findings
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(out) // ignored: standard error has the message already
}

// isUnavailable reports whether a server did not answer or rejected the credentials. Every command
// then exits with code 2, even if there are other findings.
func isUnavailable(err error) bool {
	if addresses.IsConnectFailure(err) {
		return true
	}
	switch e := err.(type) {
	case nil:
		return false
	case *apply.ObjectError:
		if slices.Contains([]apply.Reason{apply.ReasonUnreachable, apply.ReasonCertificateExpired, apply.ReasonUnauthorized}, e.Reason) {
			return true
		}
	case *apply.UnreachableError:
		return true
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), isUnavailable)
	}
	return isUnavailable(errors.Unwrap(err))
}

// exitAfterProblems returns the exit code after the problems were printed.
func exitAfterProblems(err error) error {
	if isUnavailable(err) {
		return exitError{exitUsage}
	}
	return errFinding
}

// isJSONRequested reports whether JSON is wanted, even if an earlier wrong flag stopped the parser.
func isJSONRequested(cmd *cobra.Command, args []string) bool {
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
