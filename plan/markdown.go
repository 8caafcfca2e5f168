// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// Sizes of Markdown in bytes, for Printing.Limit: the limits of Git hosts for comments, less a
// reserve for additions.
const (
	// MaxMarkdown fits everywhere: GitHub takes 65,536 characters.
	MaxMarkdown = 60000
	// MaxMarkdownGitLab is for GitLab, which takes 1,000,000 characters.
	MaxMarkdownGitLab = 900000
)

// reservedBytes is a reserve, in bytes, for closing a section and the note on omissions.
const reservedBytes = 600

// Markdown is a plan as a pull request comment of at most limit bytes.
func Markdown(p change.Plan, limit int) string {
	return Report{Landscapes: []LandscapePlan{{Plan: p}}}.Markdown(limit, "")
}

// Markdown formats a report as a pull request comment of at most limit bytes, with its summary
// first. The reach and all changes are folded, and shared changes appear once. Omitted parts are
// counted, never truncated; more explains how to see them.
func (r Report) Markdown(limit int, more string) string {
	var b strings.Builder
	title := "### Rendered changes"
	if revisions := r.revisions(); revisions != "" {
		title += " (" + escapeCell(revisions) + ")"
	}
	b.WriteString(title + "\n\n")
	left := func() int { return limit - b.Len() - reservedBytes }
	b.WriteString(joinFitting(r.markdownNotes(), left()/4, "> … and %d more notes.\n\n"))
	b.WriteString(escapeCell(r.summaryLine()) + "\n")
	b.WriteString(r.markdownHandedOver(left() / 4))
	if r.IsEmpty() {
		return b.String()
	}
	b.WriteString(r.markdownNodes(left() / 2))
	for _, f := range podEffects {
		rows := func(shown int) []tableRow { return r.controlPlaneRows(f, shown) }
		b.WriteString(fittingTable(controlPlaneTitle(f), "part|cluster|owner", rows, left()/2, left()/4))
	}
	b.WriteString(fittingTable("Effects besides the changes", "effect|cluster|objects", r.impactRows, left()/2, left()/2))
	if r.isHarmless() {
		b.WriteString("\nNothing restarts, and nothing is recreated or deleted.\n")
	}
	fmt.Fprintf(&b, "\n<details><summary>Affected clusters and all changes</summary>\n")
	b.WriteString(r.markdownAffected(left() / 4))
	changes, omitted := r.markdownChanges(left())
	b.WriteString(changes + "\n</details>\n")
	if omitted > 0 {
		if more == "" {
			more = "run `pergola diff` to see them"
		}
		fmt.Fprintf(&b, "\n%d more %s not fit into a comment: %s.\n", omitted, plural(omitted, "object does", "objects do"), more)
	}
	return b.String()
}

// Names in a table row, if not all of them fit.
const (
	longListNames  = 60
	shortListNames = 12
)

// fittingTable returns a table with all names if it fits into ample bytes, or else with fewer names
// in space bytes.
func fittingTable(title, columns string, rows func(shown int) []tableRow, ample, space int) string {
	if text := markdownTable(title, columns, rows(math.MaxInt), math.MaxInt); len(text) <= ample {
		return text
	}
	if text := markdownTable(title, columns, rows(longListNames), math.MaxInt); len(text) <= space {
		return text
	}
	return markdownTable(title, columns, rows(shortListNames), space)
}

// markdownChanges returns all changes, with as many names of shared changes as fit, and the number
// of omitted objects.
func (r Report) markdownChanges(space int) (text string, omitted int) {
	sections := r.sections()
	for i, most := range []int{longListNames, shortListNames, 1} {
		var b strings.Builder
		left, cluster := 0, ""
		for _, s := range sections {
			part, n := s.markdown(space-b.Len()-200, r.hasNames(), most)
			left += n
			if where := s.heading(r.hasNames()); part != "" && where != cluster {
				cluster = where
				b.WriteString("\n#### " + escapeCell(where) + "\n")
			}
			b.WriteString(part)
		}
		if i == 0 || left < omitted {
			text, omitted = b.String(), left
		}
		if omitted == 0 {
			break
		}
	}
	return text, omitted
}

// heading names the place of a section.
func (s section) heading(named bool) string {
	if s.isShared() {
		return "The same in several places"
	}
	text := s.clusterLabel(named)
	return strings.ToUpper(text[:1]) + text[1:]
}

func (r Report) markdownNotes() []string {
	var out []string
	for _, note := range r.notes() {
		out = append(out, "> "+escapeCell(note)+"\n\n")
	}
	return out
}

func (r Report) markdownHandedOver(space int) string {
	var lines []string
	for _, text := range r.handedOver() {
		lines = append(lines, "- "+escapeCell(text)+"\n")
	}
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("\n<details><summary>Handed over to controllers, and left as they set it (%d)</summary>\n\n%s\n</details>\n", len(lines),
		joinFitting(lines, space-200, "\n… and %d more.\n"))
}

// joinFitting returns the pieces that fit into space, and counts the rest.
func joinFitting(pieces []string, space int, rest string) string {
	var b strings.Builder
	left := 0
	for _, piece := range pieces {
		if b.Len()+len(piece) > space {
			left++
			continue
		}
		b.WriteString(piece)
	}
	if left > 0 {
		fmt.Fprintf(&b, rest, left)
	}
	return b.String()
}

// maxOpenRows is the largest number of rows of an unfolded table.
const maxOpenRows = 25

