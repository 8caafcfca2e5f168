// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// This file finds configuration that Prometheus and its operator reject, or that selects nothing.

// relabelLists are the fields with relabelling steps.
var relabelLists = []string{"relabelings", "metricRelabelings", "relabelingConfigs", "relabelConfigs", "metricRelabelConfigs", "writeRelabelConfigs", "alertRelabelings"}

// targetActions write to a label or compare with one (prometheus/model/relabel, Config.Validate).
// The first is the default.
var targetActions = []string{"replace", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal"}

// checkRelabellings checks that relabelling steps have valid regular expressions, a target label,
// and existing source labels.
func checkRelabellings(at fieldpath.Path, value any) []structure.Finding {
	var out []structure.Finding
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			steps, isList := v[name].([]any)
			if !isList || !slices.Contains(relabelLists, name) {
				out = append(out, checkRelabellings(at.Append(name), v[name])...)
				continue
			}
			for i, item := range steps {
				step, isObject := item.(map[string]any)
				if isObject {
					out = append(out, checkRelabelStep(at.Append(name, i), step, strings.HasPrefix(name, "metric"))...)
				}
			}
		}
	case []any:
		for i, item := range v {
			out = append(out, checkRelabellings(at.Append(i), item)...)
		}
	}
	return out
}

func checkRelabelStep(at fieldpath.Path, step map[string]any, ofMetrics bool) []structure.Finding {
	var out []structure.Finding
	text, _ := step["regex"].(string)
	if _, err := regexp.Compile(text); err != nil {
		out = append(out, structure.Finding{Path: at.Append("regex"), Type: "Invalid", Message: "is not a regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")})
	}
	action, given := step["action"].(string)
	if !given {
		action = targetActions[0]
	}
	if target, _ := step["targetLabel"].(string); target == "" && slices.Contains(targetActions, strings.ToLower(action)) {
		out = append(out, structure.Finding{Path: at.Append("targetLabel"), Type: "Required", Message: fmt.Sprintf("must be set: the action %s writes to a label, or compares with one", strings.ToLower(action))})
	}
	labels, _ := step["sourceLabels"].([]any)
	for i, label := range labels {
		if name, _ := label.(string); ofMetrics && strings.HasPrefix(name, "__meta_") {
			out = append(out, structure.Finding{Path: at.Append("sourceLabels", i), Type: "NotFound", Message: fmt.Sprintf("no metric has the label %s: target labels that begin with __ are dropped earlier; copy it in relabelings", name)})
		}
	}
	return out
}

// checkRemoteURLs checks the URLs that a Prometheus writes to and reads from.
func checkRemoteURLs(object map[string]any) []structure.Finding {
	var out []structure.Finding
	for _, field := range []string{"remoteWrite", "remoteRead"} {
		list, _ := valueAt(object, fieldpath.Path{"spec", field}).([]any)
		for i, item := range list {
			text, _ := valueAt(item, fieldpath.Path{"url"}).(string)
			if at, err := url.Parse(text); text != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "") {
				out = append(out, structure.Finding{Path: fieldpath.Path{"spec", field, i, "url"}, Type: "Invalid", Message: fmt.Sprintf("%q is not a URL such as https://prometheus.example.org/api/v1/write", text)})
			}
		}
	}
	return out
}

// checkReceivers checks that routes of an AlertmanagerConfig use its own receivers; else the
// operator skips the object.
func checkReceivers(object map[string]any) []structure.Finding {
	var out []structure.Finding
	var names []string
	list, _ := valueAt(object, fieldpath.Path{"spec", "receivers"}).([]any)
	for _, receiver := range list {
		name, _ := valueAt(receiver, fieldpath.Path{"name"}).(string)
		names = append(names, name)
	}
	var walk func(at fieldpath.Path, route any)
	walk = func(at fieldpath.Path, route any) {
		name, _ := valueAt(route, fieldpath.Path{"receiver"}).(string)
		if name != "" && !slices.Contains(names, name) && !strings.Contains(name, SymbolicMark) {
			wrong := fmt.Sprintf("spec.receivers has no %q", name)
			if len(names) > 0 {
				wrong += knownWordsHint(name, names)
			}
			out = append(out, structure.Finding{Path: at.Append("receiver"), Type: "NotFound", Message: wrong})
		}
		routes, _ := valueAt(route, fieldpath.Path{"routes"}).([]any)
		for i, nested := range routes {
			walk(at.Append("routes", i), nested)
		}
	}
	walk(fieldpath.Path{"spec", "route"}, valueAt(object, fieldpath.Path{"spec", "route"}))
	return out
}

// quantileFaults describes a fault of quantiles in an expression; the result is "" if there is
// none.
func quantileFaults(expression parser.Expr) string {
	wrong := ""
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch e := node.(type) {
		case *parser.Call:
			if (e.Func.Name == "histogram_quantile" || e.Func.Name == "quantile_over_time") && len(e.Args) == 2 && wrong == "" {
				wrong = quantileFault(e.Func.Name, e.Args[0])
			}
			if e.Func.Name == "histogram_quantile" && len(e.Args) == 2 && wrong == "" {
				wrong = missingBucketsFault(e.Args[1])
			}
		case *parser.AggregateExpr:
			if e.Op == parser.QUANTILE && e.Param != nil && wrong == "" {
				wrong = quantileFault("quantile", e.Param)
			}
		}
		return nil
	})
	return wrong
}

