// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pergola-dev/pergola/health/custom"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// ruleHealth is the rule id of findings about health rules.
const ruleHealth = "landscape/health"

const fieldHealth = "spec.health"

// checkHealth checks the health rules and the progressing threshold of ManagedResources.
func (l *loader) checkHealth(config *Declaration, spec map[string]any) {
	const fieldProgressing = "spec.managedResourceProgressingThreshold"
	text, _ := spec["managedResourceProgressingThreshold"].(string)
	if threshold, err := time.ParseDuration(text); err == nil && threshold < 0 {
		l.reportField(config, fieldProgressing, schemas.TypeInvalid, ruleConfig, "must not be negative; 0s fails progressing objects at once")
	}
	health, _ := spec["health"].(map[string]any)
	l.reportHealth(config, health, func(file string) []byte {
		// The file was read before; only the column of a finding depends on it.
		data, _ := fs.ReadFile(l.fs, path.Join(l.home, file))
		return data
	})
}

// reportHealth reports findings about health rules. source returns the text of a file that a
// position names.
func (l *loader) reportHealth(config *Declaration, health map[string]any, source func(string) []byte) {
	for _, f := range checkHealthRules(health) {
		l.reportField(config, fieldHealth+"."+f.field, f.typ, ruleHealth, f.message)
		v := &l.violations[len(l.violations)-1]
		if f.warning {
			v.Severity = schemas.SeverityWarning
		}
		if f.offset >= 0 {
			v.Line, v.Column = scalarPosition(source(v.File), v.Line, v.Column, []rune(f.text), f.offset)
		}
	}
}

// healthFinding is a fault in a health rule.
type healthFinding struct {
	// field is relative to spec.health.
	field   string
	typ     schemas.ViolationType
	message string
	// text is an expression and offset the faulty rune in it; -1 means the whole field.
	text   string
	offset int
	// warning marks a rule that can be evaluated but is hardly intended.
	warning bool
}

// checkHealthRules finds faults that the schema of spec.health cannot express. The schema reports
// wrong types, missing kinds and duplicate rules.
func checkHealthRules(health map[string]any) []healthFinding {
	var (
		findings []healthFinding
		rules    []custom.Rule
		indexes  []int
		seen     = map[string]bool{}
	)
	list, _ := health["rules"].([]any)
	if len(list) == 0 {
		return nil
	}
	byGroup := protectableKinds()
	for i, item := range list {
		rule, ok := healthRule(item)
		if !ok {
			continue
		}
		if field, message := healthKindProblem(byGroup, rule); field != "" {
			findings = append(findings, healthFinding{field: fmt.Sprintf("rules[%d].%s", i, field), typ: schemas.TypeNotSupported, message: message, offset: -1})
		}
		for field, message := range ineffectiveHealthFields(rule) {
			findings = append(findings, healthFinding{field: fmt.Sprintf("rules[%d].%s", i, field), typ: schemas.TypeInvalid, message: message, offset: -1, warning: true})
		}
		key := rule.APIGroup + "/" + rule.Kind
		if item, _ := item.(map[string]any); item["kind"] == nil || seen[key] {
			// The schema already reports this, but the expressions are still checked.
			rule.Kind = fmt.Sprintf("%s[%d]", rule.Kind, i)
		}
		seen[key] = true
		rules, indexes = append(rules, rule), append(indexes, i)
	}
	_, err := custom.Compile(rules)
	var wrong custom.Errors
	if err != nil && !errors.As(err, &wrong) {
		findings = append(findings, healthFinding{field: "rules", typ: schemas.TypeInvalid, message: err.Error(), offset: -1})
	}
	broken := ""
	for _, e := range wrong {
		f := healthFinding{field: fmt.Sprintf("rules[%d].%s", indexes[e.Rule], e.Field), typ: schemas.TypeInvalid, message: e.Message, offset: -1}
		if f.field == broken {
			continue // a consequence of the syntax error before
		}
		if isSyntax(e) {
			broken = f.field
		}
		if strings.HasPrefix(e.Message, "is required") {
			f.typ = schemas.TypeRequired
		}
		if e.Line > 0 {
			f.locate(ruleExpression(rules[e.Rule], e.Field), e)
		}
		findings = append(findings, f)
	}
	return findings
}

// ineffectiveHealthFields returns the fields of a rule that have less effect than they suggest,
// with advice.
func ineffectiveHealthFields(rule custom.Rule) map[string]string {
	same := func(a, b string) bool {
		return a != "" && strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
	}
	out := map[string]string{}
	if same(rule.Healthy, "true") && rule.Progressing == "" {
		out["healthy"] = "is always true, so no object of the kind ever fails or is waited for; write an expression over its status, such as self.status.ready"
	}
	if same(rule.Progressing, rule.Healthy) {
		out["progressing"] = "is the same expression as healthy, so an object is progressing only while it is healthy; write a condition of a rollout, or remove progressing"
	}
	return out
}

// healthRule reads an item of the list; ok is false if a field has a wrong type.
func healthRule(item any) (custom.Rule, bool) {
	fields, ok := item.(map[string]any)
	var rule custom.Rule
	for name, to := range map[string]*string{
		"apiGroup": &rule.APIGroup, "kind": &rule.Kind, "healthy": &rule.Healthy, "progressing": &rule.Progressing, "message": &rule.Message,
	} {
		if value := fields[name]; value != nil {
			text, isText := value.(string)
			ok, *to = ok && isText, text
		}
	}
	return rule, ok
}

func ruleExpression(rule custom.Rule, field string) string {
	switch field {
	case "healthy":
		return rule.Healthy
	case "progressing":
		return rule.Progressing
	}
	return rule.Message
}