func (r Report) markdownNodes(space int) string {
	var b strings.Builder
	for _, g := range r.nodeGroups() {
		head := "\n#### " + escapeCell(g.Title()) + "\n\n"
		columns, lines := "| shoot | cluster | pools | nodes at most | at a time |\n|-|-|-|-|-|\n", r.nodeLines(g.Rows)
		if len(head)+len(columns)+len(strings.Join(lines, ""))+reservedBytes > space-b.Len() {
			lines = r.nodeLines(mergeRows(g.Rows))
		}
		const more = "\n… and %d more shoots.\n"
		if b.Len()+len(head)+len(columns) > space {
			fmt.Fprintf(&b, "\n%s.\n", escapeCell(g.Title()))
			continue
		}
		b.WriteString(head)
		if len(lines) <= maxOpenRows {
			b.WriteString(columns + joinFitting(lines, space-b.Len(), more))
			continue
		}
		fmt.Fprintf(&b, "<details><summary>%d shoots</summary>\n\n%s%s\n</details>\n", g.Shoots, columns, joinFitting(lines, space-b.Len(), more))
	}
	return b.String()
}

func (r Report) nodeLines(rows []nodeRow) []string {
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %d | %s |\n", escapeCell(row.Shoot), escapeCell(r.clusterLabel(row.Landscape, row.Cluster)),
			escapeCell(strings.Join(row.Pools, ", ")), row.Nodes, escapeCell(row.RolloutStep)))
	}
	return lines
}

// markdownTable returns rows under a title, or nothing without rows.
func markdownTable(title, columns string, rows []tableRow, space int) string {
	if len(rows) == 0 {
		return ""
	}
	names := strings.Split(columns, "|")
	head := fmt.Sprintf("\n#### %s\n\n| %s |\n|%s\n", title, strings.Join(names, " | "), strings.Repeat("-|", len(names)))
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |\n", escapeCell(row.What), escapeCell(row.Where), escapeCell(row.Names)))
	}
	return head + joinFitting(lines, space-len(head), "\n… and %d more.\n")
}

// markdownAffected lists the affected clusters and owners.
func (r Report) markdownAffected(space int) string {
	head := "\n#### Affected clusters\n\n| cluster | added | changed | removed | objects of |\n|-|-|-|-|-|\n"
	var lines []string
	for _, row := range r.affectedRows() {
		lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d | %s |\n", escapeCell(row.Location), row.Added, row.Changed, row.Removed, escapeCell(row.Owners)))
	}
	return head + joinFitting(lines, space-len(head), "\n… and on %d more clusters.\n")
}

// markdown returns a folded section with the blocks that fit, and the number of omitted objects.
func (s section) markdown(space int, named bool, most int) (string, int) {
	var body strings.Builder
	title := s.title()
	if s.isShared() {
		title = "objects that change alike, each shown once"
	}
	head := fmt.Sprintf("\n<details><summary>%s (%s)</summary>\n\n", escape(title), countsText(s.summary()))
	left, longest := 0, 2
	for _, b := range s.Blocks {
		if len(head)+body.Len() > space {
			left += len(b.Locations)
			continue
		}
		text := b.markdownDiff(named, most)
		ticks := max(longest, longestFence(text))
		if len(head)+body.Len()+len(text)+2*ticks > space {
			left += len(b.Locations)
			continue
		}
		body.WriteString(text)
		longest = ticks
	}
	if body.Len() == 0 {
		return "", left
	}
	fence := strings.Repeat("`", longest+1)
	return fmt.Sprintf("%s%sdiff\n%s%s\n</details>\n", head, fence, body.String(), fence), left
}

var backtickPattern = regexp.MustCompile("`+")

// longestFence returns the length of the longest run of backticks: a value must not end our fence.
func longestFence(s string) int {
	n := 0
	for _, run := range backtickPattern.FindAllString(s, -1) {
		n = max(n, len(run))
	}
	return n
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

var (
	escaper     = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "`", "&#96;")
	cellEscaper = strings.NewReplacer("|", "\\|", "*", "\\*", "[", "\\[", "@", "@\u200b")
)

// escape prevents text from being read as markup.
func escape(s string) string { return escaper.Replace(escapeControls(s)) }

// escapeCell escapes text for a table, so that mentions notify no one.
func escapeCell(s string) string { return cellEscaper.Replace(escape(s)) }

var actionDiffSigns = map[change.Action]string{change.Create: "+ ", change.Delete: "- ", change.Change: "! ", change.Recreate: "! ", change.Adopt: "! ", change.Keep: "! ", change.Hold: "! ", change.Fail: "! "}

// markdownDiff returns a block for a diff fence, with at most that many names per place.
func (b itemGroup) markdownDiff(named bool, most int) string {
	var out strings.Builder
	out.WriteString(actionDiffSigns[b.Action] + string(b.Action) + " " + b.name() + noteSuffix(b.Item) + "\n")
	for _, line := range b.otherLocations(named, most) {
		out.WriteString("  " + line + "\n")
	}
	for _, f := range b.Fields {
		if f.Hidden {
			out.WriteString("    " + hiddenText(f) + "\n")
			continue
		}
		out.WriteString("    " + escapeControls(f.Path) + ":" + managerSuffix(f) + "\n")
		for _, line := range truncateLines(fieldLines(f), maxFieldLines) {
			if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, `\`) || strings.HasPrefix(line, "…") {
				out.WriteString("    " + line + "\n")
				continue
			}
			out.WriteString(line[:1] + "   " + line[1:] + "\n")
		}
	}
	return out.String()
}

// maxFieldLines is the largest number of lines per field in a comment.
const maxFieldLines = 80

func truncateLines(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("… %d more lines", len(lines)-most))
}

// fieldLines returns both values with signs; a diff for longer texts.
func fieldLines(f change.Field) []string {
	o, n := valuePair(f)
	if f.Old == nil || f.New == nil || strings.Contains(o, "\n") || strings.Contains(n, "\n") {
		return lineDiff(f)
	}
	return []string{"-" + o, "+" + n}
}
