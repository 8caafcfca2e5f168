package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/fatih/color"
	"github.com/hexops/gotextdiff"
	"github.com/hexops/gotextdiff/myers"
	"sigs.k8s.io/yaml"
)

// Formats a plan is printed in.
const (
	FormatText     = "text"
	FormatMarkdown = "markdown"
	FormatJSON     = "json"
)

// Print writes a plan; colored only counts for text.
func Print(w io.Writer, p Plan, format string, colored bool) error {
	switch format {
	case FormatJSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if p.Items == nil {
			p.Items = []Item{}
		}
		return enc.Encode(struct {
			Plan
			Impacts []Impact `json:"impacts,omitempty"`
			Reach   []Reach  `json:"reach,omitempty"`
		}{p, p.Impacts(), p.Reaches()})
	case FormatMarkdown:
		_, err := io.WriteString(w, Markdown(p, MaxMarkdown))
		return err
	case FormatText:
		_, err := io.WriteString(w, text(p, colored))
		return err
	}
	return fmt.Errorf("output format %q: want text, markdown or json", format)
}

var symbols = map[Action]string{Create: "+", Change: "~", Recreate: "±", Delete: "-", Adopt: "»", Keep: "=", Hold: "!", Fail: "✗"}

func text(p Plan, colored bool) string {
	var b strings.Builder
	paint := func(action Action, s string) string {
		attr := map[Action]color.Attribute{Create: color.FgGreen, Change: color.FgYellow, Recreate: color.FgMagenta, Delete: color.FgRed, Adopt: color.FgCyan, Keep: color.FgCyan, Hold: color.FgRed, Fail: color.FgRed}[action]
		c := color.New(attr)
		if !colored {
			c.DisableColor()
		} else {
			c.EnableColor()
		}
		return c.Sprint(s)
	}
	for _, note := range p.Notes {
		b.WriteString("Note: " + printable(note) + "\n")
	}
	if len(p.Notes) > 0 && len(p.Items) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(head(p))
	group := ""
	for _, item := range p.Items {
		if g := heading(item); g != group {
			if group != "" {
				b.WriteString("\n")
			}
			group = g
			b.WriteString(g + "\n")
		}
		fmt.Fprintf(&b, "  %s\n", paint(item.Action, symbols[item.Action]+" "+item.Object.String()+suffix(item)))
		for _, f := range item.Fields {
			b.WriteString(fieldText(f, "      "))
		}
	}
	if len(p.Items) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(p.Line() + "\n") // again, where the reader of a terminal is now
	return b.String()
}

// head is what a plan comes to: how far it goes, and what it does beyond the objects that it changes.
func head(p Plan) string {
	if p.Empty() {
		return ""
	}
	var b strings.Builder
	b.WriteString(p.Line() + "\n")
	for _, r := range p.Reaches() {
		fmt.Fprintf(&b, "  on %s %s\n", r.Cluster, printable(r.extent()))
	}
	for _, i := range p.Impacts() {
		fmt.Fprintf(&b, "  ! %s, on %s: %s\n", printable(strings.ReplaceAll(i.What, "\n", " ")), i.Cluster, printable(i.objects()))
	}
	b.WriteString("\n")
	return b.String()
}

// counted says which objects the numbers of a plan are about: the ManagedResources and Secrets that carry bundles to their
// cluster follow from them, and are not counted.
const counted = "objects in bundles and declarations"

// Line is the summary in one line.
func (p Plan) Line() string {
	if p.Empty() {
		return fmt.Sprintf("No changes (%d %s unchanged).", p.Unchanged, counted)
	}
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{
		{p.Summary.Create, "to create"}, {p.Summary.Change, "to change"}, {p.Summary.Recreate, "to recreate"},
		{p.Summary.Delete, "to delete"}, {p.Summary.Adopt, "to adopt"}, {p.Summary.Keep, "to give up and keep"},
		{p.Summary.Hold, "held"}, {p.Summary.Fail, "that would fail"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	return fmt.Sprintf("%s, %d unchanged (%s).", strings.Join(parts, ", "), p.Unchanged, counted)
}

func heading(item Item) string {
	s := "cluster " + item.Cluster
	if item.Component != "" {
		s += ", component " + item.Component
	}
	return s + ", bundle " + item.Bundle
}

func suffix(item Item) string {
	var notes []string
	if item.Reason != "" {
		notes = append(notes, item.Reason)
	}
	notes = append(notes, item.Consequences...)
	if len(notes) == 0 {
		return ""
	}
	return "  (" + printable(strings.ReplaceAll(strings.Join(notes, "; "), "\n", " ")) + ")"
}

func hiddenText(f Field) string { return f.Path + ": (hidden value changed)" + ownedBy(f) }

func ownedBy(f Field) string {
	if f.Manager == "" {
		return ""
	}
	return "  (owned by " + f.Manager + ")"
}

func fieldText(f Field, indent string) string {
	if f.Hidden {
		return indent + hiddenText(f) + "\n"
	}
	o, n := pair(f)
	if !strings.Contains(o, "\n") && !strings.Contains(n, "\n") {
		switch {
		case f.Old == nil:
			return indent + f.Path + ": + " + n + ownedBy(f) + "\n"
		case f.New == nil:
			return indent + f.Path + ": - " + o + ownedBy(f) + "\n"
		}
		return indent + f.Path + ": " + o + " → " + n + ownedBy(f) + "\n"
	}
	var b strings.Builder
	b.WriteString(indent + f.Path + ":" + ownedBy(f) + "\n")
	for _, line := range unified(f) {
		b.WriteString(indent + "  " + line + "\n")
	}
	return b.String()
}

// unified is a line diff with three lines of context, without file names. A value that was not there, or is not
// any more, is told line by line.
func unified(f Field) []string {
	old, new := pair(f)
	if f.Old == nil || f.New == nil {
		sign, text := "-", old
		if f.Old == nil {
			sign, text = "+", new
		}
		var lines []string
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			lines = append(lines, sign+line)
		}
		return lines
	}
	if strings.HasSuffix(old, "\n") == strings.HasSuffix(new, "\n") {
		old, new = strings.TrimSuffix(old, "\n")+"\n", strings.TrimSuffix(new, "\n")+"\n"
	}
	out := fmt.Sprint(gotextdiff.ToUnified("old", "new", old, myers.ComputeEdits("", old, new)))
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	return lines[min(2, len(lines)):] // without the names
}

// show is a value as text: short values in one line, long ones as YAML.
func show(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		if x == "" {
			return `""`
		}
		return printable(x)
	case map[string]any, []any:
		raw, err := json.Marshal(x)
		if err != nil {
			return printable(fmt.Sprint(x))
		}
		if len(raw) <= 80 {
			return string(raw)
		}
		doc, err := yaml.Marshal(x)
		if err != nil {
			return string(raw)
		}
		return strings.TrimRight(printable(string(doc)), "\n")
	}
	return fmt.Sprint(v)
}

// printable spells characters out that would do something to a terminal or hide text.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "\\u%04x", r)
	}
	return b.String()
}