func isSyntax(e *custom.Error) bool { return strings.HasPrefix(e.Message, "Syntax error") }

// locate sets the place inside an expression, and rewrites the compiler's message for people.
func (f *healthFinding) locate(text string, e *custom.Error) {
	runes := []rune(text)
	at := 0
	for line := 1; line < e.Line && at < len(runes); at++ {
		if runes[at] == '\n' {
			line++
		}
	}
	f.text, f.offset = text, min(at+e.Column-1, len(runes))
	if isSyntax(e) {
		f.message, _, _ = strings.Cut(e.Message, " expecting {")
		f.message = strings.Replace(f.message, "mismatched input '<EOF>'", "the expression ends too early", 1)
		f.message += operatorHint(string(runes[f.offset:]))
		return
	}
	f.message = strings.ReplaceAll(e.Message, " (in container '')", "")
	_, name, ok := strings.Cut(f.message, "undeclared reference to '")
	if !ok {
		return
	}
	name, _, _ = strings.Cut(name, "'")
	if f.offset == len(runes) || runes[f.offset] != '(' {
		f.message += "; the object is self"
		return
	}
	// The compiler reports the position of the parenthesis.
	if before := []rune(name); f.offset >= len(before) && string(runes[f.offset-len(before):f.offset]) == name {
		f.offset -= len(before)
	}
	f.message += functionHint(name)
}

// operatorHint names the CEL operator where an expression uses one from another language.
func operatorHint(rest string) string {
	word := rest[:len(rest)-len(strings.TrimLeftFunc(rest, unicode.IsLetter))]
	switch {
	case strings.HasPrefix(rest, "="):
		return "; two values are compared by =="
	case strings.HasPrefix(rest, "&"), word == "and":
		return "; the operator is &&"
	case strings.HasPrefix(rest, "|"), word == "or":
		return "; the operator is ||"
	case strings.HasPrefix(rest, "<>"), word == "not":
		return "; the operators are != and !"
	}
	return ""
}

// foreignFunctions maps function names of other languages to CEL functions.
var foreignFunctions = map[string]string{"length": "size", "len": "size", "count": "size", "any": "exists", "some": "exists", "every": "all",
	"includes": "contains", "tolower": "lowerAscii", "toupper": "upperAscii", "tostring": "string", "str": "string", "number": "int"}

// maxSuggestions limits how many functions a hint names.
const maxSuggestions = 3

// functionHint suggests functions for an unknown name.
func functionHint(name string) string {
	words, err := custom.ExpressionVocabulary()
	if err != nil {
		return ""
	}
	if slices.Contains(words.Macros, name) {
		return fmt.Sprintf(" in this form; most often it is LIST.%s(x, EXPRESSION OF x)", name)
	}
	all := slices.Concat(words.Macros, words.Functions)
	slices.Sort(all)
	var near []string
	if known := foreignFunctions[strings.ToLower(name)]; known != "" {
		near = append(near, known)
	} else if best := suggest.Closest(name, all); best != "" {
		near = append(near, best)
	}
	for _, word := range all {
		if len(near) == maxSuggestions {
			break
		}
		inside := len(name) > 2 && strings.Contains(strings.ToLower(word), strings.ToLower(name)) || len(word) > 3 && strings.Contains(strings.ToLower(name), strings.ToLower(word))
		if inside && !slices.Contains(near, word) {
			near = append(near, word)
		}
	}
	if len(near) == 0 {
		return "; Kubernetes has CEL functions such as size, startsWith, contains, matches, all, exists, filter and orValue"
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// healthKindProblem finds kinds that a known group does not have: a rule for them would have no
// effect.
func healthKindProblem(byGroup map[string][]string, rule custom.Rule) (field, message string) {
	kinds, known := byGroup[rule.APIGroup]
	switch {
	case rule.Kind == "" || strings.Contains(rule.APIGroup, "/"):
		return "", "" // the compiler of the rule reports it
	case rule.APIGroup != "" && len(validation.IsDNS1123Subdomain(rule.APIGroup)) > 0:
		return "apiGroup", fmt.Sprintf("%q cannot be an API group: it has small letters, digits, '-' and '.'", rule.APIGroup)
	case rule.Kind[0] >= 'a' && rule.Kind[0] <= 'z':
		return "kind", fmt.Sprintf("kinds begin with a capital letter, and no object has the kind %q; did you mean %q?", rule.Kind, strings.ToUpper(rule.Kind[:1])+rule.Kind[1:])
	case !known && !strings.Contains(rule.APIGroup, "."):
		var groups []string
		for group := range byGroup {
			groups = append(groups, group)
		}
		slices.Sort(groups)
		return "apiGroup", fmt.Sprintf("there is no API group %q%s", rule.APIGroup, didYouMean(rule.APIGroup, groups))
	case !known || slices.Contains(kinds, rule.Kind):
		return "", ""
	}
	var elsewhere []string
	for group, kinds := range byGroup {
		if slices.Contains(kinds, rule.Kind) {
			elsewhere = append(elsewhere, group)
		}
	}
	slices.Sort(elsewhere)
	group := fmt.Sprintf("the group %q", rule.APIGroup)
	if rule.APIGroup == "" {
		group = "the core group"
	}
	if len(elsewhere) > 0 {
		return "kind", fmt.Sprintf("%s has no kind %q; it is one of apiGroup %s", group, rule.Kind, strings.Join(elsewhere, " or "))
	}
	return "kind", fmt.Sprintf("%s has no kind %q%s; kinds of other APIs need their apiGroup", group, rule.Kind, didYouMean(rule.Kind, kinds))
}
