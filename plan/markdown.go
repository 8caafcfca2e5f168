package plan

import (
	"fmt"
	"regexp"
	"strings"
)

// MaxMarkdown is the size a pull request comment may have on the common forges (GitHub: 65,536 characters), less
// room for what the poster adds.
const MaxMarkdown = 60000

// room is left for the closing of a section and the note on what is left out.
const room = 400

// Markdown is a plan as a pull request comment of at most limit bytes: what it comes to first, then
// everything by cluster and component, folded. What does not fit is counted, never cut in the middle.
func Markdown(p Plan, limit int) string {
	var b strings.Builder
	title := "### Rendered changes"
	if p.From != "" || p.To != "" {
		title += fmt.Sprintf(" (%s → %s)", escape(p.From), escape(p.To))
	}
	b.WriteString(title + "\n\n")
	for _, note := range p.Notes {
		b.WriteString("> " + cell(note) + "\n\n")
	}
	b.WriteString(p.Line() + "\n")
	b.WriteString(reach(p, (limit-b.Len()-room)/4))
	b.WriteString(risks(p, (limit-b.Len()-room)/2))
	omitted := 0
	for _, group := range grouped(p.Items) {
		section, left := section(group, limit-b.Len()-room)
		b.WriteString(section)
		omitted += left
	}
	if omitted > 0 {
		fmt.Fprintf(&b, "\n%d more %s not fit into a comment: run `pergola diff` to see them.\n", omitted, plural(omitted, "object does", "objects do"))
	}
	return b.String()
}

// grouped are the items by heading, in their order.
func grouped(items []Item) [][]Item {
	var out [][]Item
	for i, item := range items {
		if i == 0 || heading(item) != heading(items[i-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], item)
	}
	return out
}

// section folds the items of one bundle, as many as fit; the rest is counted.
func section(items []Item, space int) (string, int) {
	var body strings.Builder
	head := fmt.Sprintf("\n<details><summary>%s (%d)</summary>\n\n", escape(heading(items[0])), len(items))
	shown := 0
	for _, item := range items {
		block := diffBlock(item)
		// Fences are at most a few characters longer than what they enclose.
		if len(head)+body.Len()+len(block)+2*longestFence(body.String()+block) > space {
			continue
		}
		body.WriteString(block)
		shown++
	}
	if shown == 0 {
		return "", len(items)
	}
	fence := strings.Repeat("`", max(3, longestFence(body.String())+1))
	return fmt.Sprintf("%s%sdiff\n%s%s\n</details>\n", head, fence, body.String(), fence), len(items) - shown
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

// risks is the table of what a reviewer must not miss: what happens beyond the objects that change, the worst first.
func risks(p Plan, space int) string {
	var b strings.Builder
	left := 0
	for _, impact := range p.Impacts() {
		if b.Len() == 0 {
			b.WriteString("\n| what happens | cluster | objects |\n|-|-|-|\n")
		}
		row := fmt.Sprintf("| %s | %s | %s |\n", cell(impact.What), cell(impact.Cluster), cell(impact.objects()))
		if b.Len()+len(row) > space {
			left++
			continue
		}
		b.WriteString(row)
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n… and %d more.\n", left)
	}
	return b.String()
}

// reach says which clusters a plan goes to, and whose objects it changes there.
func reach(p Plan, space int) string {
	var b strings.Builder
	left := 0
	for _, r := range p.Reaches() {
		line := "- on " + cell(r.Cluster) + " " + cell(r.extent()) + "\n"
		if b.Len()+len(line) > space {
			left++
			continue
		}
		b.WriteString(line)
	}
	if left > 0 {
		fmt.Fprintf(&b, "- and on %d more %s\n", left, plural(left, "cluster", "clusters"))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
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

var signs = map[Action]string{Create: "+ ", Delete: "- ", Change: "! ", Recreate: "! ", Adopt: "! ", Keep: "! ", Hold: "! ", Fail: "! "}

// diffBlock is one object inside a diff fence.
func diffBlock(item Item) string {
	var b strings.Builder
	b.WriteString(signs[item.Action] + string(item.Action) + " " + item.Object.String() + suffix(item) + "\n")
	for _, f := range item.Fields {
		if f.Hidden {
			b.WriteString("    " + hiddenText(f) + "\n")
			continue
		}
		b.WriteString("    " + f.Path + ":" + ownedBy(f) + "\n")
		for _, line := range fieldLines(f) {
			if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, `\`) {
				b.WriteString("    " + line + "\n")
				continue
			}
			b.WriteString(line[:1] + "   " + line[1:] + "\n")
		}
	}
	return b.String()
}

// fieldLines are the old and the new value with their signs; of longer texts only what differs.
func fieldLines(f Field) []string {
	o, n := pair(f)
	if f.Old == nil || f.New == nil || strings.Contains(o, "\n") || strings.Contains(n, "\n") {
		return unified(f)
	}
	return []string{"-" + o, "+" + n}
}
