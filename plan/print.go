// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/fatih/color"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/change"
)

var actionSymbols = map[change.Action]string{change.Create: "+", change.Change: "~", change.Recreate: "±", change.Delete: "-", change.Adopt: "»", change.Keep: "=", change.Hold: "!", change.Fail: "✗"}

func (r Report) text(colored bool) string {
	var b strings.Builder
	for _, note := range r.notes() {
		b.WriteString("Note: " + escapeControls(note) + "\n")
	}
	if b.Len() > 0 && !r.IsEmpty() {
		b.WriteString("\n")
	}
	if r.IsEmpty() {
		return b.String() + escapeControls(r.summaryLine()) + "\n"
	}
	b.WriteString(r.summaryText())
	cluster := ""
	for _, s := range r.sections() {
		if where := s.heading(r.hasNames()); where != cluster {
			cluster = where
			b.WriteString(escapeControls(where) + "\n")
		}
		indent := "  "
		if !s.isShared() {
			b.WriteString("  " + escapeControls(s.title()) + "\n")
			indent = "    "
		}
		for _, block := range s.Blocks {
			b.WriteString(block.text(indent, colored, r.hasNames()))
		}
		b.WriteString("\n")
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if strings.Count(text, "\n") > terminalLines {
		text += "\n" + escapeControls(r.summaryLine()) + "\n" // again at the end, near the prompt
	}
	return text
}

// terminalLines is the number of lines of a usual terminal; the start of a longer text scrolls
// away.
const terminalLines = 24

func (b itemGroup) text(indent string, colored, named bool) string {
	out := indent + colorize(b.Action, actionSymbols[b.Action]+" "+b.name()+noteSuffix(b.Item), colored) + "\n"
	for _, line := range b.otherLocations(named, longListNames) {
		out += indent + "    " + line + "\n"
	}
	for _, f := range b.Fields {
		out += fieldText(f, indent+"    ")
	}
	return out
}

var colors = map[change.Action]color.Attribute{change.Create: color.FgGreen, change.Change: color.FgYellow, change.Recreate: color.FgMagenta, change.Delete: color.FgRed,
	change.Adopt: color.FgCyan, change.Keep: color.FgCyan, change.Hold: color.FgRed, change.Fail: color.FgRed}

func colorize(action change.Action, s string, colored bool) string {
	if !colored {
		return s
	}
	c := color.New(colors[action])
	c.EnableColor()
	return c.Sprint(s)
}

// summaryText returns the summary of a report: its reach, and effects beyond the changed objects.
func (r Report) summaryText() string {
	var b strings.Builder
	b.WriteString(escapeControls(r.summaryLine()) + "\n")
	for _, row := range r.affectedRows() {
		fmt.Fprintf(&b, "  on %s %d %s%s\n", escapeControls(row.Location), row.Objects, plural(row.Objects, "object", "objects"), escapeControls(withPrefix(": ", row.Owners)))
	}
	for _, g := range r.nodeGroups() {
		fmt.Fprintf(&b, "  ! %s\n", oneLine(g.Title()))
		for _, row := range g.Rows {
			fmt.Fprintf(&b, "      %s on %s, %s %s: up to %d%s\n", escapeControls(row.Shoot), escapeControls(r.clusterLabel(row.Landscape, row.Cluster)),
				plural(len(row.Pools), "pool", "pools"), escapeControls(strings.Join(row.Pools, ", ")), row.Nodes, escapeControls(withPrefix(", ", row.RolloutStep)))
		}
	}
	for _, f := range podEffects {
		for _, row := range r.controlPlaneRows(f, maxShownNames) {
			fmt.Fprintf(&b, "  ! %ss %s of the control plane, on %s: %s\n", f, escapeControls(row.What), escapeControls(row.Where), escapeControls(row.Names))
		}
	}
	for _, row := range r.impactRows(maxShownNames) {
		fmt.Fprintf(&b, "  ! %s, on %s: %s\n", oneLine(row.What), escapeControls(row.Where), escapeControls(row.Names))
	}
	b.WriteString("\n")
	return b.String()
}

func oneLine(s string) string { return escapeControls(strings.ReplaceAll(s, "\n", " ")) }

// withPrefix adds a prefix to a text that is not empty.
func withPrefix(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// countedObjects describes which objects a plan counts. ManagedResources and Secrets that deliver
// bundles are not counted, because they follow from the bundles.
const countedObjects = "objects in bundles and declarations"

// SummaryLine returns the summary in one line.
func SummaryLine(p change.Plan) string {
	switch {
	case p.IsEmpty() && p.ChangedSettings > 0:
		return fmt.Sprintf("No object changes (%d %s unchanged), but %d %s of landscape.yaml: see the notes.", p.Unchanged, countedObjects, p.ChangedSettings, plural(p.ChangedSettings, "setting", "settings"))
	case p.IsEmpty() && p.UnreadableSecrets > 0:
		return fmt.Sprintf("No changes in the rest (%d %s unchanged, %d left out: see the notes).", p.Unchanged, countedObjects, p.UnreadableSecrets)
	case p.IsEmpty():
		return fmt.Sprintf("No changes (%d %s unchanged).", p.Unchanged, countedObjects)
	}
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{
		{p.Summary.Create, "to create"}, {p.Summary.Change, "to change"}, {p.Summary.Recreate, "to recreate"},
		{p.Summary.Delete, "to delete"}, {p.Summary.Adopt, "to adopt"}, {p.Summary.Keep, "no longer managed"},
		{p.Summary.Hold, "held"}, {p.Summary.Fail, "would fail"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	return fmt.Sprintf("%s, %d unchanged (%s).", strings.Join(parts, ", "), p.Unchanged, countedObjects)
}

// name returns the name of a block's object, and its former name.
func (b itemGroup) name() string {
	text := b.Object.String()
	if b.PreviousName != "" {
		text += ", formerly " + b.PreviousName
	}
	return oneLine(text)
}

func noteSuffix(i change.Item) string {
	var notes []string
	if i.Reason != "" {
		notes = append(notes, i.Reason)
	}
	if i.Approval != "" {
		notes = append(notes, "its approval is "+i.Approval)
	}
	notes = append(notes, i.Consequences...)
	if len(notes) == 0 {
		return ""
	}
	return "  (" + oneLine(strings.Join(notes, "; ")) + ")"
}

// otherLocations lists the places of a block by cluster, with at most that many names each.
func (b itemGroup) otherLocations(named bool, most int) []string {
	if len(b.Locations) < 2 {
		return nil
	}
	type group struct{ landscape, cluster string }
	var order []group
	places := map[group][]itemLocation{}
	for _, p := range b.Locations {
		g := group{p.Landscape, p.Cluster}
		if places[g] == nil {
			order = append(order, g)
		}
		places[g] = append(places[g], p)
	}
	out := []string{fmt.Sprintf("the same on %d objects:", len(b.Locations))}
	for i, g := range order {
		if i == longListNames && len(order) > longListNames+1 {
			out = append(out, fmt.Sprintf("and on %d more clusters", len(order)-i))
			break
		}
		where := g.cluster
		if named {
			where = g.landscape + ": " + g.cluster
		}
		out = append(out, oneLine(fmt.Sprintf("on %s: %s", where, truncatedList(itemLocationNames(places[g]), most))))
	}
	return out
}

// itemLocationNames returns the owners of objects if each object has its own Shoot, and the object
// names otherwise.
func itemLocationNames(spots []itemLocation) []string {
	owners, objects := map[string]bool{}, make([]string, 0, len(spots))
	var whose []string
	for _, s := range spots {
		objects = append(objects, strings.TrimPrefix(s.Object.String(), s.Object.Kind+" "))
		if strings.HasPrefix(s.Object.Namespace+s.Object.Name, "shoot--") && strings.HasPrefix(s.Owner, "shoot ") {
			owners[s.Owner] = true
			whose = append(whose, s.Owner)
		}
	}
	if len(owners) == len(spots) {
		return whose
	}
	return objects
}

// hiddenText describes a difference with confidential values.
func hiddenText(f change.Field) string {
	kind, hashes := "hidden", ""
	switch {
	case f.Encrypted:
		kind = "encrypted"
	case f.OldHash != "" && f.NewHash != "":
		hashes = ": " + f.OldHash + " → " + f.NewHash
	case f.NewHash != "":
		return fmt.Sprintf("%s: (hidden value added: %s)%s", escapeControls(f.Path), f.NewHash, managerSuffix(f))
	case f.OldHash != "":
		return fmt.Sprintf("%s: (hidden value removed: %s)%s", escapeControls(f.Path), f.OldHash, managerSuffix(f))
	}
	return fmt.Sprintf("%s: (%s value changed%s)%s", escapeControls(f.Path), kind, hashes, managerSuffix(f))
}

// countsText formats the counts: "1 added, 2 changed".
func countsText(s change.Summary) string {
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{{s.Create, "added"}, {s.Change, "changed"}, {s.Recreate, "recreated"}, {s.Delete, "deleted"}, {s.Adopt, "adopted"}, {s.Keep, "no longer managed"},
		{s.Hold, "held"}, {s.Fail, "failing"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	return strings.Join(parts, ", ")
}

func managerSuffix(f change.Field) string {
	if f.Manager == "" {
		return ""
	}
	return "  (owned by " + f.Manager + ")"
}

func fieldText(f change.Field, indent string) string {
	if f.Hidden {
		return indent + hiddenText(f) + "\n"
	}
	o, n := valuePair(f)
	f.Path = escapeControls(f.Path)
	if !strings.Contains(o, "\n") && !strings.Contains(n, "\n") {
		switch {
		case f.Old == nil:
			return indent + f.Path + ": + " + n + managerSuffix(f) + "\n"
		case f.New == nil:
			return indent + f.Path + ": - " + o + managerSuffix(f) + "\n"
		}
		return indent + f.Path + ": " + o + " → " + n + managerSuffix(f) + "\n"
	}
	var b strings.Builder
	b.WriteString(indent + f.Path + ":" + managerSuffix(f) + "\n")
	for _, line := range lineDiff(f) {
		b.WriteString(indent + "  " + line + "\n")
	}
	return b.String()
}

// formatValue formats a value: short values in one line, long ones as YAML.
func formatValue(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		if x == "" {
			return `""`
		}
		return escapeControls(x)
	case map[string]any, []any:
		raw, err := json.Marshal(x)
		if err != nil {
			return escapeControls(fmt.Sprint(x))
		}
		if len(raw) <= 80 {
			return string(raw)
		}
		doc, err := yaml.Marshal(x)
		if err != nil {
			return string(raw)
		}
		return strings.TrimRight(escapeControls(string(doc)), "\n")
	}
	return fmt.Sprint(v)
}

// escapeControls escapes characters that control a terminal or hide text.
func escapeControls(s string) string {
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
