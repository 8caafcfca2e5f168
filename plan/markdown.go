package plan

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// Sizes of Markdown in bytes, for Printing.Limit: what a comment may have on the forges, less room
// for what the poster adds.
const (
	// MaxMarkdown fits everywhere: GitHub takes 65,536 characters.
	MaxMarkdown = 60000
	// MaxMarkdownGitLab is for GitLab, which takes 1,000,000 characters.
	MaxMarkdownGitLab = 900000
)

// room is left for the closing of a section and the note on what is left out.
const room = 600

// Markdown is a plan as a pull request comment of at most limit bytes.
func Markdown(p change.Plan, limit int) string {
	return Report{Landscapes: []LandscapePlan{{Plan: p}}}.Markdown(limit, "")
}

// Markdown is a report as a pull request comment of at most limit bytes: what it comes to first.
// How far it goes is folded, and so is everything by cluster, owner and component, what is the same
// in several places once. What does not fit is counted, never cut in the middle; more says how to
// see it.
func (r Report) Markdown(limit int, more string) string {
	var b strings.Builder
	title := "### Rendered changes"
	if revisions := r.revisions(); revisions != "" {
		title += " (" + cell(revisions) + ")"
	}
	b.WriteString(title + "\n\n")
	left := func() int { return limit - b.Len() - room }
	b.WriteString(bounded(r.markdownNotes(), left()/4, "> … and %d more notes.\n\n"))
	b.WriteString(cell(r.line()) + "\n")
	b.WriteString(r.markdownHandedOver(left() / 4))
	if r.Empty() {
		return b.String()
	}
	b.WriteString(r.markdownNodes(left() / 2))
	for _, f := range fates {
		rows := func(shown int) []row { return r.controlPlaneRows(f, shown) }
		b.WriteString(fittingTable(controlPlaneTitle(f), "part|cluster|whose", rows, left()/2, left()/4))
	}
	b.WriteString(fittingTable("What happens besides the changes", "what happens|cluster|objects", r.impactRows, left()/2, left()/2))
	if r.harmless() {
		b.WriteString("\nNothing restarts, and nothing is recreated or deleted.\n")
	}
	fmt.Fprintf(&b, "\n<details><summary>How far it goes, and all that changes</summary>\n")
	b.WriteString(r.markdownReach(left() / 4))
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

// A row of a comment names all that it is about; where that does not fit, the first of them.
const (
	longList  = 60
	shortList = 12
)

// fittingTable is a table with as many names in a row as there is room for: ample for all of them,
// or else space.
func fittingTable(title, columns string, rows func(shown int) []row, ample, space int) string {
	if text := table(title, columns, rows(math.MaxInt), math.MaxInt); len(text) <= ample {
		return text
	}
	if text := table(title, columns, rows(longList), math.MaxInt); len(text) <= space {
		return text
	}
	return table(title, columns, rows(shortList), space)
}

// markdownChanges are all changes, with as many names of what is the same in several places as
// there is room for, and the number of objects that are left out.
func (r Report) markdownChanges(space int) (text string, omitted int) {
	sections := r.sections()
	for i, most := range []int{longList, shortList, 1} {
		var b strings.Builder
		left, cluster := 0, ""
		for _, s := range sections {
			part, n := s.markdown(space-b.Len()-200, r.named(), most)
			left += n
			if where := s.heading(r.named()); part != "" && where != cluster {
				cluster = where
				b.WriteString("\n#### " + cell(where) + "\n")
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

// heading is where a section belongs.
func (s section) heading(named bool) string {
	if s.shared() {
		return "The same in several places"
	}
	text := s.where(named)
	return strings.ToUpper(text[:1]) + text[1:]
}

func (r Report) markdownNotes() []string {
	var out []string
	for _, note := range r.notes() {
		out = append(out, "> "+cell(note)+"\n\n")
	}
	return out
}

func (r Report) markdownHandedOver(space int) string {
	var lines []string
	for _, text := range r.handedOver() {
		lines = append(lines, "- "+cell(text)+"\n")
	}
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("\n<details><summary>Handed over to controllers, and left as they set it (%d)</summary>\n\n%s\n</details>\n", len(lines),
		bounded(lines, space-200, "\n… and %d more.\n"))
}

// bounded is as many pieces as fit, and how many do not.
func bounded(pieces []string, space int, rest string) string {
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

// shownRows of a table stand open; the others are folded.
const shownRows = 25

func (r Report) markdownNodes(space int) string {
	var b strings.Builder
	for _, g := range r.nodeGroups() {
		head := "\n#### " + cell(g.Title()) + "\n\n"
		columns, lines := "| shoot | cluster | pools | nodes at most | at a time |\n|-|-|-|-|-|\n", r.nodeLines(g.Rows)
		if len(head)+len(columns)+len(strings.Join(lines, ""))+room > space-b.Len() {
			lines = r.nodeLines(gathered(g.Rows))
		}
		const more = "\n… and %d more shoots.\n"
		if b.Len()+len(head)+len(columns) > space {
			fmt.Fprintf(&b, "\n%s.\n", cell(g.Title()))
			continue
		}
		b.WriteString(head)
		if len(lines) <= shownRows {
			b.WriteString(columns + bounded(lines, space-b.Len(), more))
			continue
		}
		fmt.Fprintf(&b, "<details><summary>%d shoots</summary>\n\n%s%s\n</details>\n", g.Shoots, columns, bounded(lines, space-b.Len(), more))
	}
	return b.String()
}

func (r Report) nodeLines(rows []nodeRow) []string {
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %d | %s |\n", cell(row.Shoot), cell(r.place(row.Landscape, row.Cluster)),
			cell(strings.Join(row.Pools, ", ")), row.Nodes, cell(row.Step)))
	}
	return lines
}

// table is rows under a title; nothing without rows.
func table(title, columns string, rows []row, space int) string {
	if len(rows) == 0 {
		return ""
	}
	names := strings.Split(columns, "|")
	head := fmt.Sprintf("\n#### %s\n\n| %s |\n|%s\n", title, strings.Join(names, " | "), strings.Repeat("-|", len(names)))
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |\n", cell(row.What), cell(row.Where), cell(row.Names)))
	}
	return head + bounded(lines, space-len(head), "\n… and %d more.\n")
}

// markdownReach says which clusters a report goes to, and whose objects it changes there.
func (r Report) markdownReach(space int) string {
	head := "\n#### How far it goes\n\n| cluster | added | changed | removed | objects of |\n|-|-|-|-|-|\n"
	var lines []string
	for _, row := range r.reachRows() {
		lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d | %s |\n", cell(row.Where), row.Added, row.Changed, row.Removed, cell(row.Owners)))
	}
	return head + bounded(lines, space-len(head), "\n… and on %d more clusters.\n")
}

// markdown folds a section, with as many blocks as fit; the objects of the rest are counted.
func (s section) markdown(space int, named bool, most int) (string, int) {
	var body strings.Builder
	title := s.title()
	if s.shared() {
		title = "objects that change alike, each shown once"
	}
	head := fmt.Sprintf("\n<details><summary>%s (%s)</summary>\n\n", escape(title), countsText(s.summary()))
	left, longest := 0, 2
	for _, b := range s.Blocks {
		if len(head)+body.Len() > space {
			left += len(b.Places)
			continue
		}
		text := b.diff(named, most)
		ticks := max(longest, longestFence(text))
		if len(head)+body.Len()+len(text)+2*ticks > space {
			left += len(b.Places)
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

var backticks = regexp.MustCompile("`+")

// longestFence is the length of the longest run of backticks: a fence in a value must not end ours.
func longestFence(s string) int {
	n := 0
	for _, run := range backticks.FindAllString(s, -1) {
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
	escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "`", "&#96;")
	cells   = strings.NewReplacer("|", "\\|", "*", "\\*", "[", "\\[", "@", "@\u200b")
)

// escape keeps text from outside from being read as markup.
func escape(s string) string { return escaper.Replace(printable(s)) }

// cell is text in a table; a mention in it notifies nobody.
func cell(s string) string { return cells.Replace(escape(s)) }

var signs = map[change.Action]string{change.Create: "+ ", change.Delete: "- ", change.Change: "! ", change.Recreate: "! ", change.Adopt: "! ", change.Keep: "! ", change.Hold: "! ", change.Fail: "! "}

// diff is one block inside a diff fence, with at most so many names of a place.
func (b block) diff(named bool, most int) string {
	var out strings.Builder
	out.WriteString(signs[b.Action] + string(b.Action) + " " + b.name() + suffixOf(b.Item) + "\n")
	for _, line := range b.elsewhere(named, most) {
		out.WriteString("  " + line + "\n")
	}
	for _, f := range b.Fields {
		if f.Hidden {
			out.WriteString("    " + hiddenText(f) + "\n")
			continue
		}
		out.WriteString("    " + printable(f.Path) + ":" + ownedBy(f) + "\n")
		for _, line := range shortened(fieldLines(f), longDiff) {
			if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, `\`) || strings.HasPrefix(line, "…") {
				out.WriteString("    " + line + "\n")
				continue
			}
			out.WriteString(line[:1] + "   " + line[1:] + "\n")
		}
	}
	return out.String()
}

// longDiff is how many lines of one field a comment shows.
const longDiff = 80

func shortened(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("… %d more lines", len(lines)-most))
}

// fieldLines are the old and the new value with their signs; of longer texts only what differs.
func fieldLines(f change.Field) []string {
	o, n := pair(f)
	if f.Old == nil || f.New == nil || strings.Contains(o, "\n") || strings.Contains(n, "\n") {
		return unified(f)
	}
	return []string{"-" + o, "+" + n}
}
