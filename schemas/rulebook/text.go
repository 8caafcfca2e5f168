// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pergola-dev/pergola/schemas"
)

// lineWidth is the maximum number of characters in a line of documentation.
const lineWidth = 100

// WriteText writes the explanation as text.
func (e *Explanation) WriteText(w io.Writer) error {
	var b strings.Builder
	where := "cluster-scoped"
	if e.Namespaced {
		where = "in a namespace"
	}
	fmt.Fprintf(&b, "KIND:      %s (%s, %s)\n", e.Kind, e.APIVersion, where)
	if len(e.OtherKinds) > 0 {
		fmt.Fprintf(&b, "ALSO:      %s\n", strings.Join(e.OtherKinds, ", "))
	}
	if e.Field != "" {
		fmt.Fprintf(&b, "FIELD:     %s\nTYPE:      %s\nREQUIRED:  %s\n", e.Field, e.Type, map[bool]string{true: "yes", false: "no"}[e.Required])
	}
	if e.Default != nil {
		data, err := json.Marshal(e.Default)
		if err != nil {
			return fmt.Errorf("writing the default of %s: %w", e.Field, err)
		}
		fmt.Fprintf(&b, "DEFAULT:   %s\n", data)
	}
	if len(e.Values) > 0 {
		fmt.Fprintf(&b, "VALUES:    %s\n", strings.Join(e.Values, ", "))
	}
	if len(e.Constraints) > 0 {
		fmt.Fprintf(&b, "FORM:      %s\n", strings.Join(e.Constraints, "; "))
	}
	if e.Documentation != "" {
		b.WriteString("\n" + wrapText(e.Documentation) + "\n")
	}
	if len(e.Fields) > 0 {
		b.WriteString("\nFIELDS\n")
		t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
		for _, f := range e.Fields {
			required := ""
			if f.Required {
				required = ", required"
			}
			fmt.Fprintf(t, "  %s\t%s%s\n", f.Name, f.Type, required)
		}
		if err := t.Flush(); err != nil {
			return fmt.Errorf("writing the fields: %w", err)
		}
	}
	if err := writeRuleSummaries(&b, "RULES", e.Rules); err != nil {
		return err
	}
	if err := writeRuleSummaries(&b, "RULES ABOUT ITS PARENTS", e.ParentRules); err != nil {
		return err
	}
	if len(e.Rules)+len(e.ParentRules) > 0 {
		b.WriteString("\n`pergola explain ID` says more about a rule.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRuleSummaries(b *strings.Builder, heading string, mentions []RuleSummary) error {
	if len(mentions) == 0 {
		return nil
	}
	b.WriteString("\n" + heading + "\n")
	t := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	for _, m := range mentions {
		fmt.Fprintf(t, "  %s\t%s%s\n", m.ID, m.Title, ruleRemarks(m.Severity, m.Scope, m.Class))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the rules: %w", err)
	}
	return nil
}

// ruleRemarks lists the properties that differ from most rules.
func ruleRemarks(severity schemas.Severity, scope string, class schemas.RuleClass) string {
	var words []string
	if severity == schemas.SeverityWarning {
		words = append(words, "warning")
	}
	if scope != "object" {
		words = append(words, "in a landscape")
	}
	switch class {
	case schemas.ClassChange:
		words = append(words, "on change")
	case schemas.ClassTime:
		words = append(words, "by the clock")
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// WriteRule writes the details of a rule, which may have several kinds.
func WriteRule(w io.Writer, rules []schemas.Rule) error {
	var b strings.Builder
	rule := rules[0]
	fmt.Fprintf(&b, "RULE:      %s%s\nSEVERITY:  %s\n", rule.ID, ruleRemarks(schemas.SeverityError, rule.Scope, rule.Class), rule.Severity)
	for _, r := range rules {
		fmt.Fprintf(&b, "ABOUT:     %s: %s\n", KindWords(r.Kind), strings.Join(fieldWords(r.Fields), ", "))
	}
	fmt.Fprintf(&b, "SOURCE:    %s\nWRITTEN:   %s\n\n%s\n\n%s\n", rule.Source, ruleLocation(rule), wrapText(rule.Title+"."), wrapText(rule.Doc))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteRules writes a list of rules.
func WriteRules(w io.Writer, rules []schemas.Rule) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, r := range rules {
		fmt.Fprintf(t, "%s\t%s\t%s%s\n", r.ID, KindWords(r.Kind), r.Title, ruleRemarks(r.Severity, r.Scope, r.Class))
	}
	return t.Flush()
}

// KindWords returns the kinds of a rule in words.
func KindWords(kind string) string {
	switch kind {
	case "":
		return "files"
	case "*":
		return "every kind"
	case "extensions.*":
		return "every kind of extensions.gardener.cloud"
	}
	return kind
}

func fieldWords(fields []string) []string {
	words := make([]string, len(fields))
	for i, field := range fields {
		if words[i] = field; field == "" {
			words[i] = "the whole object"
		}
	}
	return words
}

func ruleLocation(rule schemas.Rule) string {
	if rule.File == "" {
		return "schemas/base, generated from api/crds"
	}
	return rule.File
}

// wrapText breaks lines between words. It retains the begin of paragraphs and list items.
func wrapText(text string) string {
	var out []string
	line := ""
	end := func() {
		if line != "" {
			out, line = append(out, line), ""
		}
	}
	for _, written := range strings.Split(strings.TrimSpace(text), "\n") {
		words := strings.Fields(written)
		switch {
		case len(words) == 0:
			end()
			out = append(out, "")
		case words[0] == "-" || words[0] == "*":
			end()
		}
		for _, word := range words {
			if line != "" && len(line)+1+len(word) > lineWidth {
				end()
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
	}
	end()
	return strings.Join(out, "\n")
}
