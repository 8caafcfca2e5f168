package plan

import (
	"fmt"
	"strings"
)

// MaxMarkdown is the size a pull request comment may have on the common forges
// (GitHub: 65,536 characters), less room for what the poster adds.
const MaxMarkdown = 60000

// Markdown is a plan as a pull request comment: deletions and recreations first, then by
// component, folded. What does not fit is counted, never cut in the middle.
func Markdown(p Plan, limit int) string {
	var b strings.Builder
	title := "### Rendered changes"
	if p.From != "" || p.To != "" {
		title += fmt.Sprintf(" (%s → %s)", p.From, p.To)
	}
	b.WriteString(title + "\n\n" + p.Line() + "\n")
	if risky := risks(p); risky != "" {
		b.WriteString("\n" + risky)
	}
	group, body := "", []string{}
	omitted := 0
	flush := func() {
		if group == "" {
			return
		}
		section := fmt.Sprintf("\n<details><summary>%s (%d)</summary>\n\n```diff\n%s```\n</details>\n", group, len(body), strings.Join(body, ""))
		if b.Len()+len(section) > limit {
			omitted += len(body)
		} else {
			b.WriteString(section)
		}
		body = nil
	}
	for _, item := range p.Items {
		if g := heading(item); g != group {
			flush()
			group = g
		}
		body = append(body, diffBlock(item))
	}
	flush()
	if omitted > 0 {
		fmt.Fprintf(&b, "\n%d more objects do not fit into a comment: run `pergola diff` to see them.\n", omitted)
	}
	return b.String()
}

func risks(p Plan) string {
	var b strings.Builder
	for _, item := range p.Items {
		if item.Action == Delete || item.Action == Recreate || item.Action == Hold || item.Action == Fail {
			if b.Len() == 0 {
				b.WriteString("| | object | cluster | |\n|-|-|-|-|\n")
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", item.Action, cell(item.Object.String()), cell(item.Cluster), cell(strings.TrimPrefix(suffix(item), "  ")))
		}
	}
	return b.String()
}

func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s)
}

// diffBlock is one object inside a diff fence; a fence in a value must not end ours.
func diffBlock(item Item) string {
	var b strings.Builder
	sign := map[Action]string{Create: "+ ", Delete: "- ", Change: "! ", Recreate: "! ", Adopt: "! ", Hold: "! ", Fail: "! "}[item.Action]
	b.WriteString(sign + string(item.Action) + " " + item.Object.String() + suffix(item) + "\n")
	for _, f := range item.Fields {
		if f.Hidden {
			b.WriteString("    " + f.Path + ": (hidden value changed)\n")
			continue
		}
		b.WriteString("    " + f.Path + ":\n")
		for _, line := range prefixed("-   ", f.Old) {
			b.WriteString(line)
		}
		for _, line := range prefixed("+   ", f.New) {
			b.WriteString(line)
		}
	}
	return strings.ReplaceAll(b.String(), "```", "ˋˋˋ")
}

func prefixed(prefix string, v any) []string {
	if v == nil {
		return nil
	}
	var out []string
	for _, line := range strings.Split(show(v), "\n") {
		out = append(out, prefix+line+"\n")
	}
	return out
}
