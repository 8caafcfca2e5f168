// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// Formats of a report.
const (
	FormatText   = "text"
	FormatJSON   = "json"
	FormatSARIF  = "sarif"
	FormatGitHub = "github"
)

// Formats returns all formats, the default first.
func Formats() []string { return []string{FormatText, FormatJSON, FormatSARIF, FormatGitHub} }

// Options are the options of Write.
type Options struct {
	// Format is one of Formats; empty means text.
	Format string
	// ReadSource reads a file for its source lines and for the group of ambiguous kinds; nil omits
	// both.
	ReadSource func(file string) ([]byte, error)
	// Colored colours severities and carets in text.
	Colored bool
	// DocumentationHint ends a text with findings with a line about further documentation.
	DocumentationHint bool
	// Version is the program's version, for SARIF.
	Version string
}

// Write writes sorted findings. An empty list is a valid report.
func Write(w io.Writer, violations []schemas.Violation, o Options) error {
	switch o.Format {
	case FormatJSON:
		return writeJSON(w, violations, newSourceCache(o.ReadSource))
	case FormatSARIF:
		return writeSARIF(w, violations, o)
	case FormatGitHub:
		return writeGitHub(w, violations)
	case FormatText, "":
		return writeText(w, violations, o)
	}
	return fmt.Errorf("there is no report format %q; use %s", o.Format, strings.Join(Formats(), ", "))
}

// linkedViolation is a finding with a link to the reference of its kind.
type linkedViolation struct {
	schemas.Violation
	Documentation string `json:"documentation,omitempty"`
}

func writeJSON(w io.Writer, violations []schemas.Violation, files *sourceCache) error {
	list := make([]linkedViolation, 0, len(violations))
	for _, v := range violations {
		list = append(list, linkedViolation{v, files.documentationLink(v)})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}

// writeGitHub writes workflow commands, which GitHub shows as annotations in a pull request.
func writeGitHub(w io.Writer, violations []schemas.Violation) error {
	for _, v := range violations {
		text := v.Message
		if v.Field != "" {
			text = v.Field + ": " + text
		}
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", v.Severity, escapeProperty(v.File), max(v.Line, 1), max(v.Column, 1),
			escapeProperty(annotationTitle(v)), workflowDataEscaper.Replace(text))
		if err != nil {
			return err
		}
	}
	return nil
}

// annotationTitle returns the object and the rule.
func annotationTitle(v schemas.Violation) string {
	if v.Kind == "" {
		return v.Rule
	}
	return strings.TrimSuffix(objectTitle(v)+": "+v.Rule, ": ")
}

// objectTitle returns the object of a finding as in text reports.
func objectTitle(v schemas.Violation) string {
	name := v.Name
	if v.Namespace != "" {
		name = v.Namespace + "/" + name
	}
	return strings.TrimSpace(v.Kind + " " + name)
}

// workflowDataEscaper and property escape text for workflow commands, in which properties also end
// at a comma.
var workflowDataEscaper = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
