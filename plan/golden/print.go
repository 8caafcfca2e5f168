// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"io"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/printable"
)

// Print writes a report for people: the summary, then each different case, by object and field.
func Print(w io.Writer, r *Report) error {
	var b strings.Builder
	b.WriteString(r.Summary.String())
	for _, c := range r.Components {
		for _, one := range c.Cases {
			if one.Error == "" && !one.Unrecorded && len(one.Differences) == 0 {
				continue
			}
			fmt.Fprintf(&b, "\n%s, case %s: %s\n", c.Name, one.Name, oneLine(one.Description))
			switch {
			case one.Error != "":
				b.WriteString(indentLines("✗ "+one.Error, "  "))
			case one.Unrecorded:
				fmt.Fprintf(&b, "  + nothing is recorded yet\n")
			}
			for _, d := range one.Differences {
				b.WriteString(indentLines(d.String(), "  "))
			}
		}
	}
	if len(r.Stale) > 0 {
		b.WriteString("\nRecorded, but no longer rendered by any case:\n")
		for _, file := range r.Stale {
			b.WriteString("  - " + file + "\n")
		}
	}
	if len(r.Summary.WithoutCases) > 0 {
		fmt.Fprintf(&b, "\nWithout cases: %s\n", strings.Join(r.Summary.WithoutCases, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String formats the summary as text.
func (s Summary) String() string {
	text := fmt.Sprintf("Golden: %s of %s", printable.WithCount(s.Cases, "case"), printable.WithCount(s.Components, "component"))
	if s.DifferentCases+s.NewCases+s.FailedCases+s.Stale == 0 {
		return text + ", all as recorded.\n"
	}
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{{s.EqualCases, "as recorded"}, {s.DifferentCases, "different"}, {s.NewCases, "not recorded yet"}, {s.FailedCases, "not rendered"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	text += ": " + strings.Join(parts, ", ") + ".\n"
	if s.Added+s.Changed+s.Removed > 0 {
		text += fmt.Sprintf("Objects: %d added, %d changed, %d removed.\n", s.Added, s.Changed, s.Removed)
	}
	return text
}

// String formats the difference as lines: the object, its fields, and the diff.
func (d Difference) String() string {
	sign := map[string]string{Added: "+", Changed: "~", Removed: "-"}[d.Action]
	text := sign + " " + d.Object
	if d.Origin != "" {
		text += " (from " + d.Origin + ")"
	}
	text += "\n"
	if d.Action != Changed {
		return text + "  " + d.File + "\n"
	}
	for i, f := range d.Fields {
		if i == maxFields {
			text += fmt.Sprintf("  … %d more fields\n", len(d.Fields)-i)
			break
		}
		text += "  " + FieldLine(f) + "\n"
	}
	if len(d.Fields) == 0 {
		text += "  only the order or the form differs\n"
	}
	text += fmt.Sprintf("  %s:%d\n", d.File, d.Line)
	if d.Diff != "" {
		text += indentLines(d.Diff, "    ")
	}
	return text
}

// maxFields is the largest number of listed fields per object.
const maxFields = 20

// FieldLine formats a different field as one line.
func FieldLine(f change.Field) string {
	switch {
	case f.Hidden:
		return f.Path + ": (hidden value differs)"
	case f.Old == nil:
		return f.Path + ": + " + shortValue(f.New)
	case f.New == nil:
		return f.Path + ": - " + shortValue(f.Old)
	}
	return f.Path + ": " + shortValue(f.Old) + " → " + shortValue(f.New)
}

func shortValue(value any) string {
	r := []rune(oneLine(fmt.Sprint(value)))
	if len(r) > 120 {
		return string(r[:120]) + "…"
	}
	return string(r)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func indentLines(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		b.WriteString(by + line)
	}
	return b.String()
}

// Annotations writes the differences as GitHub workflow commands, which annotate the recorded
// lines. root is the folder of the catalogue in the repository.
func Annotations(w io.Writer, r *Report, root string) error {
	var b strings.Builder
	write := func(file string, line int, title, text string) {
		fmt.Fprintf(&b, "::error file=%s,line=%d,title=%s::%s\n", escapeProperty(root+file), max(line, 1), escapeProperty(title), escapeMessage(text))
	}
	for _, c := range r.Components {
		for _, one := range c.Cases {
			file := c.Name + "/" + casesFolder + "/" + one.Name + ".yaml"
			switch {
			case one.Error != "":
				write(file, 1, "golden: not rendered", one.Error)
			case one.Unrecorded:
				write(file, 1, "golden: not recorded", "record it with pergola golden --components --update")
			}
			for _, d := range one.Differences {
				at := d.File
				if d.Line == 0 {
					at = file
				}
				write(at, d.Line, "golden: "+c.Name+", case "+one.Name, d.String())
			}
		}
	}
	for _, file := range r.Stale {
		write(file, 1, "golden: stale", "no case renders this file now")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// AnnotateFiles is Annotations for a recorded render of a landscape, with its files in the folder
// root.
func AnnotateFiles(w io.Writer, differences []Difference, root string) error {
	var b strings.Builder
	for _, d := range differences {
		fmt.Fprintf(&b, "::error file=%s,line=%d,title=%s::%s\n", escapeProperty(root+d.File), max(d.Line, 1), escapeProperty("golden: "+d.Object), escapeMessage(d.String()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func escapeMessage(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(strings.TrimSuffix(text, "\n"))
}

func escapeProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeMessage(text))
}
