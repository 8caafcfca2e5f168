// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"strings"
)

// commentLimits are the limits of a comment, in bytes. GitHub accepts 65,536 characters, and GitLab
// accepts 1,000,000. Gitea and Forgejo store up to 65,535 bytes on each of their databases.
var commentLimits = map[string]int{GitHub: 65_000, GitLab: 950_000, Gitea: 65_000, Forgejo: 65_000}

// reservedBytes is reserved for the closing tags and the hint, in bytes.
const reservedBytes = 2_000

// truncateMarkdown cuts Markdown after a line, closes open code blocks and folded parts, and
// returns the number of missing lines.
func truncateMarkdown(body string, limit int, whole string) (string, int) {
	if len(body) <= limit {
		return body, 0
	}
	if whole == "" {
		whole = "the output of the job"
	}
	lines := strings.SplitAfter(body, "\n")
	size, kept, fence := 0, 0, ""
	var details []string
	for _, line := range lines {
		if size+len(line) > limit-reservedBytes || len(details) > 50 {
			break
		}
		size += len(line)
		kept++
		fence = openFenceAfter(fence, line)
		if fence == "" {
			details = openDetailsAfter(details, line)
		}
	}
	var out strings.Builder
	out.WriteString(strings.Join(lines[:kept], ""))
	if kept == 0 { // one line that exceeds the limit
		out.WriteString(strings.ToValidUTF8(lines[0][:limit-reservedBytes], "") + "\n")
	}
	if fence != "" {
		out.WriteString(fence + "\n")
	}
	out.WriteString(strings.Repeat("\n</details>\n", len(details)))
	missing := len(lines) - kept
	if lines[len(lines)-1] == "" {
		missing--
	}
	fmt.Fprintf(&out, "\n**Cut here:** %d more lines do not fit into a comment. All of it is in %s.\n", missing, whole)
	return out.String(), missing
}

// openFenceAfter returns the fence of the code block that is open after a line, or "" for none.
func openFenceAfter(open, line string) string {
	text := strings.TrimLeft(line, " ")
	if len(line)-len(text) > 3 {
		return open
	}
	for _, mark := range []string{"`", "~"} {
		run := text[:len(text)-len(strings.TrimLeft(text, mark))]
		switch rest := strings.TrimSpace(text[len(run):]); {
		case len(run) < 3:
		case open == "" && (mark == "~" || !strings.Contains(rest, "`")):
			return run
		case open != "" && strings.HasPrefix(run, open) && rest == "":
			return ""
		}
	}
	return open
}

// openDetailsAfter returns the folded parts that are open after a line.
func openDetailsAfter(open []string, line string) []string {
	for range strings.Count(line, "<details") {
		open = append(open, "details")
	}
	return open[:max(0, len(open)-strings.Count(line, "</details>"))]
}
