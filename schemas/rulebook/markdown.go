// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/pergola-dev/pergola/schemas"
)

const pageIntro = `# Rules

<!-- Written by ` + "`make generate`" + ` (schemas/generate) from the rules and schemas/coverage.tsv. Do not edit. -->

` + "`pergola validate`" + ` checks %d rules, and the structure of %d kinds.
` + "`pergola explain KIND.FIELD`" + ` lists the rules about a field, ` + "`pergola explain ID`" + ` gives the reason of a rule and the next step.

- Severity: an *error* is refused, a *warning* is accepted (` + "`--strict`" + ` turns warnings into errors).
- Scope: *object* rules need only the object (and, on a change, the previous one); *landscape* rules apply in a landscape folder.
- Class: the verdict of a *static* rule depends on the declarations alone. A *change* rule compares with the previous object, a *time* rule reads the clock.
  A finding about an unchanged object, such as an expired version, is a warning if the previous object is unknown.
  In the operator, every finding of a time rule is a warning: an unchanged landscape renders and syncs on every day.
  ` + "`pergola validate --from REV`" + ` knows the previous objects, and rejects new findings.
- Source: where upstream has the rule (paths are those of github.com/gardener/gardener), or why Pergola adds it.
`

// RenderMarkdown returns docs/reference/rules.md: all rules by kind, and the coverage of upstream
// statements.
func RenderMarkdown(kinds int, rules []schemas.Rule, statements []UpstreamStatement) []byte {
	var b strings.Builder
	ids := map[string]bool{}
	var order []string
	byKind := map[string][]schemas.Rule{}
	for _, rule := range rules {
		ids[rule.ID] = true
		if byKind[rule.Kind] == nil {
			order = append(order, rule.Kind)
		}
		byKind[rule.Kind] = append(byKind[rule.Kind], rule)
	}
	slices.Sort(order) // "*" comes first
	fmt.Fprintf(&b, pageIntro, len(ids), kinds)
	b.WriteString("\n## Rules by kind\n")
	for _, kind := range order {
		fmt.Fprintf(&b, "\n### %s\n\n| rule | content | severity | scope | class | written in | source |\n|---|---|---|---|---|---|---|\n", kindHeading(kind))
		for _, rule := range byKind[kind] {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", rule.ID, escapeCell(rule.Title), rule.Severity, rule.Scope, rule.Class, escapeCell(ruleLocation(rule)), escapeCell(rule.Source))
		}
	}
	writeCoverage(&b, statements)
	if rest := rulesWithoutStatement(statements, rules); len(rest) > 0 {
		b.WriteString("\n### Rules that no statement names\n\nRules of upstream's validation functions, of Kubernetes, or ours; each has its source above.\n\n")
		b.WriteString(wrapText(strings.Join(rest, ", ")) + "\n")
	}
	return []byte(b.String())
}

func kindHeading(kind string) string {
	words := KindWords(kind)
	return strings.ToUpper(words[:1]) + words[1:]
}

// rulesPageURL is the address of docs/reference/rules.md.
const rulesPageURL = "https://github.com/pergola-dev/pergola/blob/main/docs/reference/rules.md"

// RuleLink returns the address of the list with the rule.
func RuleLink(rule schemas.Rule) string {
	return rulesPageURL + "#" + headingAnchor(kindHeading(rule.Kind))
}

// headingAnchor returns GitHub's anchor of a heading.
func headingAnchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func writeCoverage(b *strings.Builder, statements []UpstreamStatement) {
	b.WriteString("\n## Coverage of upstream\n\nEvery statement about values that upstream accepts, rejects or fills in, with Pergola's rules for it. *structure* is the definition of the\n" +
		"kind (types, enums, formats, required fields), *default* a value that is filled in. ⚠ marks values that upstream accepts silently.\n")
	topic := ""
	for _, s := range statements {
		if s.Topic != topic {
			topic = s.Topic
			fmt.Fprintf(b, "\n### %s\n\nUpstream: %s\n\n| id | statement | here |\n|---|---|---|\n", topic, s.Source)
		}
		here := strings.Join(s.Rules, ", ")
		switch {
		case here == "":
			here = "no rule: " + s.Reason
		case s.Reason != "":
			here += " (" + s.Reason + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", s.ID, escapeCell(s.Text), escapeCell(here))
	}
}

// escapeCell escapes text for a cell of a Markdown table.
func escapeCell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(text)
}

// RenderPage returns the current docs/reference/rules.md. coverage is the path of
// schemas/coverage.tsv.
func RenderPage(coverage string) ([]byte, error) {
	kinds, err := schemas.StructuralKinds()
	if err != nil {
		return nil, err
	}
	rules, err := Rules()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(coverage)
	if err != nil {
		return nil, fmt.Errorf("reading what is covered: %w", err)
	}
	statements, err := ReadCoverage(data, rules)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", coverage, err)
	}
	return RenderMarkdown(len(kinds), rules, statements), nil
}
