package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// The forms of a report.
const (
	FormatText   = "text"
	FormatJSON   = "json"
	FormatSARIF  = "sarif"
	FormatGitHub = "github"
)

// Formats are all forms, the default first.
func Formats() []string { return []string{FormatText, FormatJSON, FormatSARIF, FormatGitHub} }

// Options of Write.
type Options struct {
	// Format is one of Formats; empty means text.
	Format string
	// Sources gives the content of a file that findings name, for the source lines of the text, and
	// for the group of a kind that several groups have; nil leaves them out.
	Sources func(file string) ([]byte, error)
	// Colored marks severities and carets by colour; only text has it.
	Colored bool
	// Pointer closes a text that has findings with a line that says where to read on.
	Pointer bool
	// Version is that of the program, for SARIF.
	Version string
}

// Write writes sorted findings. An empty list is a report, too.
func Write(w io.Writer, violations []schemas.Violation, o Options) error {
	switch o.Format {
	case FormatJSON:
		return writeJSON(w, violations, newSources(o.Sources))
	case FormatSARIF:
		return writeSARIF(w, violations, o)
	case FormatGitHub:
		return writeGitHub(w, violations)
	case FormatText, "":
		return writeText(w, violations, o)
	}
	return fmt.Errorf("there is no report of form %q, only %s", o.Format, strings.Join(Formats(), ", "))
}

// documented is a finding with a link to what there is to read about its kind.
type documented struct {
	schemas.Violation
	Documentation string `json:"documentation,omitempty"`
}

func writeJSON(w io.Writer, violations []schemas.Violation, files *sources) error {
	list := make([]documented, 0, len(violations))
	for _, v := range violations {
		list = append(list, documented{v, files.documentation(v)})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}

// writeGitHub writes workflow commands, which GitHub shows as annotations on the lines of a pull
// request.
func writeGitHub(w io.Writer, violations []schemas.Violation) error {
	for _, v := range violations {
		text := v.Message
		if v.Field != "" {
			text = v.Field + ": " + text
		}
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", v.Severity, property(v.File), max(v.Line, 1), max(v.Column, 1),
			property(title(v)), data.Replace(text))
		if err != nil {
			return err
		}
	}
	return nil
}

// title names the object and the rule.
func title(v schemas.Violation) string {
	if v.Kind == "" {
		return v.Rule
	}
	return strings.TrimSuffix(object(v)+": "+v.Rule, ": ")
}

// object names the object of a finding, as its text does.
func object(v schemas.Violation) string {
	name := v.Name
	if v.Namespace != "" {
		name = v.Namespace + "/" + name
	}
	return strings.TrimSpace(v.Kind + " " + name)
}

// data and property escape as the workflow commands ask for: properties end at a comma, too.
var data = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

func property(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