func quantileFault(function string, expression parser.Expr) string {
	number, is := expression.(*parser.NumberLiteral)
	if !is || number.Val <= 1 {
		return ""
	}
	return fmt.Sprintf("%s of %v is infinite: a quantile is between 0 and 1, such as 0.99", function, number.Val)
}

// missingBucketsFault finds an aggregation of classic buckets that drops their label le. Native
// histograms have no such label.
func missingBucketsFault(expression parser.Expr) string {
	for {
		paren, is := expression.(*parser.ParenExpr)
		if !is {
			break
		}
		expression = paren.Expr
	}
	e, is := expression.(*parser.AggregateExpr)
	if !is || !slices.Contains([]parser.ItemType{parser.SUM, parser.AVG, parser.MAX, parser.MIN}, e.Op) || e.Without != slices.Contains(e.Grouping, "le") {
		return ""
	}
	buckets := false
	parser.Inspect(e.Expr, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		buckets = buckets || is && strings.HasSuffix(selector.Name, "_bucket")
		return nil
	})
	if !buckets {
		return ""
	}
	return fmt.Sprintf("histogram_quantile finds no buckets: %s drops the label le; add it to by (...)", e.Op)
}

// misspeltRecordings finds names that are similar to a series that the object records. Names with
// one different letter may be intended.
func misspeltRecordings(object map[string]any) []structure.Finding {
	var out []structure.Finding
	var recorded []string
	type use struct {
		at   fieldpath.Path
		name string
	}
	var used []use
	groups, _ := valueAt(object, fieldpath.Path{"spec", "groups"}).([]any)
	for i, group := range groups {
		rules, _ := valueAt(group, fieldpath.Path{"rules"}).([]any)
		for j, rule := range rules {
			if name, _ := valueAt(rule, fieldpath.Path{"record"}).(string); strings.Contains(name, ":") {
				recorded = append(recorded, name)
			}
			text, _ := valueAt(rule, fieldpath.Path{"expr"}).(string)
			parsed, err := promQL.ParseExpr(text)
			if err != nil {
				continue
			}
			parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
				if selector, is := node.(*parser.VectorSelector); is && strings.Contains(selector.Name, ":") {
					used = append(used, use{fieldpath.Path{"spec", "groups", i, "rules", j, "expr"}, selector.Name})
				}
				return nil
			})
		}
	}
	for _, of := range used {
		meant := misspeltWord(of.name, recorded, 1)
		if meant == "" || len(meant) == len(of.name) && !strings.EqualFold(meant, of.name) && !isAnagram(meant, of.name) || digitsPattern.FindString(of.name+meant) != "" && digitsPattern.ReplaceAllString(of.name, "") == digitsPattern.ReplaceAllString(meant, "") {
			continue
		}
		out = append(out, structure.Finding{Path: of.at, Type: "NotFound", Message: fmt.Sprintf("no rule here records %s; did you mean %s?", of.name, meant)})
	}
	return out
}

var digitsPattern = regexp.MustCompile(`[0-9]+`)

// isAnagram reports whether two words differ only in the order of their letters.
func isAnagram(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values([]byte(a))), slices.Sorted(slices.Values([]byte(b))))
}

// templateFunctions are the functions in templates of alerts: Prometheus' own (template/template.go
// of Prometheus) and the functions of text/template.
var templateFunctions = strings.Fields(`args externalURL first graphLink humanize humanize1024 humanizeDuration humanizePercentage humanizeTimestamp label match
	now parseDuration pathPrefix query reReplaceAll safeHtml sortByLabel stripDomain stripPort strvalue tableLink title tmpl toDuration toLower toTime
	toUpper urlQueryEscape value
	and call eq ge gt html index js le len lt ne not or print printf println slice urlquery`)

var unknownFunctionPattern = regexp.MustCompile(`function "([^"]+)" not defined`)

// templateFault describes the fault of a Prometheus template; the result is "" if there is none.
func templateFault(text string) string {
	functions := map[string]any{}
	for _, name := range templateFunctions {
		functions[name] = fmt.Sprint // the parser uses only the names
	}
	_, err := parse.New("text").Parse(`{{$labels := .}}{{$externalLabels := .}}{{$externalURL := .}}{{$value := .}}`+text, "", "", map[string]*parse.Tree{}, functions)
	if err == nil {
		return ""
	}
	parts := unknownFunctionPattern.FindStringSubmatch(err.Error())
	if parts == nil {
		_, words, _ := strings.Cut(strings.TrimPrefix(err.Error(), "template: "), ": ")
		return "is not a Prometheus template, so Prometheus rejects all rules of the file: " + words
	}
	hint := ""
	if meant := suggest.Closest(parts[1], templateFunctions); meant != "" {
		hint = fmt.Sprintf("; did you mean %q?", meant)
	}
	return fmt.Sprintf("Prometheus rejects all rules of the file: its templates have no function %q%s", parts[1], hint)
}
