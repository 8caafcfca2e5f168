// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"

	"github.com/pergola-dev/pergola/schemas"
)

// maxExcerptWidth is the maximum number of characters of a source line in a report.
const maxExcerptWidth = 120

// writeText writes findings with their source lines and carets, and a summary.
func writeText(w io.Writer, violations []schemas.Violation, o Options) error {
	s := newSourceCache(o.ReadSource)
	paint := newColorizer(o.Colored)
	var errors, warnings int
	files := map[string]bool{}
	var b strings.Builder
	for _, v := range violations {
		shade := color.FgRed
		if v.Severity == schemas.SeverityWarning {
			shade = color.FgYellow
			warnings++
		} else {
			errors++
		}
		files[v.File] = true
		b.WriteString(strings.Replace(v.String(), string(v.Severity)+": ", paint(shade, string(v.Severity))+": ", 1) + "\n")
		if line, caret, ok := s.excerpt(v); ok {
			number := fmt.Sprintf("%5d", v.Line)
			b.WriteString(paint(color.Faint, number+" | ") + line + "\n")
			b.WriteString(paint(color.Faint, strings.Repeat(" ", len(number))+" | ") + caret + paint(shade, "^") + "\n")
		}
	}
	if len(violations) == 0 {
		b.WriteString("Valid: no findings.\n")
	} else {
		verdict := "Not valid: "
		if errors == 0 {
			verdict = "Valid: "
		}
		b.WriteString(verdict + strings.Join(withoutEmpty(countNoun(errors, "error"), countNoun(warnings, "warning")), ", ") + " in " + countNoun(len(files), "file") + ".\n")
		if o.DocumentationHint {
			b.WriteString(paint(color.Faint, "`pergola explain KIND.FIELD` says more about a field, `pergola explain RULE` about a rule in brackets.") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func countNoun(n int, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func withoutEmpty(texts ...string) []string {
	var out []string
	for _, text := range texts {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

func newColorizer(colored bool) func(color.Attribute, string) string {
	return func(a color.Attribute, text string) string {
		if !colored {
			return text
		}
		c := color.New(a)
		c.EnableColor()
		return c.Sprint(text)
	}
}
