package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

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
		return enc.Encode(p)
	case FormatMarkdown:
		_, err := io.WriteString(w, Markdown(p, MaxMarkdown))
		return err
	case FormatText:
		_, err := io.WriteString(w, text(p, colored))
		return err
	}
	return fmt.Errorf("output format %q: want text, markdown or json", format)
}

var symbols = map[Action]string{Create: "+", Change: "~", Recreate: "±", Delete: "-", Adopt: "»", Hold: "!", Fail: "✗"}

func text(p Plan, colored bool) string {
	var b strings.Builder
	paint := func(action Action, s string) string {
		attr := map[Action]color.Attribute{Create: color.FgGreen, Change: color.FgYellow, Recreate: color.FgMagenta, Delete: color.FgRed, Adopt: color.FgCyan, Hold: color.FgRed, Fail: color.FgRed}[action]
		c := color.New(attr)
		if !colored {
			c.DisableColor()
		} else {
			c.EnableColor()
		}
		return c.Sprint(s)
	}
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
	b.WriteString(p.Line() + "\n")
	return b.String()
}

// Line is the summary in one line.
func (p Plan) Line() string {
	if p.Empty() {
		return fmt.Sprintf("No changes (%d objects unchanged).", p.Unchanged)
	}
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{
		{p.Summary.Create, "to create"}, {p.Summary.Change, "to change"}, {p.Summary.Recreate, "to recreate"},
		{p.Summary.Delete, "to delete"}, {p.Summary.Adopt, "to adopt"}, {p.Summary.Hold, "held"}, {p.Summary.Fail, "that would fail"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	return fmt.Sprintf("%s, %d unchanged.", strings.Join(parts, ", "), p.Unchanged)
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
	return "  (" + strings.Join(notes, "; ") + ")"
}

func fieldText(f Field, indent string) string {
	if f.Hidden {
		return indent + f.Path + ": (hidden value changed)\n"
	}
	o, n := show(f.Old), show(f.New)
	manager := ""
	if f.Manager != "" {
		manager = "  (owned by " + f.Manager + ")"
	}
	if !strings.Contains(o, "\n") && !strings.Contains(n, "\n") {
		switch {
		case f.Old == nil:
			return indent + f.Path + ": + " + n + manager + "\n"
		case f.New == nil:
			return indent + f.Path + ": - " + o + manager + "\n"
		}
		return indent + f.Path + ": " + o + " → " + n + manager + "\n"
	}
	var b strings.Builder
	b.WriteString(indent + f.Path + ":" + manager + "\n")
	for _, line := range unified(o, n) {
		b.WriteString(indent + "  " + line + "\n")
	}
	return b.String()
}

// unified is a line diff with three lines of context, without file names.
func unified(old, new string) []string {
	if !strings.HasSuffix(old, "\n") {
		old += "\n"
	}
	if !strings.HasSuffix(new, "\n") {
		new += "\n"
	}
	out := fmt.Sprint(gotextdiff.ToUnified("old", "new", old, myers.ComputeEdits("", old, new)))
	var lines []string
	for _, line := range strings.Split(strings.TrimRight(out, "\n"), "\n") {
		if strings.HasPrefix(line, "--- old") || strings.HasPrefix(line, "+++ new") {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func show(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		if x == "" {
			return `""`
		}
		return x
	case map[string]any, []any:
		raw, err := json.Marshal(x)
		if err != nil {
			return fmt.Sprint(x)
		}
		if len(raw) <= 80 {
			return string(raw)
		}
		doc, err := yaml.Marshal(x)
		if err != nil {
			return string(raw)
		}
		return strings.TrimRight(string(doc), "\n")
	}
	return fmt.Sprint(v)
}
