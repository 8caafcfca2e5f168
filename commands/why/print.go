package why

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/source/blame"
)

// Print writes answers as text. files maps a file of a landscape to its printed name.
func Print(w io.Writer, answers []Answer, files func(string) string) error {
	var b strings.Builder
	for i, a := range answers {
		if i > 0 {
			b.WriteString("\n")
		}
		printer{&b, files}.answer(a)
	}
	_, err := io.WriteString(w, printable.MultiLine(b.String()))
	return err
}

type printer struct {
	*strings.Builder
	files func(string) string
}

// line prints text under a heading and indents its further lines.
func (p printer) line(heading, text string) {
	lines := strings.Split(text, "\n")
	fmt.Fprintf(p, "  %-8s %s\n", heading, lines[0])
	for _, more := range lines[1:] {
		fmt.Fprintf(p, "           %s\n", more)
	}
}

func (p printer) answer(a Answer) {
	about := fmt.Sprintf("%s on cluster %s", a.Asked.Object, a.Asked.Cluster)
	if a.Asked.Field != "" {
		about += ": " + a.Asked.Field
	}
	p.WriteString(printable.Line(about) + "\n")
	if a.Value != nil {
		p.line("value", show(a.Value))
	}
	heading := "written"
	for _, place := range a.Written {
		p.line(heading, p.place(place))
		heading = ""
	}
	if a.Image != nil {
		p.line("image", a.Image.Name+" of "+p.place(a.Image.Place))
	}
	heading = "from"
	for _, source := range a.From {
		p.line(heading, p.source(source))
		heading = ""
	}
	p.line("part of", partOf(a))
	p.line("applied", applied(a))
	if a.Live != nil {
		p.live(*a.Live)
	}
	for _, note := range a.Notes {
		p.line("note", note)
	}
}

func partOf(a Answer) string {
	if a.Bundle == "" {
		return "landscape " + a.Asked.Landscape + ", which declares the object"
	}
	return fmt.Sprintf("bundle %s of component %s, for %s of landscape %s", a.Bundle, a.Component, a.Owner, a.Asked.Landscape)
}

func applied(a Answer) string {
	switch {
	case a.ManagedResource == "":
		return fmt.Sprintf("directly, by %s; inventory: ConfigMap %s", a.Manager, a.Inventory)
	case a.Class == "":
		return fmt.Sprintf("by ManagedResource %s, as %s", a.ManagedResource, a.Manager)
	}
	return fmt.Sprintf("by ManagedResource %s of class %s, as %s", a.ManagedResource, a.Class, a.Manager)
}

func (p printer) place(place Place) string {
	name := place.File
	if place.What != whatTemplate && place.What != whatVector {
		name = p.files(place.File)
	}
	if place.Line > 0 {
		name = fmt.Sprintf("%s:%d", name, place.Line)
	}
	if place.Column > 0 {
		name = fmt.Sprintf("%s:%d", name, place.Column)
	}
	if place.What == whatOverlay {
		name += ", an overlay"
	}
	if place.Layer != "" {
		name += ", layer " + place.Layer
	}
	if !place.Exact {
		name += " (around it)"
	}
	if place.Text != "" {
		name += "\n  " + place.Text
	}
	if place.Change != nil {
		name += "\n  " + commitText(*place.Change)
	}
	return name
}

func commitText(a blame.Answer) string {
	if a.Commit == nil {
		return a.Reason
	}
	text := fmt.Sprintf("%.10s %s, %s: %s", a.Commit.Hash, a.Commit.Date.Format("2006-01-02"), a.Commit.Author, a.Commit.Subject)
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	return text
}

func (p printer) source(s Source) string {
	text := s.Object + ": " + s.Field
	if s.Value != nil {
		text += " = " + show(s.Value)
	}
	if s.Default != "" {
		text += "\n  not in Git: " + s.Default
	}
	if s.Place != nil {
		text += "\n  " + strings.ReplaceAll(p.place(*s.Place), "\n", "\n  ")
	}
	return text
}

func (p printer) live(l Live) {
	text := l.Message
	if l.Value != nil {
		text = show(l.Value) + ": " + text
	}
	p.line("live", text)
	heading := "owners"
	for _, m := range l.Managers {
		text := m.Name + " (" + m.Operation
		if m.Time != nil {
			text += ", " + m.Time.Format("2006-01-02 15:04:05")
		}
		text += ")"
		if m.Ours {
			text += ", Pergola"
		}
		if m.Part {
			text += ", of something in it"
		}
		p.line(heading, text)
		heading = ""
	}
	heading = "left"
	for _, h := range l.HandedOver {
		p.line(heading, plan.HandedOverText(h))
		heading = ""
	}
	if l.Origin != "" {
		p.line("origin", l.Origin)
	}
}

// maxShown limits a value in the text, in characters; JSON has all of it.
const maxShown = 1000

// show returns a value as one line, or as YAML if it is long.
func show(v *Value) string {
	if v.Hidden {
		return "(hidden)"
	}
	if text, ok := v.Value.(string); ok && !strings.Contains(text, "\n") && text != "" {
		return text
	}
	raw, err := json.Marshal(v.Value)
	if err != nil {
		return fmt.Sprint(v.Value)
	}
	if len(raw) <= 100 {
		return string(raw)
	}
	text := string(raw)
	if doc, err := yaml.Marshal(v.Value); err == nil {
		text = "\n" + strings.TrimSpace(string(doc))
	}
	if r := []rune(text); len(r) > maxShown {
		text = fmt.Sprintf("%s…\n(%d characters more; -o json shows all)", string(r[:maxShown]), len(r)-maxShown)
	}
	return text
}
