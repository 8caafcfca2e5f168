// SPDX-License-Identifier: Apache-2.0

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
		printer{&b, files}.printAnswer(a)
	}
	_, err := io.WriteString(w, printable.MultiLine(b.String()))
	return err
}

type printer struct {
	*strings.Builder
	files func(string) string
}

// printLine prints text under a heading and indents its further lines.
func (p printer) printLine(heading, text string) {
	lines := strings.Split(text, "\n")
	fmt.Fprintf(p, "  %-8s %s\n", heading, lines[0])
	for _, more := range lines[1:] {
		fmt.Fprintf(p, "           %s\n", more)
	}
}

func (p printer) printAnswer(a Answer) {
	about := fmt.Sprintf("%s on cluster %s", a.Subject.Object, a.Subject.Cluster)
	if a.Subject.Field != "" {
		about += ": " + a.Subject.Field
	}
	p.WriteString(printable.Line(about) + "\n")
	if a.Value != nil {
		p.printLine("value", valueText(a.Value))
	}
	heading := "written"
	for _, place := range a.WrittenAt {
		p.printLine(heading, p.printPosition(place))
		heading = ""
	}
	if a.Image != nil {
		p.printLine("image", a.Image.Name+" of "+p.printPosition(a.Image.Position))
	}
	heading = "from"
	for _, source := range a.DerivedFrom {
		p.printLine(heading, p.printSource(source))
		heading = ""
	}
	p.printLine("part of", bundleText(a))
	p.printLine("applied", deliveryText(a))
	if a.Live != nil {
		p.printLive(*a.Live)
	}
	for _, note := range a.Notes {
		p.printLine("note", note)
	}
}

func bundleText(a Answer) string {
	if a.Bundle == "" {
		return "landscape " + a.Subject.Landscape + ", which declares the object"
	}
	return fmt.Sprintf("bundle %s of component %s, for %s of landscape %s", a.Bundle, a.Component, a.Owner, a.Subject.Landscape)
}

func deliveryText(a Answer) string {
	switch {
	case a.ManagedResource == "":
		return fmt.Sprintf("directly, by %s; inventory: ConfigMap %s", a.Manager, a.Inventory)
	case a.Class == "":
		return fmt.Sprintf("by ManagedResource %s, as %s", a.ManagedResource, a.Manager)
	}
	return fmt.Sprintf("by ManagedResource %s of class %s, as %s", a.ManagedResource, a.Class, a.Manager)
}

func (p printer) printPosition(place Position) string {
	name := place.File
	if place.Kind != positionTemplate && place.Kind != positionImageVector {
		name = p.files(place.File)
	}
	if place.Line > 0 {
		name = fmt.Sprintf("%s:%d", name, place.Line)
	}
	if place.Column > 0 {
		name = fmt.Sprintf("%s:%d", name, place.Column)
	}
	if place.Kind == positionOverlay {
		name += ", an overlay"
	}
	if place.Layer != "" {
		name += ", layer " + place.Layer
	}
	if !place.IsExact {
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

func commitText(a blame.Result) string {
	if a.Commit == nil {
		return a.Reason
	}
	text := fmt.Sprintf("%.10s %s, %s: %s", a.Commit.Hash, a.Commit.Date.Format("2006-01-02"), a.Commit.Author, a.Commit.Subject)
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	return text
}

func (p printer) printSource(s SourceField) string {
	text := s.Object + ": " + s.Field
	if s.Value != nil {
		text += " = " + valueText(s.Value)
	}
	if s.Default != "" {
		text += "\n  not in Git: " + s.Default
	}
	if s.Position != nil {
		text += "\n  " + strings.ReplaceAll(p.printPosition(*s.Position), "\n", "\n  ")
	}
	return text
}

func (p printer) printLive(l LiveState) {
	text := l.Message
	if l.Value != nil {
		text = valueText(l.Value) + ": " + text
	}
	p.printLine("live", text)
	heading := "owners"
	for _, m := range l.Managers {
		text := m.Name + " (" + m.Operation
		if m.Time != nil {
			text += ", " + m.Time.Format("2006-01-02 15:04:05")
		}
		text += ")"
		if m.IsOurs {
			text += ", Pergola"
		}
		if m.IsPart {
			text += ", of a field in it"
		}
		p.printLine(heading, text)
		heading = ""
	}
	heading = "left"
	for _, h := range l.HandedOver {
		p.printLine(heading, plan.HandedOverText(h))
		heading = ""
	}
	if l.Origin != "" {
		p.printLine("origin", l.Origin)
	}
}

// maxShownValue limits a value in the text, in characters; JSON has all of it.
const maxShownValue = 1000

// valueText returns a value as one line, or as YAML if it is long.
func valueText(v *Value) string {
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
	if r := []rune(text); len(r) > maxShownValue {
		text = fmt.Sprintf("%s…\n(%d characters more; -o json shows all)", string(r[:maxShownValue]), len(r)-maxShownValue)
	}
	return text
}
